#!/bin/sh
# The main job on real input, twice: the second run finds every batch committed and must change nothing.
set -eu
cd "$(dirname "$0")/.."
out=${OUT:-build/weather}

echo "== 1 of 2: 26,115 weather readings into $out/weather.sqlite, on Spark"
.venv/bin/python -m examples.weather --out "$out" </dev/null
before=$(.venv/bin/python -m examples.weather --out "$out" --digest </dev/null)

echo "== 2 of 2: the same command again"
.venv/bin/python -m examples.weather --out "$out" --quiet </dev/null
after=$(.venv/bin/python -m examples.weather --out "$out" --digest </dev/null)

echo "tables after the first run:  $before"
echo "tables after the second run: $after"
[ "$before" = "$after" ] || { echo 'error: the second run changed the tables' >&2; exit 1; }
echo "the second run changed nothing"
