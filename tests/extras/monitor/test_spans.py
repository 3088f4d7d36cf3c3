"""A run with ``topology.opentelemetry``: a batch is a span, and its phases are its children."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from needed import needed

from testbed.service import ServiceMissing
from trident_py import DefinitionError, LocalCluster, TopologyError
from trident_py.extras.monitor.timeline import AttemptRecord, BatchRecord
from trident_py.model.context import with_context
from trident_py.testing import FeederBatchSpout

from .runs import FIELDS, counting, get, until


@pytest.fixture
def exporter(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    with needed("opentelemetry"):
        try:
            from opentelemetry.sdk.trace import TracerProvider
        except ModuleNotFoundError:
            raise ServiceMissing("its SDK is missing: pip install opentelemetry-sdk") from None
    from opentelemetry import trace
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    provider, kept = TracerProvider(), InMemorySpanExporter()
    provider.add_span_processor(SimpleSpanProcessor(kept))
    monkeypatch.setattr(trace, "get_tracer", provider.get_tracer)
    yield kept
    provider.shutdown()


def test_a_batch_is_a_span_and_its_phases_are_its_children(exporter: Any) -> None:
    feeder = FeederBatchSpout(FIELDS)
    with LocalCluster() as cluster:
        conf = {"topology.opentelemetry": True, "topology.http": 0}
        running = cluster.submitTopology("words", conf, counting(feeder).build())
        feeder.feed([("a",), ("b",)])
        feeder.feed([("bad mysql://me:s3cret@h/db",)])
        until(lambda: len(exporter.get_finished_spans()) > 10 and running.txid == 2)
        shown = get(running.http, "/api/batches")[1]["batches"]
        feeder.feed([("worse",)], wait=False)
        with pytest.raises(TopologyError, match="no such word"):
            running.awaitTermination(30)
    spans = exporter.get_finished_spans()
    first, second, third = [span for span in spans if span.parent is None]
    assert [span.name for span in (first, second, third)] == ["batch"] * 3
    told = {"topology": "words", "component": "words", "txid": 1, "attempts": 1, "tuples.words": 2, "tuples.counts": 2}
    assert {f"trident_py.{name}": value for name, value in told.items()}.items() <= dict(first.attributes).items()
    children = [span for span in spans if span.parent and span.parent.span_id == first.context.span_id]
    assert [span.name for span in children] == ["describe", "emit", "execute", "commit", "finish"]
    assert [span.attributes.get("trident_py.state") for span in children] == [None, None, None, "counts", None]
    assert {span.context.trace_id for span in children} == {first.context.trace_id}
    assert children[0].start_time == first.start_time
    assert abs(children[-1].end_time - first.end_time) < 5_000_000  # nanoseconds
    (failed,) = second.events
    assert failed.name == "replay" and failed.attributes["trident_py.attempt"] == 0 and second.status.is_ok
    reason = failed.attributes["trident_py.reason"]
    assert "bad mysql" in reason and "s3cret" not in reason
    attempts = {span.attributes["trident_py.attempt"] for span in spans if span.parent and
                span.parent.span_id == second.context.span_id}  # fmt: skip
    assert attempts == {0, 1} == {each["attempt"] for each in shown[1]["attempts"]}
    assert not third.status.is_ok and "no such word" in third.status.description
    assert len({span.context.trace_id for span in (first, second, third)}) == 3  # none of the whole run


def test_a_batch_of_more_attempts_than_are_kept_tells_how_many_it_had(exporter: Any) -> None:
    from trident_py.extras.opentelemetry.spans import Spans

    plan = counting(FeederBatchSpout(FIELDS)).build().plan
    spans = Spans(plan, with_context({}, topology="t", run="r", home=None), [])
    spans._name = "t"
    failed = [AttemptRecord(number, 1.0, ended=2.0, outcome="replay") for number in (3, 4, 61)]
    spans._tell("words", BatchRecord(7, 1.0, 0.0, [*failed, AttemptRecord(62, 2.0, ended=3.0, outcome="committed")]))
    (batch,) = exporter.get_finished_spans()
    assert batch.attributes["trident_py.attempts"] == 60


def test_without_its_extra_it_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trident_py.entry_points._points", lambda group: {})
    with LocalCluster() as cluster, pytest.raises(DefinitionError, match="needs opentelemetry, which this"):
        cluster.submitTopology("w", {"topology.opentelemetry": True}, counting(FeederBatchSpout(FIELDS)).build())
