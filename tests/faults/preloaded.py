"""What every forked driver needs, imported once: also what pyarrow, SQLAlchemy and the stores load at first use."""

from __future__ import annotations

import psycopg
import pymysql
from sqlalchemy import create_engine

from states.sql.dialects.mysql import dialect as mysql
from states.sql.dialects.postgresql import dialect as postgresql
from states.sql.dialects.sqlite import dialect as sqlite
from trident_py.model.chunks import Chunk
from trident_py.tuples import Fields

from . import forks

Chunk.of_rows(Fields("n bigint", "word string"), [(1, "w")])
for url in ("mysql+pymysql://", "postgresql+psycopg://", "sqlite://"):
    create_engine(url)

__all__ = ["forks", "mysql", "postgresql", "psycopg", "pymysql", "sqlite"]
