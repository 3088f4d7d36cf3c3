"""python -m benchmarks [GROUP...]: measure, print one JSON line per figure, and a table at the end."""

from __future__ import annotations

import sys

from . import (
    bulk_rows,
    commits,
    drpc,
    end_to_end,
    fingerprints,
    forms,
    gateway,
    growth,
    in_process,
    joins,
    kafka,
    latency,
    moving,
    page,
    scale,
    small,
    sql_maps,
    sqlite_updates,
    tiny,
    windows,
    word_count,
)
from .measure import MeasurementFailed
from .report import Figure, machine, print_table

GROUPS = {
    "word_count": word_count,
    "latency": latency,
    "small": small,
    "sqlite": sqlite_updates,
    "rows": bulk_rows,
    "maps": sql_maps,
    "commits": commits,
    "tiny": tiny,
    "page": page,
    "windows": windows,
    "join": joins,
    "growth": growth,
    "scale": scale,
    "local": in_process,
    "forms": forms,
    "fingerprints": fingerprints,
    "gateway": gateway,
    "drpc": drpc,
    "moving": moving,
    "kafka": kafka,
    "end_to_end": end_to_end,
}


def main(names: list[str]) -> int:
    unknown = [name for name in names if name not in GROUPS]
    if unknown:
        print(f"no group {', '.join(unknown)}; there are: {', '.join(GROUPS)}", file=sys.stderr)
        return 2
    print(f"benchmarks on {machine()}", file=sys.stderr)
    found: list[Figure] = []
    failed = False
    for name in names or GROUPS:
        try:
            for figure in GROUPS[name].figures():
                print(figure.line(), flush=True)
                found.append(figure)
        except MeasurementFailed as error:
            failed = True
            print(error, file=sys.stderr)
    print_table(found)
    return 1 if failed else 0


sys.exit(main(sys.argv[1:]))
