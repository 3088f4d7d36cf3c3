"""A run whose Java process has ended says so, wherever it notices: its checkpoint is reached through Java too."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, NoReturn

import pytest
from py4j.protocol import Py4JNetworkError

from trident_py.errors import TopologyError, TridentError
from trident_py.report.progress import RunningTopology
from trident_py.spark.component import SparkComponent, _Waking


def refused(*_: object) -> NoReturn:
    raise ConnectionRefusedError(111, "Connection refused")


class Gone:
    """Java classes that nobody has any more."""

    def __getattr__(self, name: str) -> Any:
        refused()


class There:
    """Java classes that answer."""

    java = SimpleNamespace(lang=SimpleNamespace(System=SimpleNamespace(nanoTime=lambda: 1)))


def component(java: Any) -> SparkComponent:
    """A component after its query, with what it asks at its end."""
    made = object.__new__(SparkComponent)
    made.spark = SimpleNamespace(sparkContext=SimpleNamespace(_jvm=java))
    made.checkpoint = SimpleNamespace(location="hdfs://namenode:8020/checkpoints/t")  # type: ignore[assignment]
    made._finished, made.available_now = _Waking(), False
    made.program = SimpleNamespace(component="words")  # type: ignore[assignment]
    made.running = RunningTopology("t", ["words"])
    made.error = None
    return made


def test_a_query_that_ended_as_java_is_gone_is_not_followed_by_a_question_to_java() -> None:
    ended = component(Gone())
    by = Py4JNetworkError("Answer from Java side is empty")
    assert not ended._may_go_on(by)
    with pytest.raises(TopologyError, match="Spark's Java process is gone") as raised:
        ended._raise(by)
    assert raised.value.operation == "Spark of component 'words'"


def test_a_batch_that_asked_java_when_it_was_gone_says_so() -> None:
    ended = component(Gone())
    ended.error = ConnectionRefusedError(111, "Connection refused")
    with pytest.raises(TopologyError, match=r"Java process is gone.*continues where it stopped") as raised:
        ended._raise(None)
    assert raised.value.operation == "Spark of component 'words'"


def test_a_server_that_refuses_a_batch_is_not_taken_for_java() -> None:
    ended = component(There())
    ended.error = ConnectionRefusedError(111, "Connection refused")
    with pytest.raises(TopologyError, match="Connection refused") as raised:
        ended._raise(None)
    assert "Java" not in str(raised.value)


def test_an_error_of_our_own_stays_what_it_is() -> None:
    ended = component(Gone())
    ended.error = TridentError("a state said no")
    with pytest.raises(TopologyError, match="a state said no"):
        ended._raise(None)
