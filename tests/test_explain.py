"""explain: a topology as it will run, as text and as a picture."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from examples import trident_reach
from trident_py import DefinitionError, TridentError, TridentTopology
from trident_py.extras.diagrams.diagrams import _svg
from trident_py.operations.builtin import Count, MapGet
from trident_py.report.explain import FORMS, render
from trident_py.spouts import FileSpout
from trident_py.state import BaseStateUpdater, StateSpec
from trident_py.testing import FixedBatchSpout, MemoryMapState, Split


def counting() -> TridentTopology:
    """Words of two partitions, counted in three; another stream asks for the counts."""
    topology = TridentTopology()
    lines = topology.newStream("lines", FileSpout("lines/*.txt", "line string")).name("text")
    words = lines.each("line", Split(), "word").project("word").parallelismHint(2)
    counts = words.groupBy("word").persistentAggregate(MemoryMapState.Factory(), Count(), "n", stateName='"counts"')
    counts.parallelismHint(3)
    asked = topology.newStream("asks", FixedBatchSpout("word", 1, ("a",)))
    asked.partitionBy("word").stateQuery(counts, "word", MapGet(), "n")
    return topology


TEXT = """\
#0 spout lines: FileSpout: [line string]
#1 each Split (text) <- #0: [line string, word ?]
#2 project [word] (text) x2 <- #1: [word ?]
#3 aggregate Count by [word] (partial) (text) <- #2: [word ?, n bigint]
#4 partition FieldsPartition(fields=Fields('word')) (text) <- #3: [word ?, n bigint]
#5 aggregate Count by [word] (merge) (text) <- #4: [word ?, n bigint]
#6 partitionPersist MapCombinerAggStateUpdater state "counts" (text) x3 <- #5: [word ?, n bigint]
#7 spout asks: FixedBatchSpout: [word ?]
#8 partition FieldsPartition(fields=Fields('word')) <- #7: [word ?]
#9 stateQuery MapGet state "counts" <- #8: [word ?, n ?]

stage 1: level 0, 2 partitions: #0
stage 2: level 0, 2 partitions: #1, #2, #3
  #3 sends [word, n] to stage 3 by partitionBy word
stage 3: level 1, 3 partitions, commits: #5, #6
stage 4: level 0, 1 partition: #7
  #7 sends [word] to stage 5 by partitionBy word
stage 5: level 1, 3 partitions: #9
state "counts" (opaque, exactly once): updated by #6; queried by #9"""

MERMAID = """\
flowchart TB
  subgraph s1["stage 1: level 0, 2 partitions (lines)"]
    n0["#0 spout lines: FileSpout<br>line string"]
  end
  subgraph s2["stage 2: level 0, 2 partitions (lines)"]
    n1["#1 each Split (text)<br>line string, word ?"]
    n2["#2 project [word] (text)<br>word ?"]
    n3["#3 aggregate Count by [word] (partial) (text)<br>word ?, n bigint"]
  end
  subgraph s3["stage 3: level 1, 3 partitions, commits (lines)"]
    n5["#5 aggregate Count by [word] (merge) (text)<br>word ?, n bigint"]
    n6["#6 partitionPersist MapCombinerAggStateUpdater state #quot;counts#quot; (text)<br>word ?, n bigint"]
  end
  subgraph s4["stage 4: level 0, 1 partition (asks)"]
    n7["#7 spout asks: FixedBatchSpout<br>word ?"]
  end
  subgraph s5["stage 5: level 1, 3 partitions (asks)"]
    n9["#9 stateQuery MapGet state #quot;counts#quot;<br>word ?, n ?"]
  end
  n0 --> n1
  n1 --> n2
  n2 --> n3
  n3 ==>|"partitionBy word<br>[word, n]"| n5
  n5 --> n6
  n7 ==>|"partitionBy word<br>[word]"| n9
  state0[("state #quot;counts#quot;<br>opaque<br>exactly once")]
  n6 -- updates --> state0
  state0 -. answers .-> n9"""


def test_the_text_has_steps_stages_partitions_exchanges_states_and_guarantees() -> None:
    assert counting().explain() == TEXT


def test_the_mermaid_text_has_a_box_for_each_stage_and_a_thick_arrow_for_each_exchange() -> None:
    assert counting().build().explain("mermaid") == MERMAID


