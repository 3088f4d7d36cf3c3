"""The interfaces of user code: functions, filters, aggregators, reducers.

The code runs where the tuples are: on Spark in the Python workers of the executors, on LocalCluster in this process.
One object serves one partition. It is made by unpickling; `prepare` is called once before its first batch, `cleanup`
when the run ends (on Spark only if the worker ends normally). On replay everything runs again, with its side effects.
Source in Storm: org.apache.storm.trident.operation.

A method marked ``abstractmethod`` is required: a topology refuses an object without it when it is defined. (The classes
have no ABCMeta: ported code may make an object first and fill it later.)
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar

from ..errors import DefinitionError
from ..metrics import IMetricsContext
from ..tuples import Fields, FieldsLike, TransactionAttempt, TridentTuple


def name_of(operation: Any) -> str:
    """Return the name of an operation in plans and errors: a function's own name, an object's class."""
    # It may be an object of any class; only functions, classes and declared callables have a name of their own.
    return getattr(operation, "__qualname__", None) or type(operation).__name__


def short_name(operation: Any) -> str:
    """Return the name of an operation; of a nested function, only its own name."""
    return name_of(operation).rpartition("<locals>.")[2]


class TridentCollector:
    """Receives the results of an operation.

    ``emit(values)`` takes the values of one tuple, a tuple or list. ``reportError`` records an event of kind
    "reported"; it does not fail the batch (raise FailedException for that).
    """

    __slots__ = ("emit", "report")

    def __init__(self, emit: Callable[[Any], Any], report: Callable[[BaseException], Any] | None = None) -> None:
        self.emit = emit
        self.report = report

    def reportError(self, error: BaseException) -> None:
        if self.report is not None:
            self.report(error)

    def flush(self) -> None:
        """Do nothing; a transport hint in Storm."""


class ProjectionFactory:
    """Makes tuples of some fields. ``create(parent)`` takes a tuple that has these fields."""

    def __init__(self, parent: Fields, fields: FieldsLike) -> None:
        self.fields = Fields.of(fields)
        missing = [name for name in self.fields if name not in parent]
        if missing:
            raise DefinitionError(f"makeProjectionFactory: the input has no field {missing[0]!r}; it has {parent}")

    def create(self, parent: TridentTuple) -> TridentTuple:
        return parent.select(self.fields)


class _PartitionContext(IMetricsContext):
    """The partition that an operation serves, and the running attempt, which all operations of a task share."""

    def __init__(self, partitionIndex: int, numPartitions: int) -> None:
        super().__init__()
        self._index = partitionIndex
        self._count = numPartitions
        self._attempt: list[TransactionAttempt | None] = [None]

    @property
    def transaction(self) -> TransactionAttempt | None:
        return self._attempt[0]

    @transaction.setter
    def transaction(self, attempt: TransactionAttempt | None) -> None:
        self._attempt[0] = attempt

    def getPartitionIndex(self) -> int:
        return self._index

    def numPartitions(self) -> int:
        return self._count


class TridentOperationContext(_PartitionContext):
    """The index of the partition that an operation serves, and the number of partitions; passed to `prepare`.

    ``transaction`` is the running attempt, during every call of user code. Its ``register...`` methods take metrics of
    the operation (`trident_py.metrics`), which ``running.progress`` shows.
    """

    _inputs: Fields = Fields()

    def derive(self, inputs: tuple[Fields, ...], several: bool = False) -> TridentOperationContext:
        """Return the context of one operation of the same task. ``inputs``: what its tuples have, by stream if
        ``several``."""
        kind = TridentMultiReducerContext if several else TridentOperationContext
        context: Any = kind(self._index, self._count)
        context._attempt = self._attempt
        context._inputs = inputs if several else Fields.of_names([name for fields in inputs for name in fields])
        return context

    def makeProjectionFactory(self, fields: FieldsLike) -> ProjectionFactory:
        """Make tuples of some of the operation's input fields. Raises DefinitionError for a field it has not."""
        return ProjectionFactory(self._inputs, fields)


