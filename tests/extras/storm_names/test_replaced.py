"""What old code imports: the guide and the errors say the same of each name."""

from __future__ import annotations

import importlib
import pkgutil
import re
from pathlib import Path

import pytest
from test_api import HOMES

from trident_py.extras.storm_names.replaced import TABLE

GUIDE = (Path(__file__).parents[3] / "docs" / "porting.md").read_text()
NAMES = {name: instead for names, instead in TABLE.items() for name in names.split()}
PACKAGES = (*HOMES, "trident_py.kafka", "states", "states.sql", "states.kafka", "states.redis", "states.files")
REPORTED = """
    OpaqueTridentKafkaSpout TransactionalTridentKafkaSpout TridentKafkaConfig ZkHosts StringScheme SchemeAsMultiScheme
    TridentKafkaStateFactory HdfsState JdbcState HBaseState TimeUnit Utils StormTopology TopologyContext BaseRichSpout
"""
"""What ten public topologies import."""


def test_the_guide_has_the_rows_of_the_list() -> None:
    section = GUIDE.partition("\n## What old code imports\n")[2].partition("\n## ")[0]
    rows = dict(re.findall(r"^\| (`.*?) \| (.*) \|$", section, re.M))
    assert {names.replace("`", "").replace(",", ""): instead for names, instead in rows.items()} == TABLE
    assert set(REPORTED.split()) <= set(NAMES)


@pytest.mark.parametrize("package", PACKAGES)
def test_an_import_of_a_replaced_name_says_what_takes_its_place(package: str) -> None:
    assert not set(NAMES) & set(vars(importlib.import_module(package)))
    for name, instead in NAMES.items():
        said = f"Storm's {name} is not in {package}. In its place: {instead}"
        with pytest.raises(ImportError, match=re.escape(said)):
            exec(f"from {package} import {name}")
    with pytest.raises(ImportError, match="cannot import name 'Nothing'"):
        exec(f"from {package} import Nothing")
    assert not hasattr(importlib.import_module(package), "Nothing")


def test_what_takes_a_names_place_exists() -> None:
    for dotted in re.findall(r"`((?:trident_py|states)(?:\.\w+)+)", " ".join(TABLE.values())):
        pkgutil.resolve_name(dotted)  # raises for what is not there
