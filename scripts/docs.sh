#!/bin/sh
# The site of docs/ in build/site. Its tools are installed once; then it is made without a network.
set -eu
cd "$(dirname "$0")/.."
.venv/bin/python -c 'import material, mkdocstrings_handlers.python' 2>/dev/null ||
    .venv/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[docs]' </dev/null
NO_MKDOCS_2_WARNING=1 .venv/bin/python -m mkdocs build --quiet
echo "the site is in build/site:  python3 -m http.server --bind 127.0.0.1 --directory build/site"
