"""What an error says, told alike for Storm's exceptions and for ours: what is wrong, with which fields, and where.

An exception of Java that tells no more than an index means what it means at the place it was raised, so a meaning goes
by the processor too, which the recorded cases have (a live oracle does not tell it). An error without a meaning differs
from every other.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

ANY = r"[\s\S]*"
INDEX = r"Index (?P<i>\d+) out of bounds for length (?P=i)"
AT_INDEX = "(Array)?IndexOutOfBoundsException"


class Meaning(NamedTuple):
    """``storm``, ``ours``: "class: message" as a pattern; its groups ``what`` and ``fields`` must hold the same."""

    name: str
    storm: str
    ours: str
    processor: str = ANY
    code: str = ANY


MEANINGS = (
    Meaning(
        "unknown field",
        r"IllegalArgumentException: Trying to select non-existent field: (?P<what>'.*' from stream containing fields)"
        r" fields: <(?P<fields>\[.*\])>",
        r"DefinitionError: Trying to select non-existent field: (?P<what>'.*' from stream containing fields):"
        rf" (?P<fields>\[.*?\]){ANY}",
    ),
    Meaning(
        "a field twice",
        "IllegalArgumentException: duplicate field (?P<what>'.*')",
        "DefinitionError: duplicate field (?P<what>'.*')",
    ),
    Meaning(
        "a combiner with not one field",
        "IllegalArgumentException: Combiner aggs only take a single field as input. Got this instead: (?P<what>.*)",
        "DefinitionError: Combiner aggs only take a single field as input. Got this instead: (?P<what>.*)",
    ),
    Meaning(
        "outputs of a chain alike",
        "IllegalArgumentException: Output fields for chained aggregators must be distinct: (?P<what>.*)",
        "DefinitionError: Output fields for chained aggregators must be distinct: (?P<what>.*)",
    ),
    Meaning(
        "two streams of one name",
        r"WrappedInvalidTopologyException: .*non-existent stream: \[\$coord-bg0\] of component \[spout-(?P<what>.*)\]",
        f"DefinitionError: two streams are named '(?P<what>.*?)'{ANY}",
    ),
    Meaning(
        "a row of the spout that is too short or too long",
        "IllegalArgumentException: Tuple created with wrong number of fields. Expected .*",
        f"WrongNumberOfValues: spout .*: Tuple created with wrong number of fields. Expected {ANY}",
    ),
    Meaning(
        "a slide above the length",
        "IllegalArgumentException: slideLength (?P<what>'.*') should always be less than windowLegth (?P<fields>'.*')",
        f"DefinitionError: slideLength (?P<what>'.*?') should always be less than windowLength (?P<fields>'.*?'){ANY}",
    ),
    Meaning(
        "an update by a DRPC stream",
        r"WrappedInvalidTopologyException: .* subscribes from non-existent component \[\$mastercoord-bg1\]",
        f"DefinitionError: the DRPC stream 'f' would update the state {ANY}",
    ),
    Meaning(
        "a DRPC stream with a spout's",
        "RuntimeException: Cannot join DRPC stream with streams originating from other spouts",
        f"DefinitionError: Cannot join DRPC stream with streams originating from other spouts{ANY}",
    ),
    Meaning("thrown", "IllegalStateException: thrown by the function", "RuntimeError: thrown by the function"),
    Meaning(
        "one of a chain of aggregators emitted nothing",
        f"{AT_INDEX}: Index 0 out of bounds for length 0",
        f"TridentError: in a chain of aggregators each must emit{ANY}",
        "AggregateProcessor",
        "None",
    ),
    Meaning(
        "a tuple without a value is read",
        f"{AT_INDEX}: {INDEX}",
        "IndexError: tuple index out of range",
        "(Each|Aggregate)Processor",
        "Fn|None",
    ),
    Meaning(
        "a value is read that was not emitted",
        f"{AT_INDEX}: {INDEX}",
        f"MissingValueError: a tuple was emitted with too few values{ANY}",
        "(Each|Map|Aggregate|MultiReducer)Processor",
        "(?!None).*",
    ),
    Meaning(
        "Sum of what is no number",
        "ClassCastException: .* cannot be cast to class java.lang.Number .*",
        f"TridentError: Sum: .* is not a number{ANY}",
        code="Sum",
    ),
    Meaning(
        "Sum of null",
        "NullPointerException: .*Number.longValue.* is null",
        f"TridentError: Sum: null in field{ANY}",
        code="Sum",
    ),
    Meaning(
        "values that cannot be compared",
        "ClassCastException: .* cannot be cast to class java.lang.(Long|Double) .*|NullPointerException: .*another.*",
        f"TridentError: cannot compare{ANY}",
        "AggregateProcessor",
    ),
    Meaning(
        "the first 0",
        "IllegalArgumentException: None",
        "TridentError: FirstN sorted by .*: n must be 1 or more, got 0",
        code="FirstNSortedAgg",
    ),
    Meaning(
        "Equals of two nulls",
        'NullPointerException: Cannot invoke "Object.equals.*" because "o1" is null',
        f"TridentError: Equals: two nulls{ANY}",
        code="Equals",
    ),
    Meaning(
        "an aggregator reads an unknown field",
        'NullPointerException: Cannot read field "delegateIndex" because "ptr" is null',
        "DefinitionError: .* does not exist; the fields are .*",
        "AggregateProcessor",
    ),
    Meaning(
        "fewer join types than streams",
        "RuntimeException: Expected .* lists, but instead got .* lists",
        f"TridentError: 1 join types for .* streams{ANY}",
        "MultiReducerProcessor",
    ),
)


AT = {
    "EachProcessor": r"(each|filter) .*|aggregate .* \(partial\)",
    "MapProcessor": "(map|flatMap|peek) .*",
    "AggregateProcessor": "(aggregate|collect) .*",
    "MultiReducerProcessor": "multiReduce .*",
    "StateQueryProcessor": "stateQuery .*",
    "PartitionPersistProcessor": "partitionPersist .*",
}
NAMES = {
    "SinkAgg": "collect",
    "1": "FirstNSortedAgg",
    "ByField": "WithComparator",
    "ComparisonAggregator": "Min|Max",
    "Emit": "CaseSpout",
}


def same(storm: dict[str, Any], ours: dict[str, Any]) -> bool:
    """Do both say the same, of the same fields, at the same place, as far as both say it?"""
    theirs, own = meanings(storm), meanings(ours)
    if not any(theirs[name] == own[name] for name in theirs.keys() & own.keys()):
        return False
    operation, processor, code = str(ours["operation"]), storm.get("processor"), storm.get("code")
    return (processor is None or re.fullmatch(AT[processor], operation) is not None) and (
        code is None or re.search(NAMES.get(code, re.escape(code)), operation) is not None
    )


def meanings(error: dict[str, Any]) -> dict[str, tuple[str, ...]]:
    """All that the error may mean, each with what it names."""
    said = f"{error['class'].rpartition('.')[2]}: {error['message']}"
    ours, found = "operation" in error, {}
    for meaning in MEANINGS:
        match = re.fullmatch(meaning.ours if ours else meaning.storm, said)
        if match and (ours or (_at(error, "processor", meaning.processor) and _at(error, "code", meaning.code))):
            found[meaning.name] = tuple(v for k, v in sorted(match.groupdict().items()) if k in ("what", "fields"))
    return found


def _at(error: dict[str, Any], part: str, wanted: str) -> bool:
    """A live oracle does not tell the place."""
    return part not in error or re.fullmatch(wanted, str(error[part])) is not None
