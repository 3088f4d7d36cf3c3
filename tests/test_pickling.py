"""What goes to another process by name, and what with its definition."""

from __future__ import annotations

import pickle
import subprocess
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import cloudpickle
import pytest

from trident_py.model import pickling
from trident_py.model.chunks import Chunk
from trident_py.model.pickling import dumps

# Another process, as a worker is: reads a pickled list, shows it, and sends it back reversed.
WORKER = """
import pickle, sys
from trident_py.model.pickling import dumps
values = pickle.loads(sys.stdin.buffer.read())
print(*map(repr, values), file=sys.stderr)
again = pickle.loads(dumps(values))
assert [type(value) for value in again] == [type(value) for value in values]
sys.stdout.buffer.write(dumps(values[::-1]))
"""
MAIN = f"""
import pickle, subprocess, sys
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple
from trident_py.model.pickling import dumps

class Colour(Enum):
    RED = 1

@dataclass(frozen=True)
class Car:
    made = 0
    name: str
    colour: Colour = Colour.RED

class Point(NamedTuple):
    x: int
    y: object = None

def worker(values):
    done = subprocess.run([sys.executable, "-c", {WORKER!r}], input=dumps(values), capture_output=True, check=True)
    print(done.stderr.decode().strip())
    return pickle.loads(done.stdout)

cars = [Car("a"), Point(1, Car("b")), Colour.RED, Car]
first = dumps(cars)
Car.made = 2
back = worker(cars)
assert back == cars[::-1] and back[0] is Car and Car.made == 2 and back[1] is Colour.RED, back
assert dumps(cars) == first
"""

PARTS = """
class Part:
    def __init__(self, n):
        self.n = n
    def __repr__(self):
        return f"Part {double(self.n)}"

def double(n):
    return 2 * n
"""


@pytest.fixture
def parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A module of the user's that other machines do not have."""
    (tmp_path / "own_parts.py").write_text(PARTS)
    monkeypatch.syspath_prepend(str(tmp_path))
    import own_parts  # type: ignore[import-not-found]

    return own_parts


def worker(block: bytes) -> tuple[str, bytes]:
    done = subprocess.run([sys.executable, "-c", WORKER], input=block, capture_output=True, check=True)
    return done.stderr.decode().strip(), done.stdout


def test_classes_of_the_main_program_travel_and_stay_one_class() -> None:
    """A definition that comes back changes nothing of the class that the program has."""
    done = subprocess.run([sys.executable, "-c", MAIN], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    car = "Car(name='{}', colour=<Colour.RED: 1>)"
    shown = f"{car.format('a')} Point(x=1, y={car.format('b')}) <Colour.RED: 1> <class '__main__.Car'>"
    assert done.stdout.strip() == shown


def test_what_every_process_can_import_goes_by_name() -> None:
    values = [1, "__main__", ("a", None), Fraction(1, 2), Path("x"), dumps, Fraction]
    assert dumps(values[3:]) == pickle.dumps(values[3:], protocol=5)
    assert pickle.loads(dumps(values)) == values


def test_a_module_goes_by_name_until_it_is_remembered(parts: Any) -> None:
    values = [parts.Part(4), parts.double]
    with pytest.raises(subprocess.CalledProcessError):
        worker(dumps(values))
    pickling.remember([parts])
    shown, back = worker(dumps(values))
    assert shown.startswith("Part 8 <function double")
    double, part = pickle.loads(back)
    assert type(part) is parts.Part and part.n == 4 and double(5) == 10
    assert "own_parts" not in cloudpickle.list_registry_pickle_by_value()


def test_a_column_of_a_class_made_in_a_function_comes_back() -> None:
    class Local:
        def __init__(self, n: int) -> None:
            self.n = n

    column = [Local(1), None, Local(2)]
    back = Chunk.decode(Chunk({"v": column}, 3).encode()).pylist("v")
    assert [value and value.n for value in back] == [1, None, 2] and type(back[0]) is Local


def test_what_the_driver_reads_back_leaves_its_classes_as_they_are() -> None:
    class Local:
        made = 0

        def doubled(self) -> int:
            return 2 * self.made

    block, method = cloudpickle.dumps([Local(), Local]), Local.doubled
    Local.made = 1
    back, kind = pickling.loads(block)
    assert kind is type(back) is Local and Local.doubled is method and back.doubled() == 2


def test_a_view_becomes_bytes_and_a_lock_is_refused() -> None:
    import threading

    assert pickle.loads(dumps([memoryview(b"abc"), 1])) == [b"abc", 1]
    with pytest.raises(TypeError, match="cannot pickle"):
        dumps([threading.Lock()])
