#!/bin/sh
# The lowest versions that setup.cfg allows of what it asks for, in an environment of their own, and a smoke test of each
# part with them: the README's commands on both clusters, every store, the gateway, requests over HTTP, expressions.
set -eu
cd "$(dirname "$0")/.."
floors=build/floors
extras=mysql,postgresql,kafka,avro,sql,events,drpc,monitor,opentelemetry,redis,report,moving,hdfs,s3,testing

[ -x $floors/bin/python ] || .venv/bin/python -m venv $floors
sed -n 's/^ *\([a-z0-9-]*\)\(\[[a-z]*\]\)\{0,1\}>=\([0-9.]*\).*/\1==\3/p' setup.cfg | sort -u > $floors/lowest.txt
echo "== installing the lowest versions: $(tr '\n' ' ' < $floors/lowest.txt)"
$floors/bin/python -m pip install --quiet --disable-pip-version-check --constraint $floors/lowest.txt \
    --editable ".[$extras]" pytest-timeout pytest-xdist hypothesis psutil httpx jsonschema </dev/null

echo '== smoke tests with the lowest versions'
$floors/bin/python -m pytest -q -m 'not whole' -o filterwarnings= </dev/null \
    tests/test_install.py::test_the_readmes_commands_print_what_it_says_on_both_clusters \
    tests/test_install.py::test_the_modules_of_an_extra_can_be_imported \
    tests/extras/expressions/test_expr.py tests/states/test_sql_map.py tests/kafka/test_transactional_contract.py \
    tests/kafka/test_spout_fields.py tests/extras/redis_states/test_redis_contract.py tests/extras/gateway/test_gateway_http.py \
    tests/extras/drpc_server/test_http.py tests/extras/monitor/test_page.py tests/extras/run_report tests/extras/moving
