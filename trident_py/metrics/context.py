"""Where user code registers its metrics."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..errors import DefinitionError
from .metric_types import (
    CombinedMetric,
    Counter,
    Gauge,
    Histogram,
    ICombiner,
    IMetric,
    IReducer,
    Meter,
    Metric,
    MetricSet,
    ReducedMetric,
    Timer,
)
from .tallies import Reported


class IMetricsContext:
    """Registers the metrics of one operation or state, in one partition.

    Call it in `prepare` and in `makeState`. Metrics of one name, in other operations too, are added up. A name belongs
    to one kind of metric. Raises DefinitionError for a name of another kind, and for a second `registerMetric` of one.
    """

    def __init__(self) -> None:
        self._metrics: dict[str, Metric] = {}

    def registerMetric(self, name: str, metric: Any, timeBucketSizeInSecs: int = 0) -> Any:
        """Register an IMetric, or an IReducer or ICombiner, for which it makes a metric. Returns the metric.

        The bucket is an attempt: ``timeBucketSizeInSecs`` has no effect.
        """
        if isinstance(metric, IReducer):
            metric = ReducedMetric(metric)
        elif isinstance(metric, ICombiner):
            metric = CombinedMetric(metric)
        if not callable(vars(type(metric)).get("getValueAndReset")) and not isinstance(metric, IMetric):
            raise DefinitionError(f"registerMetric takes an IMetric, an IReducer or an ICombiner, got {metric!r}")
        if name in self._metrics:
            raise DefinitionError(f"The same metric name {name!r} was registered twice.")
        self._add(name, Gauge(metric.getValueAndReset))
        return metric

    def registerTimer(self, name: str) -> Timer:
        return self._qualify(name, Timer)

    def registerHistogram(self, name: str) -> Histogram:
        return self._qualify(name, Histogram)

    def registerMeter(self, name: str) -> Meter:
        return self._qualify(name, Meter)

    def registerCounter(self, name: str) -> Counter:
        return self._qualify(name, Counter)

    def registerGauge(self, name: str, gauge: Any) -> Any:
        """Register an object with `getValue`, or a callable. Returns it."""
        self._add(name, gauge if isinstance(gauge, Gauge) else Gauge(gauge if callable(gauge) else gauge.getValue))
        return gauge

    def registerMetricSet(self, prefix: str, set: MetricSet) -> None:
        for name, metric in set.getMetrics().items():
            full = f"{prefix}.{name}"
            if isinstance(metric, MetricSet):
                self.registerMetricSet(full, metric)
            elif isinstance(metric, Metric):
                self._add(full, metric)
            else:
                self.registerGauge(full, metric)

    def _qualify(self, name: str, kind: type[Any]) -> Any:
        """Return the metric of this name; a new one, if there is none."""
        found = self._metrics.get(name)
        if type(found) is kind:
            return found
        return self._add(name, kind())

    def _add(self, name: str, metric: Metric) -> Metric:
        if not isinstance(name, str) or not name:
            raise DefinitionError(f"a metric's name must be a text, got {name!r}")
        if name in self._metrics:
            kind = type(self._metrics[name]).__name__
            raise DefinitionError(f"the metric {name!r} is a {kind} already; choose another name")
        self._metrics[name] = metric
        return metric

    def take(self, failed: Callable[[str, Exception], Any]) -> list[Reported]:
        """Return what is new since the last call. ``failed(name, error)``: a gauge raised an error; no batch fails by
        it."""
        reports = []
        for name, metric in self._metrics.items():
            try:
                new = metric.take()
            except Exception as error:
                failed(name, error)
                continue
            if new is not None:
                reports.append(Reported(name, metric.tally(), new))
        return reports
