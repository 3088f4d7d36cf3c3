"""Base class of the two states that write a record for each tuple: options, checks and repr."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from trident_py.kafka.clients import Cluster
from trident_py.state import Location, Needs, Reading, StateFactory, StatePlace
from trident_py.tuples import FieldsLike

from ...diagnostics import Finding
from ...rows import RowUpdater
from ..settings import cluster_of, location_of, pairs
from ..topic_admin import look, partition_count
from .records import RecordForm


@dataclass(frozen=True, repr=False)
class RecordFactory(StateFactory):
    """The options that both factories share. Each adds its own, including ``partitions`` and ``settings``; ``cluster``
    and ``form`` are derived."""

    bootstrap: str
    topic: str
    value: FieldsLike | None = None
    key: FieldsLike | None = None
    headers: FieldsLike | None = None
    mapper: Any = None
    topicSelector: Any = None
    asJson: bool = False
    cluster: Cluster = field(init=False, compare=False)
    form: RecordForm = field(init=False, compare=False)
    shown: ClassVar[tuple[str, ...]] = ("value", "key", "headers", "mapper", "topicSelector")
    """The options that the repr names if they are set."""

    def __post_init__(self) -> None:
        """Raise DefinitionError for options that contradict each other."""
        form = RecordForm.of(
            self.topic, self.value, self.key, self.headers, self.mapper, self.topicSelector, self.asJson
        )
        options = vars(self)  # with those of the subclass
        settings = options["settings"]
        derived: dict[str, Any] = {"value": form.value, "key": form.key, "headers": form.headers, "form": form}
        derived |= {"settings": pairs(self.topic, settings), "cluster": cluster_of(self.bootstrap, settings)}
        for name, value in derived.items():
            object.__setattr__(self, name, value)
        partition_count(self.topic, options["partitions"])

    @property
    def needs(self) -> Needs:
        return self.cluster.needs

    @property
    def location(self) -> Location:
        return location_of(self.cluster, self.topic, "records")  # records of other states do not change its own

    @property
    def reading(self) -> Reading:
        return Reading.NOTHING

    @property
    def own_updater(self) -> RowUpdater:
        return RowUpdater()

    def check_place(self, place: StatePlace) -> None:
        """Called by `build()`. Raises DefinitionError for fields that the tuples do not have."""
        self.form.check(place.fields)

    def check(self) -> Sequence[Finding]:
        """Look at the topic and write nothing. (A selector's topics are unknown before the start.)"""
        return look(self.cluster, self.topic, vars(self)["partitions"])

    def __repr__(self) -> str:
        options = "".join(f", {name}={value!r}" for name in self.shown if (value := vars(self)[name]))
        return f"{type(self).__name__}({self.bootstrap!r}, {self.topic!r}{options})"
