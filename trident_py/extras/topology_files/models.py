"""The keys of a topology file, and of the mappings in it that are no calls."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, WithJsonSchema


def _arguments(value: Any) -> Any:
    if not isinstance(value, list | dict):
        raise ValueError("expected a list of arguments, or a mapping from their names to their values")
    return value


_ARGUMENTS = {"anyOf": [{"type": "array", "items": {"x-kind": "argument"}},
                        {"type": "object", "additionalProperties": {"x-kind": "argument"}}]}  # fmt: skip
Arguments = Annotated[Any, AfterValidator(_arguments), WithJsonSchema(_ARGUMENTS)]


class Keys(BaseModel):
    """A mapping of a file: an unknown key is refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)


class IncludedKeys(Keys):
    """What a file may bring that another one includes. A states file is such a file."""

    configuration: dict[str, Any] = Field({}, description="Keys of the topology's conf, and Spark's (spark.*)")
    components: dict[str, Any] = Field({}, description="Objects by name, for ref:")
    states: Any = Field(None, description="The states by name, as in a states file; or the path of a states file")
    streams: dict[str, Any] = Field({}, description="The streams by name")


class TopologyKeys(IncludedKeys):
    """The topology file."""

    name: str = Field(description="Name of the topology, and of its folder in the checkpoint")
    storage: str | None = Field(None, description="Folder or URI of the checkpoint; default: as without a file")
    includes: list[str] = Field([], description="Files with further configuration, components, states and streams")
    topologySource: Any = Field(None, description="A builder in Python instead of streams")


class ObjectKeys(Keys):
    """An object that the file makes."""

    className: str = Field(description="module:Class, module:function, or the name of a built-in")
    constructorArgs: Arguments = Field([], description="Arguments by position, or by name")
    configMethods: list[Any] = Field([], description="Methods that are called on the object: name and args")


class MethodKeys(Keys):
    """A method that is called on a new object."""

    name: str = Field(description="Name of the method")
    args: Arguments = Field([], description="Arguments by position, or by name")


class SourceKeys(Keys):
    """A builder in Python."""

    className: str = Field(description="module:function that returns the topology, or module:Class")
    methodName: str | None = Field(None, description="Method of the class; it gets the conf; default: getTopology")
    constructorArgs: Arguments = Field([], description="Arguments of the function or the class")


class WindowKeys(Keys):
    """A window as data."""

    windowLength: Any = Field(description="A number of tuples, or a time, such as {seconds: 10}")
    slideLength: Any = Field(None, description="Distance between windows; default: windowLength, a tumbling window")
    timestampField: str | None = Field(None, description="Field with the time of a tuple, for windows in event time")
    lag: Any = Field(None, description="How late a tuple may be, such as {seconds: 5}")
