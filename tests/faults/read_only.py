"""Databases, and a Redis, that take no writes for a while."""

from __future__ import annotations

import time

import redis
import sqlalchemy as sa

from .stores import read


def limited(url: str) -> str:
    """The URL of an account that a read-only server refuses; for MySQL and MariaDB another one than root."""
    made = sa.make_url(url)
    if made.get_backend_name() != "mysql":
        return url
    change(url, "CREATE USER IF NOT EXISTS sensor@'%' IDENTIFIED BY 'secret'")
    change(url, f"GRANT ALL ON {made.database}.* TO sensor@'%'")
    return made.set(username="sensor", password="secret").render_as_string(hide_password=False)


def read_only(url: str, on: bool) -> None:
    """``url``: of an account that may change the server's settings."""
    if url.startswith("redis"):
        with redis.Redis.from_url(url.partition("#")[0]) as client:
            client.config_set("min-replicas-to-write", int(on))  # it has no replica
        return
    if not url.startswith("postgresql"):
        change(url, f"SET GLOBAL read_only = {int(on)}")
        return
    engine = sa.create_engine(url, poolclass=sa.NullPool, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(sa.text("SET default_transaction_read_only = off"))
        connection.execute(sa.text(f"ALTER SYSTEM SET default_transaction_read_only = {'on' if on else 'off'}"))
        connection.execute(sa.text("SELECT pg_reload_conf()"))
    while read(url, "SHOW default_transaction_read_only") != [("on" if on else "off",)]:
        time.sleep(0.01)  # a new session has it when all that are there have been told


def change(url: str, text: str) -> None:
    engine = sa.create_engine(url, poolclass=sa.NullPool)
    with engine.begin() as connection:
        connection.execute(sa.text(text))
