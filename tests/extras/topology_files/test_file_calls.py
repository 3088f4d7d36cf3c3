"""A topology file can say every call of the builder, with the builder's own names for the arguments."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, get_overloads

import pytest

from trident_py import GroupedStream, Stream, TridentTopology
from trident_py.extras.topology_files.builder import PARAMETERS, TAKES, method_of
from trident_py.extras.topology_files.calls import OPERATIONS, SOURCES
from trident_py.topology import ChainedAggregatorDeclarer, TridentState

UNSAID = {
    "getName getOutputFields getGroupFields check topology": "asks a handle and adds nothing",
    "persist": "internal: what partitionPersist and persistentAggregate end in",
    "setCPULoad setMemoryLoad addSharedMemory": "has no effect",
    "setResourceDefaults setMasterCoordResources": "has no effect",
    "newStaticState": "a state that only stateQuery names is static",
    "build explain guarantees plan add node hint state_use check_own": "not a statement of the topology",
    "kind": "an attribute",
}
OTHER_FORMS = {
    "join": {"s1", "s2", "joinFields1", "joinFields2"},
    "merge": {"stream"},
    "multiReduce": {"s1", "s2", "inputFields1", "inputFields2"},
}
"""Parameters of Java's forms for two streams; a file lists the streams."""
BUILDERS = {Stream, GroupedStream, TridentState, ChainedAggregatorDeclarer, TridentTopology}


def test_every_method_of_the_builder_is_an_operation_or_listed() -> None:
    methods = {name for kind in BUILDERS for name in dir(kind) if not name.startswith("_")}
    said = {method_of(name) for name in (*OPERATIONS, *SOURCES)} - {"stream"}
    unsaid = {name for names in UNSAID for name in names.split()}
    assert methods - said == unsaid
    assert said - methods == set()
    assert said & unsaid == set()


@pytest.mark.parametrize("name", [*OPERATIONS, *SOURCES])
def test_the_keys_of_a_call_are_the_parameters_of_the_builder(name: str) -> None:
    if name == "stream":
        return
    keys = {PARAMETERS.get(name, {}).get(key, key) for key in (OPERATIONS | SOURCES)[name].model_fields}
    homes = [kind for kind in BUILDERS if method_of(name) in dir(kind)]
    named = set().union(*(parameters(getattr(kind, method_of(name))) for kind in homes))
    if name == "newDRPCStream":
        named.remove("drpc")  # an object of a test; a run of the command line has the process's own
    assert keys == named - OTHER_FORMS.get(name, set())


def parameters(method: Callable[..., Any]) -> set[str]:
    forms = get_overloads(method) or [method]
    return {name for form in forms for name in inspect.signature(form).parameters} - {"self"}


def test_each_handle_takes_the_operations_that_it_has() -> None:
    assert TAKES[TridentState] == ["parallelismHint", "newValuesStream"]
    assert TAKES[ChainedAggregatorDeclarer] == ["aggregate", "partitionAggregate", "chainEnd"]
    assert "window" in TAKES[Stream] and "window" not in TAKES[GroupedStream]
