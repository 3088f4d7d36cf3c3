"""Metrics of user code: registered in `prepare` and `makeState`, shown by ``running.progress``.

A metric lives where its operation or state is: on Spark in a Python worker, one for each partition. After each attempt
of a batch the tasks report what is new, and the driver adds it up under the metric's name, over all partitions of a
component. Metrics count the work that was done: a replayed batch counts again, as in Storm, and what a worker counted
since its last report dies with it. For numbers that are exact, use a state.
Source in Storm: IMetricsContext, org.apache.storm.metric.api, and com.codahale.metrics, whose names these are.
"""

from __future__ import annotations

from .context import IMetricsContext
from .metric_types import (
    AssignableMetric,
    CombinedMetric,
    Counter,
    CountMetric,
    Gauge,
    Histogram,
    ICombiner,
    IMetric,
    IReducer,
    MeanReducer,
    Meter,
    Metric,
    MetricSet,
    MultiCountMetric,
    ReducedMetric,
    Timer,
)
from .tallies import Reported, Snapshot, Tallies

__all__ = [
    "AssignableMetric",
    "CombinedMetric",
    "CountMetric",
    "Counter",
    "Gauge",
    "Histogram",
    "ICombiner",
    "IMetric",
    "IMetricsContext",
    "IReducer",
    "MeanReducer",
    "Meter",
    "Metric",
    "MetricSet",
    "MultiCountMetric",
    "ReducedMetric",
    "Reported",
    "Snapshot",
    "Tallies",
    "Timer",
]
