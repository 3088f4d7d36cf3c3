#!/bin/sh
# The browser in which make test-all tests the page of a run: Debian's chromium with its driver, by apt-get if this is
# root on Debian, and selenium in .venv. Quick when both are there; without them the test says so.
set -eu
cd "$(dirname "$0")/.."
if ! command -v chromedriver >/dev/null 2>&1 && command -v apt-get >/dev/null 2>&1 && [ "$(id -u)" = 0 ]; then
    echo '== installing chromium-driver'
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium chromium-driver </dev/null >/dev/null
fi
.venv/bin/python -c 'import selenium' 2>/dev/null || .venv/bin/python -m pip install --quiet --disable-pip-version-check selenium
