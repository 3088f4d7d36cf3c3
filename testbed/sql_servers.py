"""Real database servers for tests: started in a temporary folder on a loopback port, killed and restarted at will.

    with MariaDb() as server:
        state = SqlMapState.opaque(server.create_database(), "counts", key="word string", value="bigint")
        ...
        server.kill()       # SIGKILL, in the middle of whatever it does
        server.restart()    # same data, same port

The programs are Debian's ``mariadb-server`` and ``postgresql``; `mysql_packages` fetches MySQL's. A server and its
folder are gone after ``close()`` (or the ``with`` block), and also when the process that started it ends in any way,
SIGKILL included.
"""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path
from typing import Any, ClassVar

from trident_py.testing.databases import connection, create_database, drop_database

from . import mysql_packages
from .service import HOST, Service, find


class Server(Service):
    """A database server. ``url`` names the database ``trident``, which the first start creates."""

    scheme: ClassVar[str]
    user: ClassVar[str]
    _maintenance: ClassVar[str]
    _query: ClassVar[str] = ""

    @property
    def url(self) -> str:
        """The SQLAlchemy URL of the database ``trident``, created at the first start."""
        return self.url_of("trident")

    def url_of(self, database: str) -> str:
        return f"{self.scheme}://{self.user}@{HOST}:{self.port}/{database}{self._query}"

    def create_database(self, name: str | None = None) -> str:
        """Creates an empty database and returns its URL. None: an unused name."""
        return create_database(self.url_of(self._maintenance), name)

    def drop_database(self, name: str) -> None:
        """Drops a database and ends its connections. Does nothing if it does not exist."""
        drop_database(self.url_of(name))

    def _first_started(self) -> None:
        create_database(self.url_of(self._maintenance), "trident")

    def _answer(self) -> None:
        with connection(self.url_of(self._maintenance)):
            return

    def _no_answer(self) -> tuple[type[BaseException], ...]:
        from sqlalchemy.exc import DBAPIError

        return (DBAPIError,)


class MySqlFamily(Server):
    """What MySQL and MariaDB share: utf8mb4, LOAD DATA LOCAL, and a commit is flushed unless options say otherwise."""

    scheme = "mysql+pymysql"
    user = "root"
    _maintenance = "mysql"
    _query = "?ssl_disabled=true"  # PyMySQL reads all certificates of the system for every connection

    def _arguments(self, **fixed: Any) -> list[str]:
        options = {"local_infile": 1, "character_set_server": "utf8mb4", **fixed, **self.options}
        return [
            f"--datadir={self.folder}/data", *self._as_root(), f"--socket={self.folder}/socket", f"--port={self.port}",
            f"--bind-address={HOST}",
            f"--tmpdir={self.folder}",  # at its start a server removes other servers' files from a shared folder
            *(f"--{name}={value}" for name, value in options.items()),
        ]  # fmt: skip

    def _as_root(self) -> list[str]:
        return ["--user=root"] if os.geteuid() == 0 else []


class MariaDb(MySqlFamily):
    """MariaDB in utf8mb4 with LOAD DATA LOCAL. By default it flushes every commit, as MariaDB does."""

    name = "MariaDB"

    def _programs(self) -> Path:
        return find("mariadbd", ["/usr/sbin", "/usr/libexec", "/usr/local/sbin"], "mariadb-server")

    def _make_data(self, programs: Path) -> list[str]:
        install = find("mariadb-install-db", ["/usr/bin", str(programs)], "mariadb-server") / "mariadb-install-db"
        return [
            str(install), "--no-defaults", f"--datadir={self.folder}/data", f"--tmpdir={self.folder}", "--skip-test-db",
            "--auth-root-authentication-method=normal", *self._as_root(),
        ]  # fmt: skip

    def _command(self) -> list[str]:
        return [str(self._programs() / "mariadbd"), "--no-defaults", *self._arguments()]


class Follower(MySqlFamily):
    """A replica of a running server with a binary log, read at ``port``: of the primary itself, or of a proxy before
    it, so that the replica can be made to lag. It follows until `promote`."""

    _follow: ClassVar[tuple[str, ...]]
    _forget: ClassVar[tuple[str, ...]]

    def __init__(self, port: int, **options: Any) -> None:
        super().__init__(**{"server_id": 2, **options})
        self.primary_port = port

    def promote(self) -> None:
        """It stops following."""
        self._tell(*self._forget)

    def _first_started(self) -> None:
        """It gets what its primary has, and follows it."""
        self._tell(*(each.format(host=HOST, port=self.primary_port, user=self.user) for each in self._follow))

    def _tell(self, *statements: str) -> None:
        with connection(self.url_of(self._maintenance)) as telling:
            for statement in statements:
                telling.exec_driver_sql(statement)


