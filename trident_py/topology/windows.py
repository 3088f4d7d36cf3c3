"""The windows of a stream: its nodes are a state, and in event time two sides behind it, results and late tuples."""

from __future__ import annotations

from typing import Any, Self, overload

from ..engine.processors import WindowPersist, WindowSide, WindowUpdater
from ..engine.processors.windows import LATE
from ..errors import DefinitionError
from ..model.plan import ProcessorNode, StateUse
from ..tuples import Fields, FieldsLike
from ..windowing import (
    DurationWindow,
    InMemoryWindowsStoreFactory,
    MakesWindows,
    SlidingCountWindow,
    SlidingDurationWindow,
    WindowConfig,
)
from ..windowing.config import DurationLike
from .arguments import arguments, check_aggregator, check_object
from .graph import NodeHandle
from .roles import AnyAggregator


class Windowed(NodeHandle):
    """The part of a stream's handle that adds windows."""

    def tumblingWindow(
        self,
        windowLength: int | DurationLike,
        windowStoreFactory: MakesWindows,
        inputFields: FieldsLike | None,
        aggregator: AnyAggregator,
        functionFields: FieldsLike,
        *,
        windowFields: FieldsLike | None = None,
        stateName: str | None = None,
    ) -> Self:
        """Return a window of each so many tuples, or of each such Duration; see `window`."""
        call = windowStoreFactory, inputFields, aggregator, functionFields
        return self.slidingWindow(
            windowLength, windowLength, *call, windowFields=windowFields, stateName=stateName
        )

    def slidingWindow(
        self,
        windowLength: int | DurationLike,
        slideLength: int | DurationLike,
        windowStoreFactory: MakesWindows,
        inputFields: FieldsLike | None,
        aggregator: AnyAggregator,
        functionFields: FieldsLike,
        *,
        windowFields: FieldsLike | None = None,
        stateName: str | None = None,
    ) -> Self:
        """Open after each ``slideLength`` a window of the last ``windowLength``: two numbers of tuples, or two
        Durations; see `window`."""
        config = config_of(windowLength, slideLength)
        call = windowStoreFactory, inputFields, aggregator, functionFields
        return self.window(config, *call, windowFields=windowFields, stateName=stateName)

    @overload
    def window(
        self,
        windowConfig: WindowConfig,
        windowStoreFactory: MakesWindows,
        inputFields: FieldsLike | None,
        aggregator: AnyAggregator,
        functionFields: FieldsLike,
        *,
        windowFields: FieldsLike | None = None,
        stateName: str | None = None,
    ) -> Self: ...
    @overload
    def window(
        self,
        windowConfig: WindowConfig,
        inputFields: FieldsLike | None,
        aggregator: AnyAggregator,
        functionFields: FieldsLike,
        *,
        windowFields: FieldsLike | None = None,
        stateName: str | None = None,
    ) -> Self: ...
    def window(self, *args: Any, **named: Any) -> Self:
        """Aggregate windows over the tuples of each **partition**, across batches.

        ``window(config, [storeFactory,] fields, aggregator, functionFields)``. Without a store factory the window is in
        the driver's memory. Output: the function fields, then ``windowFields``, two names for the start and the end of
        the window (in milliseconds since 1970, or in tuples of the partition; the end is exclusive). ``stateName``
        distinguishes the window from others; by default windows are numbered. Tuples enter in the commit phase. On
        replay they enter once, and the same windows are emitted again.
        """
        call = arguments(Windowed.window, args, named)
        store = call.get("windowStoreFactory") or InMemoryWindowsStoreFactory()
        config = _check(call["windowConfig"], store)
        use = self.graph.state_use(store.windowState(config, call["stateName"] or self._default_name()), None)
        return self._window(config, use, call)

    def lateTuples(self) -> Self:
        """Return the tuples that came too late for a window in event time; call it on the stream that the window
        returned."""
        node = self.graph.node(self.node_id)
        if not isinstance(node, ProcessorNode) or not isinstance(node.spec, WindowSide) or node.spec.late:
            raise DefinitionError(
                "lateTuples() belongs to the stream that a window in event time returns: no other stream has late "
                "tuples. A window is in event time if its config has withTimestampField(...)"
            )
        window = type(self)(self.graph, node.parents[0], self.getName())
        outputs = self.graph.node(self.graph.node(window.node_id).parents[0]).fields
        inputs = window.getOutputFields().only([f"{LATE}.{name}" for name in outputs])
        return window._process(WindowSide(True, inputs, outputs), outputs)

    def _default_name(self) -> str:
        specs = [node.spec for node in self.graph.plan().nodes if isinstance(node, ProcessorNode)]
        return f"window{sum(isinstance(spec, WindowPersist) for spec in specs) + 1}"

    def _window(self, config: WindowConfig, use: StateUse, call: dict[str, Any]) -> Self:
        """Return the window's node, and in event time behind it the node of its results."""
        whole, inputs = self.getOutputFields(), self.check(call["inputFields"])
        outputs, ends = Fields.of(call["functionFields"]), _ends(call["windowFields"])
        late = _in_event_time(self, config)
        results = outputs.concat(ends)
        aggregator = check_aggregator("a window", call["aggregator"])
        updater = WindowUpdater(config, aggregator, inputs, len(outputs), len(ends), whole if late else Fields())
        everything = results.concat(Fields(LATE)).concat(late) if late else results
        spec = WindowPersist(updater, whole if late else inputs, everything)
        window = self._process(spec, everything, state=use, committer=True)
        return window._process(WindowSide(False, results, results), results) if late else window


def config_of(length: int | DurationLike, slide: int | DurationLike) -> WindowConfig:
    """Count windows of two numbers, duration windows of two durations. Raises DefinitionError for one of each."""
    numbers = [isinstance(value, int) and not isinstance(value, bool) for value in (length, slide)]
    if all(numbers):
        return SlidingCountWindow.of(length, slide)  # type: ignore[arg-type]
    if any(numbers):
        raise DefinitionError(f"a window has two numbers of tuples or two durations; got {length!r} and {slide!r}")
    return SlidingDurationWindow.of(length, slide)  # type: ignore[arg-type]


def _check(config: Any, store: Any) -> WindowConfig:
    """Return the config. Raises DefinitionError if it or the store does not fit."""
    if not isinstance(config, WindowConfig):
        raise DefinitionError(f"a window takes a WindowConfig, as TumblingCountWindow.of(100); got {config!r}")
    config.validate()
    if not isinstance(check_object("a window", store, MakesWindows), MakesWindows):
        raise DefinitionError(f"a window takes a WindowsStoreFactory, got {store!r}")
    return config


def _ends(names: FieldsLike | None) -> Fields:
    ends = Fields.of(names)
    if len(ends) > 2:
        raise DefinitionError(f"windowFields names the start and the end of a window; got {len(ends)} names: {ends}")
    return ends


def _in_event_time(stream: NodeHandle, config: WindowConfig) -> Fields:
    """Return the fields of late tuples; none without event time."""
    if not isinstance(config, DurationWindow) or config.timestampField is None:
        return Fields()
    stream.check(config.timestampField)
    fields = stream.getOutputFields()
    types = {f"{LATE}.{name}": ddl for name, ddl in fields.types.items()}
    return Fields.of_names([f"{LATE}.{name}" for name in fields], types)
