"""What a benchmark hands back: figures, printed as one JSON line each and as a table at the end."""

from __future__ import annotations

import json
import os
import platform
import statistics
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from rich.console import Console
from rich.table import Table


@dataclass(frozen=True)
class Figure:
    """One measured number. ``ratio`` is to ``against``; ``bar`` is what was asked of either."""

    group: str
    name: str
    value: float
    unit: str
    against: str | None = None
    ratio: float | None = None
    bar: str | None = None
    met: bool | None = None
    note: str | None = None

    def line(self) -> str:
        shown = {key: value for key, value in asdict(self).items() if value is not None}
        return json.dumps({k: round(v, 4) if isinstance(v, float) else v for k, v in shown.items()})


def at_least(value: float, bar: float, unit: str = "") -> dict[str, object]:
    return {"bar": f">= {bar:,g}{unit}", "met": value >= bar}


def at_most(value: float, bar: float, unit: str = "") -> dict[str, object]:
    return {"bar": f"<= {bar:,g}{unit}", "met": value <= bar}


def median(values: Sequence[float]) -> float:
    return statistics.median(values)


def machine() -> str:
    return (
        f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, Python {platform.python_version()}, "
        f"{platform.system()} {platform.machine()}"
    )


def print_table(figures: Sequence[Figure]) -> None:
    table = Table(title=f"benchmarks ({machine()})", title_justify="left")
    for heading in ("group", "figure", "value", "ratio", "against", "asked", "met"):
        table.add_column(heading, justify="right" if heading in ("value", "ratio") else "left")
    for f in figures:
        ratio = "" if f.ratio is None else f"{f.ratio:.2f}"
        met = "" if f.met is None else ("yes" if f.met else "NO")
        value = f"{f.value:,.0f}" if abs(f.value) >= 100 else f"{f.value:,.2f}"
        table.add_row(f.group, f.name, f"{value} {f.unit}", ratio, f.against or "", f.bar or "", met)
    Console(file=sys.stdout, width=150).print(table)