class TridentMultiReducerContext(_PartitionContext):
    """The context of a MultiReducer: a TridentOperationContext, but for projections of several streams."""

    _inputs: tuple[Fields, ...] = ()

    def makeProjectionFactory(self, streamIndex: int, fields: FieldsLike) -> ProjectionFactory:
        """Make tuples of some of the fields that the reducer reads of a stream."""
        return ProjectionFactory(self._inputs[streamIndex], fields)


class Prepared:
    """What all user code here has: `prepare` is called once before the first tuple, `cleanup` at the end."""

    def prepare(self, conf: dict, context: TridentOperationContext) -> None:
        """Called once per partition, where the tuples are, before the first batch."""

    def cleanup(self) -> None:
        """Called when the run ends. Not guaranteed on Spark."""


# Which class inherits from which is Storm's, so that any two of them can be bases of one class where Java allows it.
class Operation(Prepared):
    """The base of operations that Storm prepares."""


class BaseOperation(Operation): ...


class EachOperation(Operation): ...


class Function(EachOperation):
    """`execute` gets the input fields of one tuple. Each result that it emits is appended to the tuple.

    Without a result the tuple is dropped; several results repeat it.
    """

    @abstractmethod
    def execute(self, tuple: TridentTuple, collector: TridentCollector) -> None:
        raise NotImplementedError


class Filter(EachOperation):
    """Keeps the tuples for which `isKeep` is true."""

    @abstractmethod
    def isKeep(self, tuple: TridentTuple) -> bool:
        raise NotImplementedError


class MapFunction(Prepared):
    """`execute` gets the whole tuple and returns the values of the tuple that replaces it."""

    @abstractmethod
    def execute(self, tuple: TridentTuple) -> Any:
        raise NotImplementedError


class FlatMapFunction(Prepared):
    """`execute` gets the whole tuple and returns an iterable of tuples' values, which replace it."""

    @abstractmethod
    def execute(self, tuple: TridentTuple) -> Iterable[Any]:
        raise NotImplementedError


class OperationAwareMapFunction(MapFunction, Operation):
    """A MapFunction, which may have `prepare` and `cleanup` here anyway."""


class OperationAwareFlatMapFunction(FlatMapFunction, Operation):
    """A FlatMapFunction, which may have `prepare` and `cleanup` here anyway."""


class Consumer(Prepared):
    """`accept` sees each tuple as it passes. It runs again when the batch is replayed."""

    @abstractmethod
    def accept(self, tuple: TridentTuple) -> None:
        raise NotImplementedError


class Aggregator(Operation):
    """Sees the tuples of a batch, a group or a partition, and may emit at any time.

    `init` starts a value, `aggregate` takes one tuple and may return the new value (None keeps the old one), `complete`
    ends it. batchId is a TransactionAttempt. A group's `init` runs on its first tuple.

    ``output_type``, in all three kinds of aggregators, is the type of a single function field that declares none.
    """

    output_type: ClassVar[str | None] = None

    @abstractmethod
    def init(self, batchId: Any, collector: TridentCollector) -> Any:
        raise NotImplementedError

    @abstractmethod
    def aggregate(self, value: Any, tuple: TridentTuple, collector: TridentCollector) -> Any:
        raise NotImplementedError

    @abstractmethod
    def complete(self, value: Any, collector: TridentCollector) -> None:
        raise NotImplementedError


