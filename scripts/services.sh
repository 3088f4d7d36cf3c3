#!/bin/sh
# The programs of MariaDB and PostgreSQL, which the tests start as servers of their own: installed when they are missing
# and this is root on Debian; otherwise says what is missing. Quick when all is there. Starts no service.
set -eu
cd "$(dirname "$0")/.."

has_mariadb() { [ -n "${TRIDENT_MARIADB_URL:-}" ] || command -v mariadbd >/dev/null 2>&1 || [ -x /usr/sbin/mariadbd ]; }

has_postgresql() {
    if [ -n "${TRIDENT_POSTGRESQL_URL:-}" ] || command -v initdb >/dev/null 2>&1; then return 0; fi
    for program in /usr/lib/postgresql/*/bin/initdb; do if [ -x "$program" ]; then return 0; fi; done
    return 1
}

missing() {
    has_mariadb || printf 'mariadb-server '
    has_postgresql || printf 'postgresql '
}

# A package's own service must not start: the tests' servers have their own data, sockets and ports.
keep_services_off() {
    install -d /etc/postgresql-common
    if [ ! -e /etc/postgresql-common/createcluster.conf ]; then
        echo 'create_main_cluster = false' > /etc/postgresql-common/createcluster.conf
    fi
    if [ ! -e /usr/sbin/policy-rc.d ]; then
        trap 'rm -f /usr/sbin/policy-rc.d' EXIT INT TERM
        printf '#!/bin/sh\nexit 101\n' > /usr/sbin/policy-rc.d
        chmod 755 /usr/sbin/policy-rc.d
    fi
}

# confold: no question about the file written above
apt() {
    DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=120 -o Dpkg::Options::=--force-confold "$@" \
        </dev/null >"$log" 2>&1
}

install_them() {
    echo "== installing $*"
    log=$(mktemp)
    keep_services_off
    # The lists of packages may be old, or not there at all.
    if apt install -y --no-install-recommends "$@" ||
       { apt update && apt install -y --no-install-recommends "$@"; }; then
        rm -f "$log"
        if [ -d /run/systemd/system ]; then systemctl disable --quiet mariadb postgresql 2>/dev/null || true; fi
    else
        tail -n 20 "$log" >&2
        rm -f "$log"
    fi
}

wanted=$(missing)
if [ -z "$wanted" ]; then exit 0; fi
if [ "$(id -u)" = 0 ] && [ -e /etc/debian_version ] && command -v apt-get >/dev/null 2>&1; then
    install_them $wanted
    wanted=$(missing)
    if [ -z "$wanted" ]; then exit 0; fi
fi

echo "note: missing for the tests on real databases: $wanted" >&2
echo "      Install:  sudo apt-get install --no-install-recommends $wanted" >&2
echo "      or name a server of yours (compose.yaml has some): TRIDENT_MARIADB_URL, TRIDENT_POSTGRESQL_URL," >&2
echo "      for instance postgresql+psycopg://postgres:trident@127.0.0.1:5432/trident" >&2
if [ "${CI:-}" = true ]; then echo 'error: the tests of a CI run need both' >&2; exit 1; fi
echo "      The tests that need them are skipped." >&2
