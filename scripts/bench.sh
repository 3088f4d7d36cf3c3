#!/bin/sh
# All groups of benchmarks/, or those named:  BENCH="latency growth" make bench
set -eu
cd "$(dirname "$0")/.."
.venv/bin/python -m benchmarks ${BENCH:-} </dev/null
