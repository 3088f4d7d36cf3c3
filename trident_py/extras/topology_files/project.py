"""`trident init`: a small project that runs at once."""

from __future__ import annotations

import json
from pathlib import Path

from ...errors import DefinitionError
from ...model.names import check_folder_name

TOPOLOGY = """\
# The topology. Run it with: trident run --local    Look at it with: trident explain
# Where its time goes, over a new table:
#   COUNTS_URL=sqlite:///profile.db trident profile --local
# Its keys, for editors: trident schema > trident.schema.json
name: {name}
storage: checkpoints            # the folder or URI of the checkpoint, from here

configuration:
  topology.guarantee: exactly-once
  spark.sql.shuffle.partitions: 2

states: states.yaml

streams:
  words:
    newStream:
      txId: sentences
      spout:
        className: FileSpout
        constructorArgs: {{paths: sentences.txt, fields: sentence string, batchSize: 2}}
    operations:
      - each: {{inputFields: sentence, function: "words:split", functionFields: word string}}
      - groupBy: word
      - persistentAggregate: {{state: counts, agg: Count, functionFields: count}}
"""
STATES = """\
# The states by name. Check them with: trident states check states.yaml
states:
  counts:
    type: sql-map
    kind: opaque                # exactly once, even if a replay brings other tuples
    url: ${COUNTS_URL:-sqlite:///counts.db}
    table: counts
    key: word string
    value: count bigint
"""
MODULE = '''\
"""The functions of the topology."""


def split(sentence):
    return sentence.split()
'''
TEST = '''\
"""Runs the topology in this process, over a database of its own."""

from pathlib import Path

from trident_py import LocalCluster
from trident_py.testing import stored
from trident_py.topology_files import load

FOLDER = Path(__file__).parent


def test_the_words_are_counted(tmp_path, monkeypatch):
    monkeypatch.chdir(FOLDER)
    monkeypatch.setenv("COUNTS_URL", f"sqlite:///{tmp_path}/counts.db")
    defined = load(FOLDER / "trident.yml")
    with LocalCluster() as cluster:
        running = cluster.submitTopology(defined.name, defined.configuration, defined.build())
        assert running.awaitTermination(60)
    counts = {word: value.curr for (word,), value in stored(defined.states["counts"]).items()}
    assert counts == {"the": 3, "cow": 1, "jumped": 1, "over": 1, "moon": 1, "man": 1, "went": 1, "to": 1}
'''
SENTENCES = """\
the cow jumped over
the moon
the man went to
"""


def create(name: str, folder: Path) -> list[Path]:
    """Write the project into the new folder ``name`` and return its files. Raises DefinitionError, and writes
    nothing, if there is something of that name already."""
    check_folder_name("the topology", name)
    place = folder / name
    if place.exists() or place.is_symlink():
        raise DefinitionError(f"{place} exists already, and nothing in it is overwritten. Choose another name")
    files = {
        "trident.yml": TOPOLOGY.format(name=json.dumps(name.replace("$", "$$"), ensure_ascii=False)),
        "states.yaml": STATES,
        "words.py": MODULE,
        "sentences.txt": SENTENCES,
        "test_words.py": TEST,
    }
    try:
        place.mkdir()
    except OSError as error:
        raise DefinitionError(f"{place} cannot be made: {error.strerror}") from None
    for file, text in files.items():
        (place / file).write_text(text, encoding="utf-8")
    return [place / file for file in files]
