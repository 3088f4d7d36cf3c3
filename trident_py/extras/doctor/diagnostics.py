"""Finds what is wrong with a topology on a cluster, from what it needs and what the machines report. Starts nothing.

Three degrees: an "error" stops the start; "away" means that no machine reaches a store, so the start waits for it as it
does on one machine; a "note" is worth knowing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

from ...errors import DefinitionError
from ...model.plan import Plan, ProcessorNode, SpoutNode
from ...model.requirements import Needs, needs_of, split_addresses
from ...model.secrets import hide
from ...spark.launcher import is_one_machine

CLOCK_SECONDS = 60
ARROW = 18
DRIVER = "the driver"
BASE = Needs(("pyarrow", "cloudpickle"), "trident-py")
PACKAGES = ("trident-py", "pyarrow", "cloudpickle")
_HERE = ("localhost", "127.0.0.1", "::1", "0.0.0.0")  # noqa: S104  compared, not bound
_SHOWN = 5


@dataclass(frozen=True)
class Flaw:
    """What is wrong, with the cause and the next step. ``host``: the machine that has it, "" for the topology."""

    level: Literal["error", "away", "note"]
    host: str
    text: str


class Need(NamedTuple):
    """What a spout or a state needs. ``who`` names it in findings."""

    who: str
    needs: Needs


class Survey(NamedTuple):
    """What a machine said (`worker_report`). ``host``: its name in Spark. ``between``: the driver's clock before it was
    asked, and after it had answered."""

    host: str
    said: Mapping[str, Any]
    between: tuple[float, float]

    @property
    def shown(self) -> str:
        return self.host if self.said["host"] in (self.host, "") else f"{self.host} ({self.said['host']})"


def needs_in(plan: Plan) -> list[Need]:
    """Return the needs of the plan's spouts and states, each state once, also one that is only queried."""
    found: dict[str, Need] = {}
    for node in plan.nodes:
        if isinstance(node, SpoutNode):
            found[f"spout {node.id}"] = Need(f"spout {node.spout_id!r}", needs_of(node.spout))
        if isinstance(node, ProcessorNode) and node.state is not None:
            found[node.state.id] = Need(f"state {node.state.name!r}", needs_of(node.state.factory))
    return [need for need in found.values() if need.needs]


def at_home(master: str, needs: Iterable[Need], checkpoint: str | None) -> list[Flaw]:
    """Return what the driver sees alone. ``checkpoint``: its folder, if it is one of this machine and the user named
    it."""
    found = []
    one = [need for need in needs if need.needs.one_machine] if not is_one_machine(master) else []
    for who, need in one:
        found.append(
            f"{who} works on one machine only: {need.one_machine}. The executors of {master} are other machines. Use "
            "a server (mysql+pymysql://, postgresql+psycopg://) or a topic, or run on one machine: --master local[*]"
        )
    for who, need in needs:
        for path in need.paths:
            if not Path(path).is_absolute():
                found.append(
                    f"{who} needs {path!r}, a relative path, which each machine looks for in another folder. Name "
                    f"the whole path, such as {Path(path).absolute()}, and mount it on every machine"
                )
    if checkpoint is not None and not Path(checkpoint.removeprefix("file:")).is_absolute():
        found.append(
            f"the checkpoint {checkpoint!r} is a relative path of the driver's machine, so a driver started in another "
            "folder or on another machine begins anew. Name a whole path (--checkpoint, checkpoints=), best on a file "
            "system that all machines reach"
        )
    return [Flaw("error", "", text) for text in found]


def between_machines(
    needs: Sequence[Need], driver: Survey, reports: Sequence[Survey], checkpoint: str | None
) -> list[Flaw]:
    """Return what is wrong on the machines that answered. The driver's own report is what they are compared with."""
    found: list[Flaw] = []
    for report in reports:
        found += _versions(report, driver)
        found += _modules(report, [Need("every topology", BASE), *needs])
        found += _files(report, needs)
        found += _clock(report)
    for who, need in needs:
        for text in need.addresses:
            found += _reach(who, text, driver, reports)
    if checkpoint is not None and checkpoint not in list_paths(needs):
        found += _checkpoint(checkpoint, reports)
    return list(dict.fromkeys(found))


def list_paths(needs: Iterable[Need]) -> list[str]:
    return list(dict.fromkeys(path for need in needs for path in need.needs.paths))


def _versions(report: Survey, driver: Survey) -> Iterator[Flaw]:
    there, here = report.said, driver.said
    if there["ours"] == "missing":
        what = f"trident-py {here['versions']['trident-py']}".strip()
        yield _error(report, f"trident_py is missing there. {_install(what, report)}")
        return
    if _differs(there, here):
        both = f"another trident_py is there: {_version(there)}; the driver has {_version(here)}"
        yield _error(report, f"{both}. {_install('the same', report)}")
    yield from _arrow(report, there["versions"]["pyarrow"], here["versions"]["pyarrow"])
    yield from _program(report)


def _program(report: Survey) -> Iterator[Flaw]:
    missing, why = report.said["program"]
    if missing:
        text = f"the topology's code needs the module {missing!r}, which is missing there"
        yield _error(report, f"{text}. Send it with --py-files, or install it for {report.said['executable']} there")
    elif why:
        text = f"the topology cannot be loaded there: {hide(why)}"
        yield _error(report, f"{text}. {_install('what the driver has', report)}")


