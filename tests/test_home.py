"""The home service: one object in the driver process, called from others."""

from __future__ import annotations

import multiprocessing
import pickle
import threading
from typing import Any

import pytest

from trident_py import home
from trident_py.home import HomeAddress, HomeError, HomeService, Proxy


class Odd(Exception):
    """Cannot be unpickled: it needs two arguments and keeps one."""

    def __init__(self, first: str, second: str) -> None:
        super().__init__(first)


class Counter:
    def __init__(self) -> None:
        self.count = 0

    def add(self, n: int = 1) -> int:
        self.count += n
        return self.count

    def echo(self, value: Any) -> Any:
        return value

    def fail(self) -> None:
        raise KeyError("gone")

    def fail_oddly(self) -> None:
        raise Odd("a", "b")


def in_another_process(function: Any, *arguments: Any) -> Any:
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(function, arguments)


def count_twice(address: HomeAddress) -> int:
    counter = home.store({"trident.home": address, "trident.run": "r"}, "counter", Counter)
    counter.add()
    return home.store({"trident.home": address, "trident.run": "r"}, "counter", Counter).add(n=10)


def call_strangely(address: HomeAddress) -> list[str]:
    counter = home.store({"trident.home": address, "trident.run": "r"}, "counter", Counter)
    said = []
    for method in ("fail", "fail_oddly", "nothing"):
        try:
            getattr(counter, method)()
        except Exception as error:
            said.append(f"{type(error).__name__} {error}")
    return said


@pytest.fixture
def service() -> Any:
    with HomeService() as made:
        yield made


def test_the_driver_gets_the_object_itself_and_a_worker_a_proxy_of_the_same(service: HomeService) -> None:
    conf = {"trident.home": service.address, "trident.run": "r"}
    counter = home.store(conf, "counter", Counter)
    assert isinstance(counter, Counter)
    assert in_another_process(count_twice, service.address) == 11
    assert counter.count == 11
    assert home.store(conf, "counter", Counter) is counter
    assert home.store({"trident.home": None, "trident.run": "r"}, "counter", Counter) is counter
    home.forget("r")


def test_without_a_service_this_process_is_the_home_until_the_run_is_forgotten() -> None:
    conf = {"trident.home": None, "trident.run": "local"}
    counter = home.store(conf, "counter", Counter)
    assert home.store(conf, "counter", Counter) is counter
    assert home.store({**conf, "trident.run": "other"}, "counter", Counter) is not counter
    home.forget("local")
    assert home.store(conf, "counter", Counter) is not counter
    home.forget("local")
    home.forget("other")


def test_an_exception_travels_back_as_itself_or_in_words(service: HomeService) -> None:
    assert in_another_process(call_strangely, service.address) == [
        "KeyError 'gone'",
        "HomeError Odd: a (an exception that cannot be pickled)",
        "AttributeError 'Counter' object has no attribute 'nothing'",
    ]


def test_a_call_whose_connection_broke_is_done_once(service: HomeService) -> None:
    service.register("c", Counter())
    proxy = Proxy(service.address, "c")
    assert proxy.add() == 1
    for connection in list(service._connections):
        home._shut(connection)
    assert proxy.add() == 2


def test_a_reply_that_was_lost_is_given_again_and_not_made_again(service: HomeService) -> None:
    service.register("c", Counter())
    request = pickle.dumps(("client", 7, "c", "add", pickle.dumps(((), {}))))
    assert service._answer(request) == service._answer(request)
    assert Proxy(service.address, "c").add() == 2


def test_a_large_value_comes_back_whole(service: HomeService) -> None:
    service.register("c", Counter())
    value = bytes(range(256)) * 40_000
    assert Proxy(service.address, "c").echo(value) == value


def test_a_class_of_the_main_program_travels_by_value(service: HomeService) -> None:
    class Local:
        n = 3

    service.register("c", Counter())
    assert Proxy(service.address, "c").echo(Local()).n == 3


def test_the_key_is_in_no_repr_and_a_stranger_is_refused(service: HomeService) -> None:
    service.register("c", Counter())
    assert "key" not in repr(service.address)
    assert repr(service.address.key) not in repr(Proxy(service.address, "c"))
    stranger = HomeAddress(service.address.host, service.address.port, b"guess")
    with pytest.raises(HomeError, match="does not answer"):
        Proxy(stranger, "c").add()
    assert Proxy(service.address, "c").add() == 1


def test_private_names_cannot_be_called(service: HomeService) -> None:
    service.register("c", Counter())
    with pytest.raises(AttributeError):
        Proxy(service.address, "c")._secret()
    with pytest.raises(HomeError, match="not public"):
        home._ask(service.address, "c", "_secret", pickle.dumps(((), {})))


def test_a_closed_service_leaves_no_thread_and_says_so_to_callers() -> None:
    before = set(threading.enumerate())
    service = HomeService()
    service.register("c", Counter())
    proxy = Proxy(service.address, "c")
    proxy.add()
    service.close()
    service.close()
    for thread in set(threading.enumerate()) - before:
        thread.join(5)
    assert set(threading.enumerate()) <= before
    with pytest.raises(HomeError, match="driver process"):
        proxy.add()


def test_a_forgotten_run_is_told_by_name(service: HomeService) -> None:
    service.register("run-1/state", Counter())
    home.forget("run-1")
    with pytest.raises(HomeError, match="run-1/state"):
        Proxy(service.address, "run-1/state").add()
