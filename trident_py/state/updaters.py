"""The updaters behind persistentAggregate.

They run between beginCommit and commit, where the tuples are, and emit the new values. On replay they run again; a
transactional map then answers with the stored value.
Source in Storm: CombinerAggStateUpdater, MapCombinerAggStateUpdater and the reducers' pair.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any

from ..errors import DefinitionError, StateError
from ..model.canonical import key_of
from ..model.chunks import Column, TupleList, concat
from ..operations import builtin
from ..operations.base import CombinerAggregator, ReducerAggregator, TridentCollector
from ..tuples import Fields, FieldsLike, TridentTuple, tuple_class
from .base import MapState, QueryFunction, Snapshottable, StateFactory, StateUpdater
from .fit import check_state
from .keys import ColumnKeys
from .persist import SilentCollector
from .updates import CombinerValueUpdater, Combines, ReducerValueUpdater


class MapGet(QueryFunction):
    """For map states: the value under the key made of the input fields, None for an absent key."""

    calls = ("multiGet",)

    def batchRetrieve(self, state: Any, tuples: Sequence[TridentTuple]) -> Sequence[Any]:
        check_state(state, self)
        return state.multiGet([tuple(key) for key in tuples])

    def execute(self, tuple: TridentTuple, result: Any, collector: TridentCollector) -> None:
        collector.emit((result,))


class SnapshotGet(QueryFunction):
    """The one value of a state, read once per batch and given to every tuple."""

    calls = ("get",)

    def batchRetrieve(self, state: Any, tuples: Sequence[TridentTuple]) -> Sequence[Any]:
        check_state(state, self)
        return [state.get()] * len(tuples)

    def execute(self, tuple: TridentTuple, result: Any, collector: TridentCollector) -> None:
        collector.emit((result,))


class TupleCollectionGet(QueryFunction):
    """Every row of this partition of the state, for every tuple. Broadcast the tuples to see all rows."""

    calls = ("getTuples",)

    def batchRetrieve(self, state: Any, tuples: Sequence[TridentTuple]) -> Sequence[Any]:
        check_state(state, self)
        rows = list(state.getTuples())
        return [rows] * len(tuples)

    def execute(self, tuple: TridentTuple, result: Any, collector: TridentCollector) -> None:
        for values in result:
            collector.emit(values)


class CombinerAggStateUpdater(StateUpdater):
    """Updates a global value by a combiner. Gets one tuple, the batch's result."""

    calls = ("update",)

    def __init__(self, agg: CombinerAggregator) -> None:
        self.agg = agg

    @property
    def calls_only_states(self) -> bool:
        return _is_built_in(self.agg)

    def updateState(
        self, state: Snapshottable, tuples: Sequence[TridentTuple], collector: TridentCollector
    ) -> None:
        check_state(state, self)
        if len(tuples) != 1:
            raise StateError(f"Combiner state updater should receive a single tuple. Received: {[*tuples]}")
        collector.emit((state.update(CombinerValueUpdater(self.agg, tuples[0][0])),))


class ReducerAggStateUpdater(StateUpdater):
    """Updates a global value by a reducer. Gets all tuples of the batch."""

    calls = ("update",)

    def __init__(self, agg: ReducerAggregator) -> None:
        self.agg = agg

    def updateState(
        self, state: Snapshottable, tuples: Sequence[TridentTuple], collector: TridentCollector
    ) -> None:
        check_state(state, self)
        collector.emit((state.update(ReducerValueUpdater(self.agg, tuples)),))


class MapCombinerAggStateUpdater(StateUpdater):
    """Updates a grouped state by a combiner. Gets one tuple per group, the group's partial result."""

    calls = ("multiUpdate",)

    def __init__(self, agg: CombinerAggregator, groupFields: FieldsLike, valueFields: FieldsLike) -> None:
        self.agg = agg
        self.groupFields = Fields.of(groupFields)
        self.valueFields = Fields.of(valueFields)
        if len(self.valueFields) != 1:
            raise DefinitionError(
                f"Combiner aggs only take a single field as input. Got this instead: {self.valueFields}"
            )

    @property
    def calls_only_states(self) -> bool:
        return _is_built_in(self.agg)

    def name_fields(self, factory: StateFactory) -> Fields:
        return self.groupFields.concat(self.valueFields.without(self.groupFields))

    def updateState(
        self, map: MapState, tuples: Sequence[TridentTuple], collector: TridentCollector
    ) -> None:
        check_state(map, self)
        keys, values = self._columns(tuples)
        news = map.multiUpdate(keys, Combines(self.agg, values, not isinstance(collector, SilentCollector)))
        _emit(collector, keys, news)

    def _columns(self, tuples: Sequence[TridentTuple]) -> tuple[Sequence[tuple], Column]:
        """Return keys and partial results; as the columns that came in, if none is short."""
        if len(self.groupFields) and isinstance(tuples, TupleList) and not any(chunk.short for chunk in tuples.chunks):
            chunk = concat(tuples.chunks)
            return ColumnKeys([chunk.columns[name] for name in self.groupFields]), chunk.columns[self.valueFields[0]]
        fields = tuples[0].getFields()
        group = _picker(fields, self.groupFields)
        value = itemgetter(fields.fieldIndex(self.valueFields[0]))
        return [group(values) for values in tuples], [value(values) for values in tuples]


class MapReducerAggStateUpdater(StateUpdater):
    """Updates a grouped state by a reducer. Gets all tuples and groups them."""

    calls = ("multiUpdate",)

    def __init__(self, agg: ReducerAggregator, groupFields: FieldsLike, inputFields: FieldsLike) -> None:
        self.agg = agg
        self.groupFields = Fields.of(groupFields)
        self.inputFields = Fields.of(inputFields)

    def name_fields(self, factory: StateFactory) -> Fields:
        return self.groupFields.concat(self.inputFields.without(self.groupFields))

    def updateState(
        self, map: MapState, tuples: Sequence[TridentTuple], collector: TridentCollector
    ) -> None:
        check_state(map, self)
        fields = tuples[0].getFields()
        group, pick = _picker(fields, self.groupFields), _picker(fields, self.inputFields)
        input_class = tuple_class(self.inputFields)
        groups: dict[tuple, tuple[tuple, list[TridentTuple]]] = {}
        for values in tuples:
            key = group(values)
            groups.setdefault(key_of(key), (key, []))[1].append(input_class(pick(values)))
        keys = [key for key, _ in groups.values()]
        news = map.multiUpdate(keys, [ReducerValueUpdater(self.agg, rows) for _, rows in groups.values()])
        _emit(collector, keys, news)


def _picker(fields: Fields, wanted: Fields) -> Callable[[TridentTuple], tuple]:
    """Return a function from a tuple with these fields to the plain tuple of the wanted values."""
    at = [fields.fieldIndex(name) for name in wanted]
    if at == list(range(len(at))):
        until = slice(len(at))
        return lambda values: values[until]
    if len(at) == 1:
        only = at[0]
        return lambda values: (values[only],)
    return itemgetter(*at)


def _emit(collector: TridentCollector, keys: Sequence[tuple], news: Sequence[Any]) -> None:
    if isinstance(collector, SilentCollector):
        return
    emit = collector.emit
    for key, new in zip(keys, news, strict=True):
        emit((*key, new))


def _is_built_in(combiner: CombinerAggregator) -> bool:
    return type(combiner).__module__ == builtin.__name__
