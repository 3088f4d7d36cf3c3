"""A process that runs operations again: with another hash seed, another clock and no memory of earlier batches."""

from __future__ import annotations

import contextlib
import ctypes
import datetime
import gc
import os
import pickle
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import IO, Any, NamedTuple

import cloudpickle

from ...engine.processors.base import NodeContext
from ...errors import TridentError
from ...model.chunks import Chunk
from ...model.context import without_context
from ...model.user_traceback import describe_error
from ...operations.base import TridentOperationContext
from ...tuples import TransactionAttempt

AHEAD = 400 * 86_400 + 5 * 3_600 + 17 * 60 + 43  # another year, month, weekday, hour, minute and second
_OF_NOW = ("localtime", "gmtime", "ctime")
_SECONDS = ("time", "monotonic", "perf_counter", "process_time", "thread_time")


def move() -> None:
    """Move every clock of Python in this process ahead, whatever name it is imported under."""
    clocks = vars(time)
    for name in _SECONDS:
        clocks[name] = _later(clocks[name], AHEAD)
        clocks[f"{name}_ns"] = _later(clocks[f"{name}_ns"], AHEAD * 1_000_000_000)
    for name in _OF_NOW:
        clocks[name] = _of_now(clocks[name])
    asctime, strftime = time.asctime, time.strftime
    time.asctime = lambda *moment: asctime(*(moment or (time.localtime(),)))
    time.strftime = lambda form, *moment: strftime(form, *(moment or (time.localtime(),)))
    _replace(datetime.datetime, now=_now, utcnow=_utcnow, today=_today)
    _replace(datetime.date, today=_today)


def _later(read: Callable[[], Any], ahead: int) -> Callable[[], Any]:
    return lambda: read() + ahead


def _of_now(shown: Callable[..., Any]) -> Callable[..., Any]:
    return lambda seconds=None: shown(time.time() if seconds is None else seconds)


def _now(cls: Any, tz: Any = None) -> Any:
    return cls.fromtimestamp(time.time(), tz)


def _utcnow(cls: Any) -> Any:
    return cls.fromtimestamp(time.time(), datetime.UTC).replace(tzinfo=None)


def _today(cls: Any) -> Any:
    return cls.fromtimestamp(time.time())


def _replace(kind: type, **methods: Callable[..., Any]) -> None:
    """Replace methods of a class written in C. The class stays the same object, so its instances stay valid."""
    attributes = gc.get_referents(vars(kind))[0]  # the dict itself; vars() gives a view that cannot be written
    for name, method in methods.items():
        attributes[name] = classmethod(method)
    ctypes.pythonapi.PyType_Modified(ctypes.py_object(kind))


GRACE = 5.0
LONGEST = 60.0  # seconds that a batch waits for a second run
_SEEDS = ("4711", "1742")


class ShadowRun(NamedTuple):
    """One operation in one partition of one batch: the pickled operation and its input (port, chunk)."""

    operation: bytes
    txid: int
    attempt: int
    calls: list[tuple[int, bytes]]


class Again(NamedTuple):
    """The output of a second run, or the error it raised."""

    blocks: list[bytes]
    error: str = ""


class ShadowProcess:
    """A worker's handle of the other process. The first run starts it; it ends with `close`, or with its worker."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None

    def run(self, run: ShadowRun) -> Again:
        """Run the operation in the other process. Raises TridentError if that process has ended, or takes too long."""
        with self._lock:
            began = time.monotonic()
            try:
                return self._ask(self._start(), run)
            except (OSError, EOFError) as error:
                self.close()  # the next run starts another one
                late = f"took longer than {LONGEST:g} s" if time.monotonic() - began >= LONGEST else "has ended"
                raise TridentError(f"the process for the second run {late} ({error!r})") from error

    def _ask(self, process: subprocess.Popen[bytes], run: ShadowRun) -> Again:
        assert process.stdin is not None and process.stdout is not None
        watchdog = threading.Timer(LONGEST, process.kill)
        watchdog.start()
        try:
            _send(process.stdin, run)
            return Again(*_receive(process.stdout))
        finally:
            watchdog.cancel()

    def close(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        assert process.stdin is not None and process.stdout is not None
        with contextlib.suppress(OSError):
            process.stdin.close()
        try:
            process.wait(GRACE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()

    def _start(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            seed = next(seed for seed in _SEEDS if seed != os.environ.get("PYTHONHASHSEED"))
            paths = os.pathsep.join(path or str(os.curdir) for path in sys.path)
            self._process = subprocess.Popen(
                [sys.executable, "-c", f"from {__name__} import main; main()"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": paths},
            )
        return self._process


def freeze(spec: Any, context: NodeContext) -> bytes:
    """Pickle an operation, before its first tuple, with its place. Raises what pickling raises."""
    conf = without_context(context.conf)
    place = (context.operations.getPartitionIndex(), context.operations.numPartitions())
    return cloudpickle.dumps((spec, conf, place, context.inputs, context.fields, context.wanted, context.consumed))


def main() -> None:
    """Serve as entry point of the other process: answer until its worker closes the pipe. Operations print to
    stderr."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    requests = os.fdopen(os.dup(sys.stdin.fileno()), "rb")
    os.dup2(os.open(os.devnull, os.O_RDONLY), sys.stdin.fileno())
    move()
    with contextlib.suppress(EOFError, BrokenPipeError):
        while True:
            _send(answers, tuple(_again(ShadowRun(*_receive(requests)))))


def _again(run: ShadowRun) -> Again:
    blocks: list[bytes] = []
    try:
        spec, conf, place, inputs, fields, wanted, consumed = pickle.loads(run.operation)  # noqa: S301  from the process that started it
        operations = TridentOperationContext(*place)
        operations.transaction = TransactionAttempt(run.txid, run.attempt + 1)
        context = NodeContext(conf, operations, inputs, fields, wanted, consumed, _no_state, lambda kind, value: None)
        processor = spec.make(context)
        processor.emit = lambda chunk: blocks.append(chunk.encode())
        processor.start(operations.transaction)
        for port, block in run.calls:
            processor.execute(port, Chunk.decode(block))
        processor.finish()
        processor.close()
    except BaseException as error:
        return Again(blocks, describe_error(error))
    return Again(blocks)


def _no_state() -> Any:
    raise TridentError("a second run has no states")


def _send(line: IO[bytes], value: Any) -> None:
    block = pickle.dumps(tuple(value))
    line.write(len(block).to_bytes(8, "big") + block)
    line.flush()


def _receive(line: IO[bytes]) -> Any:
    size = line.read(8)
    block = line.read(int.from_bytes(size, "big")) if len(size) == 8 else b""
    if not block:
        raise EOFError
    return pickle.loads(block)  # noqa: S301  from the process that started it
