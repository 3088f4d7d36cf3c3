"""How far a shadow run agrees with Storm, over time: each comparison as a line, in a file and in a picture."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import datetime
from html import escape
from pathlib import Path
from typing import Any

from ...cli.display import now
from ...errors import DefinitionError, TridentError, explain_missing
from ...model.canonical import canonical
from ...model.json_text import parse_json
from ...report.progress import RunningTopology
from .divergence import Divergence
from .sides import ComparisonOptions

COUNTS = ("equal", "different", "only_left", "only_right")
MOST = 2_000  # points of a line in the picture
PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{name}: shadow run</title>
<style>:root {{ color-scheme: light dark; font: 15px/1.45 system-ui, sans-serif }} body {{ margin: 1.5rem auto;
max-width: 50rem }} svg {{ height: auto; max-width: 100% }}</style></head>
<body><h1>{name}: shadow run</h1><p>{last}</p>
{charts}
</body></html>
"""
Record = dict[str, Any]


class StandingKeys:
    """The keys that differ, each with how often in a row it has done so with the same values on both sides."""

    def __init__(self, times: int) -> None:
        self.times = times
        self._before: dict[bytes, tuple[int, int]] = {}
        self._now: dict[bytes, tuple[int, int]] = {}
        self.count = 0
        self.first: Divergence | None = None

    def begin(self) -> None:
        """Begin a comparison."""
        self._before, self._now, self.count, self.first = self._now, {}, 0, None

    def leave_out(self) -> None:
        """End a comparison that failed, as if it had not begun."""
        self._now = self._before

    def note(self, found: Divergence) -> None:
        key, values = canonical(found.key), hash(repr((found.left, found.right)))
        before, times = self._before.get(key, (values, 0))
        self._now[key] = values, times + 1 if before == values else 1
        if self._now[key][1] >= self.times:
            self.count += 1
            if self.first is None or found.order < self.first.order:
                self.first = found


class ShadowComparison:
    """Compares every so many seconds, and keeps what was found. ``times``: how often a key must differ in a row, with
    the same values, to count as one that stays different."""

    def __init__(
        self, options: ComparisonOptions, every: float, times: int, lines: Path, picture: Path | None, quiet: bool
    ) -> None:
        self._options, self._every, self._lines, self._picture, self._quiet = options, every, lines, picture, quiet
        self._standing = StandingKeys(times)
        self._end = threading.Event()
        self.equal = False

    @contextmanager
    def follow(self, running: RunningTopology) -> Iterator[None]:
        """Compare while the block runs; behind it until all is equal, or has stayed different, or once if the user has
        stopped the run."""

        def compare_often() -> None:
            while not self._end.wait(self._every):
                try:
                    self.look(running)
                except (OSError, TridentError) as error:  # such as a full disk: the next one may be kept
                    print(f"this comparison was not kept: {error}", file=sys.stderr, flush=True)

        thread = threading.Thread(target=compare_often, name="trident-shadow", daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._end.set()
            thread.join()
        self.look(running)
        pause, rest = threading.Event(), 0 if running.stopping.is_set() else self._standing.times - 1
        with suppress(KeyboardInterrupt):  # it ends the wait alone
            while rest and not self.equal:
                pause.wait(self._every)
                self.look(running)
                rest -= 1

    def look(self, running: RunningTopology | None) -> None:
        """Compare once. A side that cannot be read now is told, and read again the next time, but not at the start."""
        self._standing.begin()
        try:
            _, found = self._options.compare(self._standing.note)
        except TridentError as error:
            if running is None:
                raise
            self._standing.leave_out()
            self.equal = False
            self._keep({"error": str(error)}, running)
            return
        self.equal = found.first is None
        record: Record = {"left": found.left, "right": found.right} | {name: getattr(found, name) for name in COUNTS}
        first = self._standing.first
        shown = first and {"key": repr(list(first.key)), **{name: version and version.describe() for name, version in
                           (("left", first.left), ("right", first.right))}}  # fmt: skip
        self._keep(record | {"standing": self._standing.count, "first": shown}, running)

    def _keep(self, record: Record, running: RunningTopology | None) -> None:
        waiting = [lag for each in (running.progress.values() if running else ()) for lag in each.backlog.values()]
        lag = sum(sum(each.values()) for each in waiting) if waiting else None
        record = {"time": now().isoformat(timespec="milliseconds"), "lag": lag, **record}
        with self._lines.open("a", encoding="utf-8") as file:
            file.write(json.dumps(record) + "\n")
        if not self._quiet:
            print(describe(record), flush=True)
        if self._picture is not None:
            draw(read(self._lines), self._lines.stem, self._picture)


def describe(record: Mapping[str, Any]) -> str:
    """Return a comparison as one line."""
    lag = "lag unknown" if record["lag"] is None else f"lag {record['lag']:,}"
    time = datetime.fromisoformat(record["time"]).strftime("%H:%M:%S")
    if "error" in record:
        return f"{time}  {lag}; not compared: {record['error']}"
    counts = ", ".join(f"{record[name]:,} {name.replace('_', ' ')}" for name in COUNTS)
    first = record["first"]
    stays = "" if first is None else f", such as key {first['key']}: left {first['left']}, right {first['right']}"
    return f"{time}  {lag}; {counts}; {record['standing']:,} stay different{stays}"


def read(lines: Path) -> list[Record]:
    """Return the comparisons of a file. Raises DefinitionError for one that holds something else."""
    try:
        return [parse_json(line) for line in lines.read_text(encoding="utf-8").splitlines()]
    except (OSError, ValueError) as error:
        raise DefinitionError(f"{lines} holds no comparisons of a shadow run: {error}") from error


def draw(records: list[Record], name: str, picture: Path) -> None:
    """Write one HTML page with agreement, lag, and the keys that stay different, over time. It loads nothing."""
    try:
        from ..run_report.charts import draw_lines
    except ImportError as error:
        raise DefinitionError(explain_missing("--picture", f"the library {error.name}", "report")) from error
    thin = records[:: max(1, len(records) // MOST)]
    begin = datetime.fromisoformat(records[0]["time"]).timestamp()
    timed = [(datetime.fromisoformat(each["time"]).timestamp() - begin, each) for each in [*thin, records[-1]]]
    compared = [(at, each) for at, each in timed if "error" not in each]
    lines = {
        "agreement, in percent of the keys": [(at, _percent(each)) for at, each in compared],
        "lag, in records": [(at, each["lag"]) for at, each in timed if each["lag"] is not None],
        "keys that stay different": [(at, each["standing"]) for at, each in compared],
    }
    charts = "\n".join(f"<h3>{title}</h3>{draw_lines([('', points)])}" for title, points in lines.items() if points)
    page = PAGE.format(name=escape(name), last=escape(describe(records[-1])), charts=charts)
    new = picture.with_name(f"{picture.name}.new")
    new.write_text(page, encoding="utf-8")
    new.replace(picture)


def _percent(record: Record) -> float:
    every = sum(record[name] for name in COUNTS)
    return 100 * record["equal"] / every if every else 100.0
