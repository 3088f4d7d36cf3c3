"""Keys and values as Storm writes them: keys as text, values as JSON. What Redis would not give back is refused."""

from __future__ import annotations

import json
import math
import pickle
from collections.abc import Callable, Sequence
from typing import Any, Protocol, runtime_checkable

from trident_py.errors import DefinitionError, StateError
from trident_py.model.canonical import UnkeyableError, identity, to_plain
from trident_py.model.chunks import encodable
from trident_py.model.requirements import role
from trident_py.state import (
    JSONNonTransactionalSerializer,
    JSONOpaqueSerializer,
    JSONTransactionalSerializer,
    OpaqueValue,
    StateType,
    TransactionalValue,
)
from trident_py.state.base import Key
from trident_py.state.serializers import json_text

from ..location import OURS

SERIALIZERS: dict[StateType, Any] = {
    StateType.NON_TRANSACTIONAL: JSONNonTransactionalSerializer(),
    StateType.TRANSACTIONAL: JSONTransactionalSerializer(),
    StateType.OPAQUE: JSONOpaqueSerializer(),
}


@role
@runtime_checkable
class KeyFactory(Protocol):
    """Makes the name in Redis of a map's key. Called where the state is read and written, for each key of a batch, and
    must be picklable. Two keys must not get one name. Source in Storm: KeyFactory."""

    def build(self, key: Sequence[Any]) -> str: ...


class DefaultKeyFactory:
    """A key of one text is its own name. Raises StateError for any other key, as Storm's does."""

    def build(self, key: Sequence[Any]) -> str:
        if len(key) != 1:
            raise StateError(
                f"key {list(key)!r} has {len(key)} fields, and the default KeyFactory takes one. Give the state a "
                "keyFactory, an object with build(key), that makes one text of them"
            )
        if not isinstance(key[0], str):
            raise StateError(
                f"key {list(key)!r} ({type(key[0]).__name__}): the default KeyFactory takes a text. Group by a text, "
                "or give the state a keyFactory, an object with build(key)"
            )
        return key[0]

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self)

    def __hash__(self) -> int:
        return hash(type(self))

    def __repr__(self) -> str:
        return "DefaultKeyFactory()"


def check_factory(factory: Any) -> KeyFactory:
    """Raise DefinitionError for something that is not a KeyFactory, or cannot travel to tasks."""
    if not isinstance(factory, KeyFactory):
        raise DefinitionError(f"keyFactory must be an object with build(key), got {factory!r}")
    try:
        pickle.dumps(factory)
    except Exception as error:
        raise DefinitionError(f"keyFactory {factory!r} cannot be pickled for the tasks: {error}") from error
    return factory


def name_of(factory: KeyFactory, key: Key, strings: bool) -> str:
    """Return the key's name in Redis. Raises StateError for a name that is no text, or one of ours."""
    name = factory.build([to_plain(part) for part in key])
    if not isinstance(name, str) or not encodable(name):
        raise StateError(f"key {list(key)!r}: {factory!r} made {name!r} of it, which is not text. Nothing is written")
    if strings and name.startswith(OURS):
        raise StateError(
            f"key {list(key)!r}: names that begin with {OURS!r} are those of the ledger. Keep the state in a hash"
        )
    return name


def text_of(kind: StateType, stored: Any) -> bytes:
    """Return a map's value in Storm's bytes. Raises StateError for a part that would come back as another value."""
    serialize: Callable[[Any], bytes] = SERIALIZERS[kind].serialize
    if kind is StateType.TRANSACTIONAL:
        return serialize(TransactionalValue(stored[0], exact(stored[1])))
    if kind is StateType.OPAQUE:
        return serialize(OpaqueValue(stored[0], exact(stored[1]), exact(stored[2])))
    return serialize(exact(stored))


def value_of(kind: StateType, text: bytes) -> Any:
    """Return a map's value from its bytes. Unlike Storm's serializers, it reads back a value that was written outside a
    batch, without a txid. Raises StateError for bytes that this kind of map has not written."""
    if kind is not StateType.NON_TRANSACTIONAL and text.startswith(b"[null,"):
        parts = json.loads(text)
        value: Any = (OpaqueValue if kind is StateType.OPAQUE else TransactionalValue)(*parts)
        return value
    return SERIALIZERS[kind].deserialize(text)


def _no_number(name: str) -> Any:
    raise ValueError(f"JSON has no {name}")


def exact(value: Any) -> Any:
    """Return the plain value, if JSON gives it back as it is. Raises StateError."""
    kind = type(value)
    if kind is int or value is None or kind is bool or (kind is float and math.isfinite(value)):
        return value
    try:
        plain = to_plain(value)
        text = json_text(plain)
        if encodable(text) and identity(json.loads(text, parse_constant=_no_number)) == identity(plain):
            return plain
        why = "it would change in JSON"
    except (UnkeyableError, ValueError, RecursionError) as error:
        why = str(error)
    raise StateError(
        f"value {repr(value)[:80]} ({kind.__name__}): {why}. Nothing of the batch is written. Let the aggregator give "
        "numbers, texts, booleans, or lists and maps of them"
    )