class CombinerAggregator:
    """Combines values pairwise. Each partition makes a partial result before any exchange.

    `combine` must be associative and `zero` its identity: `zero` is folded in once per partial result and once more at
    the end.

    ``sql`` names `combine` in SQL, with ``{old}`` and ``{new}``, neither of them NULL: ``"{old} + {new}"``. A SQL map
    state with one numeric value column then combines inside the database; the result must be the same in every database
    that the state is used on.

    ``kernel`` is "count" or "sum" for a combiner that does exactly that; Arrow then does it on whole columns.

    A subclass that overrides `combine`, itself or by another base, inherits no ``sql``, and one that overrides any of
    the three methods no ``kernel``: it names its own.

    ``needs_input``: `init` reads an input field; a topology that gives it none is refused when it is defined.
    """

    sql: ClassVar[str | None] = None
    kernel: ClassVar[str | None] = None
    needs_input: ClassVar[bool] = False
    output_type: ClassVar[str | None] = None

    def __init_subclass__(cls, **arguments: Any) -> None:
        super().__init_subclass__(**arguments)
        combines = next(base for base in cls.__mro__ if "sql" in vars(base))
        if cls.combine is not combines.combine:  # type: ignore[attr-defined]
            cls.sql = None
        base = next(base for base in cls.__mro__ if "kernel" in vars(base))
        own, named = (cls.init, cls.combine, cls.zero), (base.init, base.combine, base.zero)  # type: ignore[attr-defined]
        if own != named:
            cls.kernel = None

    @abstractmethod
    def init(self, tuple: TridentTuple) -> Any:
        raise NotImplementedError

    @abstractmethod
    def combine(self, val1: Any, val2: Any) -> Any:
        raise NotImplementedError

    @abstractmethod
    def zero(self) -> Any:
        raise NotImplementedError


class ReducerAggregator:
    """Folds tuples into a value, one after the other. All tuples travel to the partition that makes the value."""

    output_type: ClassVar[str | None] = None

    @abstractmethod
    def init(self) -> Any:
        raise NotImplementedError

    @abstractmethod
    def reduce(self, curr: Any, tuple: TridentTuple) -> Any:
        raise NotImplementedError


class MultiReducer(Prepared):
    """Sees the tuples of several streams, of one partition and batch; streamIndex tells the streams apart.

    `execute` may return the new state (None keeps the old one). `prepare` gets a TridentMultiReducerContext.
    """

    def prepare(self, conf: dict, context: Any) -> None:
        """Called once per partition, where the tuples are, before the first batch."""

    @abstractmethod
    def init(self, collector: TridentCollector) -> Any:
        raise NotImplementedError

    @abstractmethod
    def execute(self, state: Any, streamIndex: int, input: TridentTuple, collector: TridentCollector) -> Any:
        raise NotImplementedError

    @abstractmethod
    def complete(self, state: Any, collector: TridentCollector) -> None:
        raise NotImplementedError


class GroupedMultiReducer(Prepared):
    """A MultiReducer that runs once per group of several streams with the same grouping."""

    def prepare(self, conf: dict, context: Any) -> None:
        """Prepare as `MultiReducer` does."""

    @abstractmethod
    def init(self, collector: TridentCollector, group: TridentTuple) -> Any:
        raise NotImplementedError

    @abstractmethod
    def execute(
        self, state: Any, streamIndex: int, group: TridentTuple, input: TridentTuple, collector: TridentCollector
    ) -> Any:
        raise NotImplementedError

    @abstractmethod
    def complete(self, state: Any, group: TridentTuple, collector: TridentCollector) -> None:
        raise NotImplementedError


class CustomStreamGrouping:
    """Chooses partitions, for `Stream.partition`. One copy serves one partition that sends.

    On replay it runs again. A choice must be a function of the tuple if the state behind it needs that
    (``topology.guarantees()`` reads the code).
    """

    def prepare(self, context: TridentOperationContext, stream: str, targetTasks: Sequence[int]) -> None:
        """Called once, where the tuples are. ``context``: of the sending partition. ``stream``: its name, or "".

        ``targetTasks``: the numbers of the partitions, from 0 on.
        """

    @abstractmethod
    def chooseTasks(self, taskId: int, values: TridentTuple) -> Sequence[int]:
        """Return the partitions that get the tuple; none drops it. ``taskId``: the sending partition.

        ``values``: the tuple, without the batch id that Storm puts before its values.
        """
        raise NotImplementedError


class Assembly:
    """A reusable part of a topology: `apply` gets a Stream and returns one."""

    @abstractmethod
    def apply(self, stream: Any) -> Any:
        raise NotImplementedError


class BaseFunction(BaseOperation, Function): ...


class BaseFilter(BaseOperation, Filter): ...


class BaseAggregator(BaseOperation, Aggregator): ...


class BaseMultiReducer(MultiReducer): ...
