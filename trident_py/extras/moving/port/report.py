"""What was translated, and what was not: counted by file."""

from __future__ import annotations

from dataclasses import dataclass, field

from .source import Untranslatable


@dataclass(frozen=True)
class PortFinding:
    """A statement that is not translated. ``section``: the guide's page for it."""

    line: int
    reason: str
    section: str


@dataclass(eq=False)
class PortReport:
    """The statements of one file."""

    java: str
    python: str
    statements: int = 0
    findings: list[PortFinding] = field(default_factory=list)

    def refuse(self, line: int, error: Untranslatable) -> None:
        self.findings.append(PortFinding(line, error.reason, error.section or _section(error.reason)))

    @property
    def share(self) -> float:
        return 1.0 if not self.statements else 1 - len(self.findings) / self.statements

    def as_json(self) -> dict[str, object]:
        return {
            "java": self.java,
            "python": self.python,
            "statements": self.statements,
            "translated": self.statements - len(self.findings),
            "findings": [vars(finding) for finding in self.findings],
        }


_SECTIONS = {
    "Kafka": "kafka.md#coming-from-storm", "Spout": "porting_classes.md#spouts", "State": "porting.md#states",
    "Window": "windows.md", "DRPC": "drpc.md", "Fields": "porting_classes.md#tuples-fields-values",
    "Bolt": "porting.md#what-old-code-imports", "Topology": "porting_calls.md",
    "Options": "porting.md#states",
}  # fmt: skip


def _section(reason: str) -> str:
    return next((page for word, page in _SECTIONS.items() if word in reason), "porting.md#from-java-to-python")
