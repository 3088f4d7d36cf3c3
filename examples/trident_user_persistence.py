"""UserPersistenceTridentTopology of storm-jdbc-examples: a query of a database for each tuple, and rows into a table.

    python -m examples.trident_user_persistence sqlite:///users.db --local      in this process, no JVM
    python -m examples.trident_user_persistence sqlite:///users.db              on Spark

Source: UserPersistenceTridentTopology.java, AbstractUserTopology.java and UserSpout.java in
examples/storm-jdbc-examples (Apache Storm).
"""

from __future__ import annotations

import datetime
import random
import sqlite3
import sys

from states.sql import AppendState, RowUpdater, SqlQuery
from trident_py import Fields, LocalCluster, SparkCluster, TridentTopology, Values
from trident_py.spouts import IRichSpout

SETUP = """
    create table if not exists department (dept_id integer, dept_name varchar(100));
    create table if not exists user_department (user_id integer, dept_id integer);
    delete from department;
    delete from user_department;
    insert into department values (1, 'R&D'), (2, 'Finance'), (3, 'HR'), (4, 'Sales');
    insert into user_department values (1, 1), (2, 2), (3, 3), (4, 4);
"""
TABLE_NAME = "user"
SELECT_QUERY = (
    "select dept_name from department, user_department "
    "where department.dept_id = user_department.dept_id and user_department.user_id = ?"
)


class UserSpout(IRichSpout):
    """Emits one of two users at random, without message ids. Ends after ``limit`` tuples; None: never."""

    def __init__(self, limit=10):
        today = datetime.date.today()
        self.rows = [Values(1, "peter", today), Values(2, "bob", today)]
        self.limit = limit
        self.emitted = 0

    def open(self, conf, context, collector):
        self.collector = collector

    def nextTuple(self):
        if not self.isExhausted():
            self.emitted += 1
            self.collector.emit(random.choice(self.rows))

    def isExhausted(self):
        return self.emitted == self.limit

    def declareOutputFields(self, declarer):
        declarer.declare(Fields("user_id int", "user_name string", "create_date date"))


def build(url: str, spout: UserSpout) -> TridentTopology:
    query = SqlQuery(url, SELECT_QUERY, "user_id", "dept_name string")
    columns = Fields("user_id int", "user_name string", "dept_name string", "create_date date")
    users = AppendState(url, TABLE_NAME, columns)

    topology = TridentTopology()
    stream = topology.newStream("userSpout", spout)
    state = topology.newStaticState(query.source)
    stream = stream.stateQuery(state, Fields("user_id"), query, Fields("dept_name string"))
    stream.partitionPersist(users, Fields(*columns.names), RowUpdater(), Fields())
    return topology


def setUp(file: str) -> None:
    """Makes the tables of the query. Storm's example does it over JDBC."""
    with sqlite3.connect(file) as db:
        db.executescript(SETUP)


def main() -> None:
    url = next(argument for argument in sys.argv[1:] if not argument.startswith("-"))
    file = url.removeprefix("sqlite:///")
    setUp(file)
    with LocalCluster() if "--local" in sys.argv else SparkCluster() as cluster:
        cluster.submitTopology("test", {}, build(url, UserSpout()).build()).awaitTermination()
    with sqlite3.connect(file) as db:
        for row in db.execute("select distinct user_id, user_name, dept_name, create_date from user order by user_id"):
            print(row)


if __name__ == "__main__":
    main()