class MariaDbReplica(Follower, MariaDb):
    """A replica of a MariaDB."""

    _follow = (
        "CHANGE MASTER TO MASTER_HOST='{host}', MASTER_PORT={port}, MASTER_USER='{user}', MASTER_USE_GTID=slave_pos, "
        "MASTER_CONNECT_RETRY=1",
        "START SLAVE",
    )
    _forget = "STOP SLAVE", "RESET SLAVE ALL"


class MySql(MySqlFamily):
    """MySQL in utf8mb4 with LOAD DATA LOCAL. By default it flushes every commit, as MySQL does.

    To start quickly, it has no performance schema and no binary log (``log_bin="binlog"`` switches one on).
    """

    name = "MySQL"

    def _programs(self) -> Path:
        return mysql_packages.files()

    def _make_data(self, programs: Path) -> list[str]:
        return ["cp", "-r", f"{mysql_packages.new_data(programs)}/.", f"{self.folder}/data"]

    def _command(self) -> list[str]:
        quick = {"innodb_flush_method": "fsync", "performance_schema": "OFF", "mysqlx": "OFF"}
        return [*mysql_packages.command(self._programs()), *mysql_packages.SETTINGS, *self._arguments(**quick)]


class MySqlReplica(Follower, MySql):
    """A replica of a MySQL. Both need ``gtid_mode="ON"``."""

    _follow = (
        "CHANGE REPLICATION SOURCE TO SOURCE_HOST='{host}', SOURCE_PORT={port}, SOURCE_USER='{user}', "
        "SOURCE_AUTO_POSITION=1, SOURCE_CONNECT_RETRY=1, GET_SOURCE_PUBLIC_KEY=1",
        "START REPLICA",
    )
    _forget = "STOP REPLICA", "RESET REPLICA ALL"


class PostgreSql(Server):
    """PostgreSQL in UTF-8. It refuses root, so root starts it under the account ``postgres``.

    ``fsync`` is off: committed data survives the death of the process, which ``kill()`` tests, but not of the machine.
    Use ``fsync="on"`` for measurements.
    """

    name = "PostgreSQL"
    scheme = "postgresql+psycopg"
    user = "postgres"
    _maintenance = "postgres"
    _stop_signal = signal.SIGINT  # does not wait for its clients

    def _programs(self) -> Path:
        versions = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=_version, reverse=True)
        return find("initdb", [*map(str, versions), "/usr/pgsql/bin"], "postgresql")

    def _account(self) -> str | None:
        return "postgres" if os.geteuid() == 0 else None

    def _make_data(self, programs: Path) -> list[str]:
        return [
            str(programs / "initdb"), "-D", f"{self.folder}/data", "-U", self.user, "-A", "trust", "-E", "UTF8",
            "--no-locale", "--no-sync",
        ]  # fmt: skip

    def _command(self) -> list[str]:
        fixed = {"listen_addresses": HOST, "unix_socket_directories": "", "dynamic_shared_memory_type": "mmap"}
        options = {**fixed, "fsync": "off", **self.options}
        settings = [part for name, value in options.items() for part in ("-c", f"{name}={value}")]
        return [str(self._programs() / "postgres"), "-D", f"{self.folder}/data", "-p", str(self.port), *settings]


class PostgreSqlStandby(PostgreSql):
    """A replica of a running PostgreSQL, read at ``port``: of the primary itself, or of a proxy before it, so that the
    replica can be made to lag. Read-only until `promote`."""

    def __init__(self, port: int, **options: Any) -> None:
        super().__init__(**options)
        self.primary_port = port

    def promote(self) -> None:
        """It stops following, and takes writes."""
        with connection(self.url_of(self._maintenance)) as promoting:
            promoting.exec_driver_sql("SELECT pg_promote()")

    def _make_data(self, programs: Path) -> list[str]:
        primary = ["-h", HOST, "-p", str(self.primary_port), "-U", self.user]
        copied = ["-D", f"{self.folder}/data", "-R", "-c", "fast", "--no-sync"]
        return [str(find("pg_basebackup", [str(programs)], "postgresql") / "pg_basebackup"), *primary, *copied]

    def _first_started(self) -> None:
        """It has what its primary has."""


def _version(folder: Path) -> int:
    return int(re.sub(r"\D", "", folder.parent.name) or 0)
