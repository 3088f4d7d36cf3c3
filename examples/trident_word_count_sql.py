"""TridentWordCount with its counts in a SQL table, as JDBC users have it: TridentWordCount with SqlMapState.

    python -m examples.trident_word_count_sql sqlite:///counts.db --local      in this process, no JVM
    python -m examples.trident_word_count_sql sqlite:///counts.db              on Spark

JdbcState of storm-jdbc inserts rows, so a count over JDBC needed a state of one's own there. Here it is an opaque map
state: MySQL, MariaDB and PostgreSQL take the same topology under another URL.

Source: examples/storm-starter/src/jvm/org/apache/storm/starter/trident/TridentWordCount.java (Apache Storm).
"""

from __future__ import annotations

import sys

from examples.word_count import build
from states.sql import SqlMapState
from trident_py import LocalCluster, LocalDRPC, SparkCluster
from trident_py.testing import stored


def counts(url: str) -> SqlMapState:
    return SqlMapState.opaque(url, "word_counts", key="word string", value="count bigint")


def main() -> None:
    url = next(argument for argument in sys.argv[1:] if not argument.startswith("-"))
    state, drpc = counts(url), LocalDRPC()
    with LocalCluster() if "--local" in sys.argv else SparkCluster() as cluster:
        cluster.submitTopology("wordCounter", {}, build(state=state, drpc=drpc).build()).awaitTermination()
        print("DRPC RESULT:", sorted(drpc.execute("words", "cat the dog jumped")))
    for (word,), count in sorted(stored(state).items(), key=lambda item: (-item[1].curr, item[0])):
        print(f"{count.curr:3} {word}")


if __name__ == "__main__":
    main()
