#!/bin/sh
# test | all | lint. Every step says what it does; the first that fails ends the run.
set -eu
cd "$(dirname "$0")/.."
what=${1:-test}
python=.venv/bin/python

# Tests without Spark wait for servers and processes half of the time, so there are two beside the one on Spark. With
# three, the one on Spark is what everybody waits for.
apart="-n ${TEST_PROCESSES:-2} --dist worksteal"

step() { echo "== $1"; shift; "$@" </dev/null; }

pytest() { $python -W error -m pytest -q --durations=10 --part "${PART:-1/1}" "$@" </dev/null; }

# Those on Spark share one session and so one process. They run beside the others, and are shown behind them.
tests() {
    which=$1; shift
    shown=$(mktemp)
    pytest -m "spark$which" "$@" >"$shown" 2>&1 & spark=$!
    trap 'kill $spark 2>/dev/null || true; rm -f "$shown"' EXIT
    trap 'exit 130' INT TERM
    failed=0
    echo '== tests: units, contracts, databases, Kafka, examples, documentation snippets'
    pytest -m "not spark$which" "$@" $apart || failed=1
    echo '== tests on Spark'
    wait $spark || failed=1
    cat "$shown"
    return $failed
}

step 'lint: ruff' $python -m ruff check .
step 'types: mypy' $python -m mypy
case "$what" in
    lint) ;;
    test) tests ' and not whole' ;;
    all)  case "${PART:-1/1}" in 1/*) sh scripts/floors.sh ;; esac
          tests '' --hypothesis-profile=whole ;;
    *)    echo "usage: scripts/test.sh test|all|lint" >&2; exit 2 ;;
esac
