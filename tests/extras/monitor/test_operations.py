"""The rules for Prometheus and the dashboard for Grafana: they ask for metrics that there are."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner
from needed import needed

from testbed.service import ServiceMissing
from trident_py.extras.monitor.cli import metrics
from trident_py.extras.monitor.metrics import RunCollector
from trident_py.extras.monitor.timeline import Timeline
from trident_py.report.progress import Event

FOLDER = Path(__file__).parents[3] / "docs" / "operations"
RULES, DASHBOARD = FOLDER / "prometheus-rules.yml", FOLDER / "grafana-dashboard.json"
COMMANDS = {"rules": RULES, "dashboard": DASHBOARD}


class Record:
    """What the metrics read of a run: a batch was committed."""

    def __init__(self) -> None:
        line = Timeline(("run", "words"))
        line.progress.txid, line.progress.generations = 1, {"counts": 1}
        line.progress.emitted, line.progress.persisted = {"words": 1}, {"counts": 1}
        line.progress.backlog, line.progress.seconds = {"words": {"0": 1}}, {"emit": 0.1}
        line.event(Event("committed", 1, 0, ""))
        self.timelines = {"words": line}


def asked() -> list[str]:
    rules = [rule["expr"] for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"]]
    panels: list[dict[str, Any]] = json.loads(DASHBOARD.read_text())["panels"]
    return rules + [target["expr"] for panel in panels for target in panel["targets"]]


def test_they_ask_for_metrics_that_there_are() -> None:
    metrics = RunCollector(Record()).collect()  # type: ignore[arg-type]
    there = {sample.name: set(sample.labels) for metric in metrics for sample in metric.samples}
    for expression in asked():
        for name, labels in re.findall(r"(trident_\w+)(?:\{([^}]*)\})?", expression):
            assert name in there, expression
            assert set(re.findall(r"(\w+)=", labels)) - {"instance"} <= there[name], expression


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_prints_what_the_docs_show(name: str) -> None:
    done = CliRunner().invoke(metrics, [name])
    assert (done.exit_code, done.output) == (0, COMMANDS[name].read_text())


@pytest.mark.whole("test_they_ask_for_metrics_that_there_are")
def test_prometheus_takes_the_rules() -> None:
    with needed("promtool"):
        promtool = shutil.which("promtool") or shutil.which("promtool", path=str(Path(sys.executable).parent))
        if promtool is None:
            raise ServiceMissing("there is no promtool; see scripts/tools.sh")
    subprocess.run([promtool, "check", "rules", str(RULES)], check=True, capture_output=True)
