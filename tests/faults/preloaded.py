"""What every forked driver needs, imported once, and what a first run makes: entry points, dialects."""

from __future__ import annotations

import gc
import tempfile
from pathlib import Path

import psycopg
import pymysql
from sqlalchemy import create_engine

from states.sql.dialects.mysql import dialect as mysql
from states.sql.dialects.postgresql import dialect as postgresql
from states.sql.dialects.sqlite import dialect as sqlite
from states.sql.store import close_stores

from . import forks
from .forks import Start, drive


class _Nobody:
    def send(self, event: tuple) -> None: ...


for url in ("mysql+pymysql://", "postgresql+psycopg://"):
    create_engine(url)
with tempfile.TemporaryDirectory() as folder:
    drive(Start(f"sqlite:///{folder}/first.db", Path(folder), 2), _Nobody())
    close_stores()
gc.collect()
gc.freeze()  # what is there is never freed, and its pages stay shared with the drivers

__all__ = ["forks", "mysql", "postgresql", "psycopg", "pymysql", "sqlite"]
