"""Values of a class that is defined in the main program, on Spark: workers have another main program."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.spark
APP = Path(__file__).with_name("main_classes.py")


def test_values_of_a_class_of_the_main_program_travel(tmp_path: Path) -> None:
    """Through exchanges, into a state of the driver and back, and out as collected rows."""
    done = subprocess.run([sys.executable, str(APP), str(tmp_path)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-6000:]
    assert json.loads(done.stdout.splitlines()[-1]) == {
        "attempts": {"1": 0, "2": 1},
        "fastest": {
            "1": [[0, "car-2!", "BLUE"], [1, "car-3!", "BLUE"]],
            "2": [[0, "car-6!", "BLUE"], [1, "car-7!", "BLUE"]],
        },
        "stored": {"0": "car-6!", "1": "car-7!"},
        "asked": ["Car", "True"],
        "ours": True,
    }