def _install(what: str, report: Survey) -> str:
    return f"Install {what} for {report.said['executable']} there, or send an environment that has it (--archives)"


def _differs(there: Mapping[str, Any], here: Mapping[str, Any]) -> bool:
    """Compare the sources; where one side has none, since it is in a zip file, the numbers of the versions."""
    if there["ours"] and here["ours"]:
        return bool(there["ours"] != here["ours"])
    return bool(there["versions"]["trident-py"] != here["versions"]["trident-py"])


def _version(said: Mapping[str, Any]) -> str:
    return f"version {said['versions']['trident-py'] or 'unknown'}, sources {said['ours'] or 'unknown'}"


def _arrow(report: Survey, there: str, here: str) -> Iterator[Flaw]:
    """Return the least version: all from it on read what the others write (docs/decisions.md); a user's code may
    differ."""
    if there and _major(there) < ARROW:
        yield _error(report, f"pyarrow {there} is there. {_install(f'pyarrow {here}', report)}")
    elif there and here and _major(there) != _major(here):
        yield Flaw("note", report.shown, f"pyarrow {there} is there, and {here} on the driver: trident_py works "
                      "with both, but a function of yours may compute other values in a replay there")  # fmt: skip


def _major(version: str) -> int:
    return int(version.partition(".")[0])


def _modules(report: Survey, needs: Sequence[Need]) -> Iterator[Flaw]:
    for who, need in needs:
        for module in need.modules:
            why = report.said["modules"].get(module, "")
            if why:
                text = f"{who} needs {module}, which cannot be imported there: {hide(why)}"
                yield _error(report, f"{text}. {_install(need.install or module, report)}")


def _files(report: Survey, needs: Sequence[Need]) -> Iterator[Flaw]:
    for who, need in needs:
        for path in need.paths:
            why = report.said["files"].get(path, "")
            if why and Path(path).is_absolute():
                text = f"{who} needs {path}, which cannot be read there: {why}"
                yield _error(report, f"{text}. Mount it under the same path on every machine")


def _clock(report: Survey) -> Iterator[Flaw]:
    """Estimate the difference of the clocks: the machine read its clock between two readings of the driver's, so the
    least difference is certain."""
    (before, after), there = report.between, report.said["clock"]
    off = max(there - after, before - there)
    if off > CLOCK_SECONDS:
        way = "ahead of" if there > after else "behind"
        text = f"its clock is {off:.0f} s {way} the driver's; {CLOCK_SECONDS} s are allowed"
        yield _error(report, f"{text}. Let NTP set it (chrony, systemd-timesyncd)")


def _reach(who: str, text: str, driver: Survey, reports: Sequence[Survey]) -> Iterator[Flaw]:
    """Yield findings for one address, or for several of which one must answer."""
    servers = split_addresses(text)
    answers = [[_answer(report, server) for server in servers] for report in (driver, *reports)]
    if not any("" in reasons for reasons in answers):
        why = f"{who} needs {text}, which no machine reaches, not even the driver ({answers[0][0]})"
        yield Flaw("away", "", f"{why}. Start it, or correct the address")
        return
    reached = DRIVER if "" in answers[0] else "another machine"
    step = "Open the way (firewall, route), or name an address that is valid there"
    if any(host in _HERE for host, _ in servers):
        step = "On each machine this address means that machine: name the server instead"
    for report, reasons in zip(reports, answers[1:], strict=True):
        if "" not in reasons:
            why = f"{who} needs {text}, which is not reached from there: {reasons[0]}; {reached} reaches it"
            yield _error(report, f"{why}. {step}")


def _answer(report: Survey, server: tuple[str, int]) -> str:
    answers: Mapping[str, str] = report.said["addresses"]
    return answers.get(f"{server[0]} {server[1]}", "not asked")


def _checkpoint(checkpoint: str, reports: Sequence[Survey]) -> Iterator[Flaw]:
    if any(report.said["files"].get(checkpoint) for report in reports):
        text = f"the checkpoint {checkpoint} is a folder of the driver's machine, and is lost with it"
        yield Flaw("note", "", f"{text}. A file system that all machines reach outlives them (hdfs://, s3a://)")


def _error(report: Survey, text: str) -> Flaw:
    return Flaw("error", report.shown, text)


def describe_all(findings: Iterable[Flaw]) -> list[str]:
    """Return one line for each text, with the machines that it is true for."""
    hosts: dict[str, list[str]] = {}
    for finding in findings:
        hosts.setdefault(finding.text, []).append(finding.host)
    return [f"{_names(names)}{text}" for text, names in hosts.items()]


def _names(hosts: Sequence[str]) -> str:
    named = [host for host in dict.fromkeys(hosts) if host]
    more = f" and {len(named) - _SHOWN} more" if len(named) > _SHOWN else ""
    return f"{', '.join(named[:_SHOWN])}{more}: " if named else ""


def refusal(master: str, findings: Sequence[Flaw]) -> DefinitionError:
    """Return the error of a start that findings stop."""
    lines = describe_all(finding for finding in findings if finding.level == "error")
    problems = "1 problem" if len(lines) == 1 else f"{len(lines)} problems"
    listed = "\n".join(f"- {line}" for line in lines)
    return DefinitionError(
        f"the topology cannot run on {master}: {problems}, nothing was started\n{listed}\n"
        "Check again with: trident doctor (docs/doctor.md). topology.probe=false leaves out the checks of the machines"
    )
