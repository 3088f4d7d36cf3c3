#!/bin/sh
# all | fast | lint. Every step says what it does; the first that fails ends the run.
set -eu
cd "$(dirname "$0")/.."
what=${1:-all}
python=.venv/bin/python

# Tests without a JVM wait for servers and processes most of the time: three at once are twice as fast on two cores.
apart="-n ${TEST_PROCESSES:-3} --dist worksteal"

step() { echo "== $1"; shift; "$@" </dev/null; }

step 'lint: ruff' $python -m ruff check .
step 'types: mypy' $python -m mypy
case "$what" in
    lint) ;;
    fast) step 'tests without a JVM' $python -W error -m pytest -q -m 'not spark and not slow' $apart ;;
    all)  step 'tests without a JVM: units, contracts, databases, examples, documentation snippets' \
              $python -W error -m pytest -q -m 'not spark' $apart --durations=10
          step 'tests on Spark' $python -W error -m pytest -q -m spark --durations=10 ;;
    *)    echo "usage: scripts/test.sh all|fast|lint" >&2; exit 2 ;;
esac
