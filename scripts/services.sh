#!/bin/sh
# The programs of MariaDB, PostgreSQL and Redis, which the tests start as servers of their own, and graphviz: installed
# when they are missing and this is root on Debian; otherwise says what is missing. The jars of the Kafka broker, of HDFS
# and of Hadoop's client of S3 come by Maven into the user's cache, MySQL by apt-get. Quick when all is there. Starts no
# service.
set -eu
cd "$(dirname "$0")/.."

has_mariadb() { [ -n "${TRIDENT_MARIADB_URL:-}" ] || command -v mariadbd >/dev/null 2>&1 || [ -x /usr/sbin/mariadbd ]; }

has_postgresql() {
    if [ -n "${TRIDENT_POSTGRESQL_URL:-}" ] || command -v initdb >/dev/null 2>&1; then return 0; fi
    for program in /usr/lib/postgresql/*/bin/initdb; do if [ -x "$program" ]; then return 0; fi; done
    return 1
}

has_redis() { [ -n "${TRIDENT_REDIS_URL:-}" ] || command -v redis-server >/dev/null 2>&1; }

has_faketime() { for library in /usr/lib/*/faketime/libfaketime.so.1; do if [ -e "$library" ]; then return 0; fi; done; return 1; }

kafka_jars() { [ -n "${KAFKA_BOOTSTRAP:-}" ] || .venv/bin/python -m testbed.kafka_jars "$@"; }

hadoop_jars() { .venv/bin/python -m testbed.hadoop_jars "$@"; }

mysql() { [ -n "${TRIDENT_MYSQL_URL:-}" ] || .venv/bin/python -m testbed.mysql_packages "$@"; }

has_ip() { command -v ip >/dev/null 2>&1 || [ -x /usr/sbin/ip ]; }

has_dot() { command -v dot >/dev/null 2>&1; }

has_maven() { { kafka_jars --there && hadoop_jars --there; } || command -v mvn >/dev/null 2>&1; }

has_jdk() { command -v "${JAVA_HOME:+$JAVA_HOME/bin/}javac" >/dev/null 2>&1; }

missing() {
    has_mariadb || printf 'mariadb-server '
    has_postgresql || printf 'postgresql '
    has_redis || printf 'redis-server '
    has_ip || printf 'iproute2 '
    has_faketime || printf 'libfaketime '
    has_dot || printf 'graphviz '
    has_maven || printf 'maven '
    has_jdk || printf 'openjdk-17-jdk-headless '
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
        if [ -d /run/systemd/system ]; then
            systemctl disable --quiet mariadb postgresql redis-server 2>/dev/null || true
        fi
    else
        tail -n 20 "$log" >&2
        rm -f "$log"
    fi
}

wanted=$(missing)
if [ -n "$wanted" ] && [ "$(id -u)" = 0 ] && [ -e /etc/debian_version ] && command -v apt-get >/dev/null 2>&1; then
    install_them $wanted
    wanted=$(missing)
fi
if ! kafka_jars --there; then
    echo '== fetching the Kafka broker (Maven, some 45 MB)'
    kafka_jars >/dev/null || wanted="$wanted kafka"
fi
if ! hadoop_jars --there; then
    echo "== fetching HDFS and Hadoop's client of S3 (Maven, some 70 MB)"
    hadoop_jars >/dev/null || wanted="$wanted hadoop"
fi
if ! mysql --there; then
    echo "== fetching MySQL (Debian's packages, some 50 MB, unpacked into the cache)"
    mysql >/dev/null || wanted="$wanted mysql"
fi
if [ -z "$wanted" ]; then exit 0; fi

echo "note: missing for the tests on real servers: $wanted" >&2
echo "      Install:  sudo apt-get install --no-install-recommends mariadb-server postgresql redis-server maven \\" >&2
echo "                openjdk-17-jdk-headless libfaketime iproute2 graphviz" >&2
echo "      or name servers of yours (compose.yaml has some): TRIDENT_MARIADB_URL, TRIDENT_MYSQL_URL," >&2
echo "      TRIDENT_POSTGRESQL_URL, TRIDENT_REDIS_URL, KAFKA_BOOTSTRAP" >&2
if [ "${CI:-}" = true ]; then echo 'error: the tests of a CI run need all of them' >&2; exit 1; fi
echo "      The tests that need them are skipped." >&2
