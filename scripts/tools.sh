#!/bin/sh
# What make test-all needs besides the servers: the browser in which it tests the page of a run (Debian's chromium with
# its driver, by apt-get if this is root on Debian, and selenium in .venv), and Prometheus's promtool, out of Debian's
# package into .venv. Quick when all are there; without one the test says so.
set -eu
cd "$(dirname "$0")/.."
if ! command -v chromedriver >/dev/null 2>&1 && command -v apt-get >/dev/null 2>&1 && [ "$(id -u)" = 0 ]; then
    echo '== installing chromium-driver'
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium chromium-driver </dev/null >/dev/null
fi
.venv/bin/python -c 'import selenium' 2>/dev/null || .venv/bin/python -m pip install --quiet --disable-pip-version-check selenium
if ! command -v promtool >/dev/null 2>&1 && ! [ -x .venv/bin/promtool ] && command -v apt-get >/dev/null 2>&1; then
    echo '== fetching promtool (some 20 MB)'
    (cd .venv/bin && apt-get -qq download prometheus && dpkg-deb --fsys-tarfile prometheus_*.deb |
        tar -x --strip-components=3 ./usr/bin/promtool; rm -f prometheus_*.deb) 2>/dev/null || true
fi
