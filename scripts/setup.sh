#!/bin/sh
# Checks python and java, makes .venv and installs the project with its development tools. Quick when nothing changed.
set -eu
cd "$(dirname "$0")/.."

fail() { printf 'error: %s\n' "$1" >&2; exit 1; }

find_python() {
    for name in ${PYTHON:-} python3.11 python3.12 python3.13 python3 python; do
        if command -v "$name" >/dev/null 2>&1 &&
           "$name" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            printf '%s\n' "$name"; return
        fi
    done
    fail 'Python 3.11 or newer is missing. Install it:  sudo apt-get install python3.11 python3.11-venv
       (or name one:  make PYTHON=/path/to/python3.11 ...)'
}

check_java() {
    line='Install it:  sudo apt-get install openjdk-17-jre-headless
       (or point JAVA_HOME to a Java 17 or newer)'
    java=java
    if [ -n "${JAVA_HOME:-}" ]; then java="$JAVA_HOME/bin/java"; fi
    command -v "$java" >/dev/null 2>&1 || fail "Java is missing ($java is not there). Spark needs Java 17 or newer. $line"
    version=$("$java" -version 2>&1 | sed -n 's/.* version "\([0-9]*\)\.\{0,1\}\([0-9]*\).*/\1 \2/p' | head -n 1)
    major=${version%% *}
    if [ "$major" = 1 ]; then major=${version##* }; fi      # "1.8.0" is Java 8
    case "$major" in
        ''|*[!0-9]*) fail "cannot read the version of $java. Spark needs Java 17 or newer. $line" ;;
    esac
    [ "$major" -ge 17 ] || fail "$java is Java $major. Spark needs Java 17 or newer. $line"
}

check_java
python=$(find_python)
stamp=.venv/.installed
wanted=$(cat setup.cfg pyproject.toml trident_py/entry_points.txt | cksum)
if [ -x .venv/bin/python ] && [ "$(cat "$stamp" 2>/dev/null)" = "$wanted" ]; then exit 0; fi

if [ ! -x .venv/bin/python ]; then
    echo "== making .venv with $python"
    "$python" -m venv .venv ||
        fail "$python cannot make a virtual environment. Install it:  sudo apt-get install python3.11-venv"
fi
echo "== installing trident-py with its development tools into .venv (pyspark is about 500 MB)"
.venv/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[dev,examples]' </dev/null ||
    fail 'pip could not install the packages named in setup.cfg; its message is above'
printf '%s\n' "$wanted" > "$stamp"
