"""The home service: one object in the driver process, called from others."""

from __future__ import annotations

import multiprocessing
import pickle
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from trident_py.rpc import service as home
from trident_py.rpc.service import Calls, HomeAddress, HomeError, HomeService, Proxy


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
    for channel in list(service._connections):
        channel.shut()
    assert proxy.add() == 2


def test_a_reply_that_was_lost_is_given_again_and_not_made_again(service: HomeService) -> None:
    service.register("c", Counter())
    request = pickle.dumps((7, "c", "add", pickle.dumps(((), {}))))
    service._calls.join("client", again=False)
    assert service._answer("client", request) == service._answer("client", request)
    assert Proxy(service.address, "c").add() == 2


class Slow(Counter):
    """Counts when it is let go on."""

    def __init__(self) -> None:
        super().__init__()
        self.begun, self.go_on = threading.Event(), threading.Event()

    def slowly(self) -> int:
        self.begun.set()
        assert self.go_on.wait(60)
        return self.add()


def test_a_call_that_is_cut_while_it_is_done_is_done_once(service: HomeService) -> None:
    slow = Slow()
    service.register("slow", slow)
    with ThreadPoolExecutor(1) as threads:
        answer = threads.submit(Proxy(service.address, "slow").slowly)
        assert slow.begun.wait(60)
        for channel in list(service._connections):
            channel.shut()
        until(lambda: len(service._connections) > 1 or answer.done())  # the client is back; its first call still runs
        slow.go_on.set()
        assert answer.result(60) == 1
    assert slow.count == 1


def until(holds: Any) -> None:
    """What another thread does, seen without a clock of its own."""
    end, pause = time.monotonic() + 60, threading.Event()
    while not holds():
        assert time.monotonic() < end
        pause.wait(0.01)


def test_a_client_that_comes_back_too_late_is_told_that_nobody_knows(service: HomeService) -> None:
    service._calls = Calls(grace=-1)
    service.register("c", Counter())
    proxy = Proxy(service.address, "c")
    assert proxy.add() == 1
    for channel in list(service._connections):
        channel.shut()
    until(lambda: not service._connections)
    with pytest.raises(HomeError, match="whether it was executed is unknown"):
        proxy.add()
    assert proxy.add() == 2  # a new call of a new client


def test_replies_are_not_kept_when_clients_have_them_or_are_gone(service: HomeService) -> None:
    service.register("c", Counter())
    proxy = Proxy(service.address, "c")
    for _ in range(30):
        thread = threading.Thread(target=proxy.echo, args=(bytes(100_000),))
        thread.start()
        thread.join()

    def count_bytes() -> int:
        replies = [caller.reply for caller in list(service._calls._callers.values())]
        return sum(len(reply.result()) for reply in replies if reply is not None and reply.done())

    until(lambda: count_bytes() < 100_000)
    until(lambda: not service._connections)
    service._calls._grace = -1
    assert proxy.add() == 1
    assert len(service._calls) == 1


def test_strangers_that_say_nothing_hold_few_threads_and_block_no_worker(service: HomeService) -> None:
    service.register("c", Counter())
    before = threading.active_count()
    strangers = [socket.create_connection((service.address.host, service.address.port)) for _ in range(200)]
    assert Proxy(service.address, "c").add() == 1
    until(lambda: threading.active_count() - before <= home.STRANGERS + 1)
    for each in strangers:
        each.close()


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
