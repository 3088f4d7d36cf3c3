"""The streaming source of a component's Python spouts: its rows are descriptors, its offsets the spouts' metadata.

Spark asks for the next batch after the last one is committed, writes the end offset to its offset log, and only then
runs the batch. The content of a txid is therefore durable before any tuple is processed. Spark's planner process holds
the reader and calls the driver process, where the coordinators live.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from typing import Any

from pyspark.sql.datasource import DataSource, SimpleDataSourceStreamReader
from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow

from ..checkpoints.sparklogs import Offset
from ..home import HomeAddress
from .stage import SCHEMA


def data_source(name: str, home: HomeAddress, paths: tuple[str, ...]) -> type[DataSource]:
    """The data source of one cluster. The option ``run`` names the run whose planner it calls.

    The classes are nested, so that they are pickled by value: Spark's planner process can import no module of
    trident_py before it knows the driver's import path.
    """
    address = pickle.dumps(home)

    class DescriptorReader(SimpleDataSourceStreamReader, SupportsTriggerAvailableNow):
        def __init__(self, run: str) -> None:
            import sys

            sys.path.extend(path for path in paths if path not in sys.path)
            from trident_py.home import Proxy

            self.planner: Any = Proxy(pickle.loads(address), f"{run}/planner")

        def prepareForTriggerAvailableNow(self) -> None:
            """Does nothing: the run ends when no spout is ready."""

        def initialOffset(self) -> Offset:
            offset: Offset = self.planner.initial()
            return offset

        def read(self, start: Offset) -> tuple[Iterator[tuple], Offset]:
            rows, end = self.planner.next_batch(start)
            return iter(rows), end

        def readBetweenOffsets(self, start: Offset, end: Offset) -> Iterator[tuple]:
            return iter(self.planner.again(start, end))

    class DescriptorSource(DataSource):
        @classmethod
        def name(cls) -> str:
            return name

        def schema(self) -> str:
            return SCHEMA

        def simpleStreamReader(self, schema: Any) -> SimpleDataSourceStreamReader:
            return DescriptorReader(self.options["run"])

    return DescriptorSource