def test_the_dot_text_has_the_same_boxes_and_arrows() -> None:
    dot = counting().explain("dot")
    assert re.findall(r"cluster_(\d) ", dot) == ["1", "2", "3", "4", "5"]
    assert re.findall(r"(\w+) -> (\w+) \[style=(\w+)", dot) == [
        ("n0", "n1", "solid"), ("n1", "n2", "solid"), ("n2", "n3", "solid"), ("n3", "n5", "bold"),
        ("n5", "n6", "solid"), ("n7", "n9", "bold"), ("state0", "n9", "dashed"),
    ]  # fmt: skip
    assert 'state0 [shape=cylinder, label="state \\"counts\\"\\nopaque\\nexactly once"];' in dot


def test_the_picture_is_drawn_by_graphviz() -> None:
    if shutil.which("dot") is None:
        message = "NOT TESTED: graphviz's dot is missing (make services)"
        pytest.fail(message) if os.environ.get("CI") == "true" else pytest.skip(message)
    svg = counting().explain("svg")
    root = ElementTree.fromstring(svg[svg.index("<svg") :])
    texts = ["".join(text.itertext()) for text in root.iter("{http://www.w3.org/2000/svg}text")]
    assert {'state "counts"', "exactly once", "stage 3: level 1, 3 partitions, commits (lines)"} <= set(texts)


def test_a_picture_that_takes_graphviz_too_long_names_the_next_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "dot").write_text("#!/bin/sh\nexec sleep 30\n")
    (tmp_path / "dot").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr("trident_py.extras.diagrams.diagrams.SECONDS", 0.2)
    with pytest.raises(TridentError, match=r"did not draw the topology within 0\.2 s; ask for mermaid or dot"):
        counting().explain("svg")


def test_without_graphviz_the_error_names_the_next_step() -> None:
    with pytest.raises(TridentError, match=r"no-such-dot is not on the PATH\. Install it .* or ask for mermaid"):
        _svg(counting().plan(), "no-such-dot")


def test_another_form_is_refused() -> None:
    with pytest.raises(DefinitionError, match="explain has no form 'png'; there are: text, mermaid, dot, svg"):
        counting().explain("png")


def test_a_topology_that_cannot_be_built_is_explained_as_far_as_it_goes() -> None:
    class Nothing(BaseStateUpdater):
        def updateState(self, state: Any, tuples: Any, collector: Any) -> None: ...

    topology = TridentTopology()
    words = topology.newStream("a", FixedBatchSpout("w", 1, ("x",))).shuffle().each("w", Split(), "v")
    for partitions in (2, 3):
        words.partitionPersist(StateSpec(MemoryMapState.Factory(), partitions), "w", Nothing())
    why = "Cannot have one group have fixed parallelism of two different values"
    *steps, empty, last = topology.explain().splitlines()
    assert steps[0].startswith("#0 spout a") and (empty, last) == ("", f"it cannot be built: {why}")
    with pytest.raises(DefinitionError, match=why):
        topology.explain("mermaid")


def test_an_empty_topology_has_no_lines() -> None:
    assert [TridentTopology().explain(form) for form in ("text", "mermaid")] == ["", "flowchart TB"]


def test_a_repartition_between_single_partitions_is_no_exchange() -> None:
    topology = TridentTopology()
    topology.newStream("a", FixedBatchSpout("w", 1, ("x",))).partitionBy("w").each("w", Split(), "v")
    assert [line.strip() for line in topology.explain("mermaid").splitlines() if "-->" in line or "==>" in line] == [
        'n0 -->|"partitionBy w"| n2'
    ]
    assert render(topology.plan()) == topology.explain()


@pytest.mark.parametrize("form", [form for form in FORMS if form != "svg"])
def test_the_command_prints_each_form(form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    from click.testing import CliRunner

    from trident_py.cli import trident

    (tmp_path / f"drawn_{form}.py").write_text(
        "from trident_py import TridentTopology\n"
        "from trident_py.testing import FixedBatchSpout\n"
        "def build():\n"
        "    topology = TridentTopology()\n"
        "    topology.newStream('a', FixedBatchSpout('w', 1, ('x',)))\n"
        "    return topology\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    done = CliRunner().invoke(trident, ["explain", f"drawn_{form}:build", "--format", form])
    first = {"text": "#0 spout a: FixedBatchSpout: [w ?]", "mermaid": "flowchart TB", "dot": "digraph topology {"}
    assert (done.exit_code, done.stdout.splitlines()[0]) == (0, first[form])
    assert ("no state is updated" in done.stdout) == (form == "text")


def test_a_state_whose_factory_cannot_be_hashed_is_explained() -> None:
    assert "state StaticSingleKeyMapState.Factory (unknown): queried by #1" in trident_reach.build().explain()
