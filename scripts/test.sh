#!/bin/sh
# check | test | all | lint. Every step says what it does; the first that fails ends the run.
set -eu
cd "$(dirname "$0")/.."
what=${1:-test}
python=.venv/bin/python
unset PYTHONDONTWRITEBYTECODE  # a thousand processes would each compile every module again

# Tests wait for servers and processes half of the time, so there are four processes without Spark beside two on it. A
# file stays in one process: its tests share servers, forks, clusters, chains of crashes (ByServer in tests/conftest.py).
# What finds most mistakes without servers, root and Spark: units, SQLite, LocalCluster. Those that are left out start many
# processes.
checked="tests/test_*.py tests/semantics tests/spouts tests/states tests/storm/test_local.py tests/windowing tests/extras/poison
    tests/extras/determinism/test_determinism.py tests/extras/expressions tests/extras/topology_files
    --ignore tests/test_install.py --ignore tests/test_set_order.py --ignore tests/windowing/test_sql_windows.py"

step() { echo "== $1"; shift; "$@" </dev/null; }

pytest() { $python -W error -m pytest -q --durations=10 --part "${PART:-1/1}" -n "${TEST_PROCESSES:-2}" "$@" </dev/null; }

# Those on Spark share a session in each process. They and the smoke run beside the others, and are shown behind them.
tests() {
    which=$1; shift
    shown=$(mktemp -d)
    $python -m testbed.class_archives
    pytest -m "spark$which" --dist loadfile "$@" >"$shown/spark" 2>&1 & spark=$!
    $python scripts/spark_matrix.py --smoke 3.5 </dev/null >"$shown/smoke" 2>&1 & smoke=$!
    trap 'kill $spark $smoke 2>/dev/null || true; rm -rf "$shown"' EXIT
    trap 'exit 130' INT TERM
    failed=0
    echo '== tests: units, contracts, databases, Kafka, examples, documentation snippets'
    TEST_PROCESSES=${TEST_PROCESSES:-4} pytest -m "not spark$which" --dist loadscope --no-loadscope-reorder "$@" || failed=1
    echo '== tests on Spark'
    wait $spark || failed=1
    cat "$shown/spark"
    echo '== smoke: the oldest Spark'
    wait $smoke || failed=1
    cat "$shown/smoke"
    return $failed
}

step 'lint: ruff' $python -m ruff check .
case "$what" in
    lint) step 'types: mypy' $python -m mypy ;;
    check) export TRIDENT_CHECK=1  # tests/needed.py: whoever asks for a server fails
           step 'types: mypy' $python -m mypy
           step 'tests without servers and Spark' pytest --dist worksteal -m 'not spark and not servers and not whole' $checked ;;
    test) $python -m mypy </dev/null & types=$!
          step 'tiers: every promise has a test' $python -W error -m pytest -q -k test_tiers tests
          step 'types: mypy' wait $types
          tests ' and not whole' ;;
    all)  step 'types: mypy' $python -m mypy
          case "${PART:-1/1}" in 1/*) sh scripts/floors.sh ;; esac
          sh scripts/tools.sh
          tests '' --hypothesis-profile=whole ;;
    *)    echo "usage: scripts/test.sh check|test|all|lint" >&2; exit 2 ;;
esac
