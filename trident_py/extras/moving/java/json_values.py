"""JSON as the three usual libraries read and write it: json-simple, org.json and Jackson."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from contextlib import suppress
from decimal import Decimal
from typing import Any, NamedTuple, Self

from ....state.serializers import quote_json
from .collections import HashMap
from .errors import JSONError, JsonProcessingError, NumberFormatError, ParseError
from .numbers import number_of_text, parse_cut, parse_double, parse_int, parse_long, to_int, to_long
from .objects import to_text
from .strings import trim

__all__ = [
    "JSONArray", "JSONObject", "JSONParser", "JsonNode", "ObjectMapper", "OrgJSONArray", "OrgJSONObject", "parse_json",
    "to_json",
]  # fmt: skip


class JSONObject(HashMap):
    """json-simple's: a HashMap."""

    def __str__(self) -> str:
        return to_json(self)


class JSONArray(list):
    def __str__(self) -> str:
        return to_json(self)


def _pairs(kind: Any) -> Any:
    def make(pairs: list[tuple[str, Any]]) -> Any:
        made = kind()
        for key, value in pairs:
            made[key] = value
        return made

    return make


def _load(text: str, kind: Any, **numbers: Any) -> Any:
    try:
        return json.loads(text, object_pairs_hook=_pairs(kind), **numbers)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


class JSONParser:
    def parse(self, text: str) -> Any:
        try:
            return _arrays(_load(text, JSONObject))
        except ValueError as error:
            raise ParseError(str(error)) from error


def _arrays(value: Any) -> Any:
    if isinstance(value, list):
        return JSONArray(map(_arrays, value))
    if isinstance(value, JSONObject):
        for key in list(value):
            value[key] = _arrays(value[key])
    return value


def parse_json(text: str) -> Any:
    """Return what ``JSONValue.parse`` does: None for a text that is no JSON."""
    try:
        return JSONParser().parse(text)
    except ParseError:
        return None


_SHORT = str.maketrans({'"': '\\"', "\\": "\\\\", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t"})
_BY_JACKSON = {code: f"\\u{code:04X}" for code in range(0x20)} | _SHORT
_BY_ORG = {code: f"\\u{code:04x}" for code in (*range(0x20), *range(0x80, 0xA0), *range(0x2000, 0x2100))} | _SHORT


def _quote_by_org(text: str) -> str:
    return f'"{text.translate(_BY_ORG)}"'.replace("</", "<\\/")


def _number_by_org(value: float | Decimal) -> str:
    text = to_text(value)
    return text if "E" in text or "." not in text else text.rstrip("0").rstrip(".")


def _number_of_org(text: str) -> float | Decimal:
    return float(text) if math.isfinite(float(text)) else Decimal(text)


def _check_finite(value: Any) -> None:
    """Raise JSONError for NaN and Infinity, also in a list or a map, as org.json does."""
    if isinstance(value, float) and not math.isfinite(value):
        raise JSONError("JSON does not allow non-finite numbers.")
    for one in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        _check_finite(one)


class _Style(NamedTuple):
    """How a library writes a text, and a number with a fraction."""

    quote: Callable[[str], str]
    number: Callable[[float | Decimal], str]


_SIMPLE = _Style(quote_json, lambda value: to_text(value) if math.isfinite(value) else "null")
_ORG = _Style(_quote_by_org, _number_by_org)
_JACKSON = _Style(
    lambda text: f'"{text.translate(_BY_JACKSON)}"',
    lambda value: to_text(value) if math.isfinite(value) else f'"{to_text(value)}"',
)


def to_json(value: Any, style: _Style = _SIMPLE) -> str:
    """Write JSON without blanks, in the order of the map."""
    if isinstance(value, dict):
        return "{" + ",".join(f"{style.quote(to_text(k))}:{to_json(v, style)}" for k, v in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ",".join(to_json(one, style) for one in value) + "]"
    if isinstance(value, float | Decimal):
        return style.number(value)
    if value is None or isinstance(value, bool | int):
        return to_text(value)
    return style.quote(to_text(value))


class _Lookup:
    """What OrgJSONObject and OrgJSONArray share: reading, and the getters. ``_expected``: the error for a text of
    another kind."""

    _expected: str

    @classmethod
    def parse(cls, text: str) -> Self:
        try:
            found = _wrap_values(_load(text, HashMap, parse_constant=str, parse_float=_number_of_org))
        except ValueError as error:
            raise JSONError(str(error)) from error
        if not isinstance(found, cls):
            raise JSONError(cls._expected)
        return found

    def getValue(self, key: Any) -> Any:
        raise NotImplementedError

    def _get_typed(self, key: Any, kinds: Any, name: str) -> Any:
        value = self.getValue(key)
        if not isinstance(value, kinds) or (isinstance(value, bool) and kinds is not bool):
            raise JSONError(f"JSONObject[{_quote_by_org(str(key))}] is not a {name}.")
        return value

    def getString(self, key: Any) -> str:
        return self._get_typed(key, str, "string")

    def _number(self, key: Any, name: str, parse: Callable[[str], Any]) -> Any:
        value = self.getValue(key)
        if isinstance(value, str):
            with suppress(NumberFormatError):
                return parse(value)
        return self._get_typed(key, (int, float), name)

    def getInt(self, key: Any) -> int:
        return to_int(self._number(key, "int", parse_int))

    def getLong(self, key: Any) -> int:
        return to_long(self._number(key, "long", parse_long))

    def getDouble(self, key: Any) -> float:
        return float(self._number(key, "double", parse_double))

    def getBoolean(self, key: Any) -> bool:
        value = self.getValue(key)
        if isinstance(value, str) and value.lower() in ("true", "false"):
            return value.lower() == "true"
        return self._get_typed(key, bool, "Boolean")

    def getJSONObject(self, key: Any) -> OrgJSONObject:
        return self._get_typed(key, OrgJSONObject, "JSONObject")

    def getJSONArray(self, key: Any) -> OrgJSONArray:
        return self._get_typed(key, OrgJSONArray, "JSONArray")


class OrgJSONObject(_Lookup):
    _expected = "A JSONObject text must begin with '{' at 1 [character 2 line 1]"

    def __init__(self) -> None:
        self._values: HashMap = HashMap()

    def getValue(self, key: str) -> Any:
        if key not in self._values:
            raise JSONError(f"JSONObject[{_quote_by_org(str(key))}] not found.")
        return self._values[key]

    def opt(self, key: str) -> Any:
        return self._values.get(key)

    def optString(self, key: str, default: str = "") -> str:
        value = self._values.get(key)
        return default if value is None else to_text(value)

    def _opt_number(self, key: str, default: float) -> Any:
        value = self._values.get(key)
        if isinstance(value, str):
            with suppress(ValueError):
                return number_of_text(value)
        return value if isinstance(value, int | float) and not isinstance(value, bool) else default

    def optInt(self, key: str, default: int = 0) -> int:
        return to_int(self._opt_number(key, default))

    def optLong(self, key: str, default: int = 0) -> int:
        return to_long(self._opt_number(key, default))

    def optDouble(self, key: str, default: float) -> float:
        return float(self._opt_number(key, default))

    def optBoolean(self, key: str, default: bool = False) -> bool:
        with suppress(JSONError):
            return self.getBoolean(key)
        return default

    def optJSONObject(self, key: str) -> Any:
        value = self._values.get(key)
        return value if isinstance(value, OrgJSONObject) else None

    def optJSONArray(self, key: str) -> Any:
        value = self._values.get(key)
        return value if isinstance(value, OrgJSONArray) else None

    def has(self, key: str) -> bool:
        return key in self._values

    def isNull(self, key: str) -> bool:
        return self._values.get(key) is None

    def put(self, key: str, value: Any) -> OrgJSONObject:
        if key is None:
            raise TypeError("Null key.")
        _check_finite(value)
        if value is None:
            self._values.pop(key, None)
        else:
            self._values[key] = value
        return self

    def keySet(self) -> list[str]:
        return list(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __str__(self) -> str:
        return "{" + ",".join(f"{_quote_by_org(k)}:{_org_text(v)}" for k, v in self._values.items()) + "}"


class OrgJSONArray(_Lookup):
    _expected = "A JSONArray text must start with '[' at 1 [character 2 line 1]"

    def __init__(self, values: list[Any] | None = None) -> None:
        self._values = values or []

    def getValue(self, key: int) -> Any:
        if not 0 <= key < len(self._values):
            raise JSONError(f"JSONArray[{key}] not found.")
        return self._values[key]

    def put(self, value: Any) -> OrgJSONArray:
        _check_finite(value)
        self._values.append(value)
        return self

    def __iter__(self) -> Iterator[Any]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __str__(self) -> str:
        return "[" + ",".join(map(_org_text, self._values)) + "]"


def _wrap_values(value: Any) -> Any:
    if isinstance(value, dict):
        made = OrgJSONObject()
        for key, one in value.items():
            made._values[key] = _wrap_values(one)
        return made
    return OrgJSONArray(list(map(_wrap_values, value))) if isinstance(value, list) else value


def _org_text(value: Any) -> str:
    return str(value) if isinstance(value, _Lookup) else to_json(value, _ORG)


_MISSING = object()


class JsonNode:
    """Jackson's tree."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def _child(self, key: Any) -> Any:
        if isinstance(self.value, dict):
            return self.value.get(key, _MISSING)
        if isinstance(self.value, list) and isinstance(key, int) and 0 <= key < len(self.value):
            return self.value[key]
        return _MISSING

    def get(self, key: Any) -> JsonNode | None:
        found = self._child(key)
        return None if found is _MISSING else JsonNode(found)

    def path(self, key: Any) -> JsonNode:
        return JsonNode(self._child(key))

    def has(self, key: Any) -> bool:
        return self._child(key) is not _MISSING

    def hasNonNull(self, key: Any) -> bool:
        return self._child(key) not in (_MISSING, None)

    def isMissingNode(self) -> bool:
        return self.value is _MISSING

    def isNull(self) -> bool:
        return self.value is None

    def isArray(self) -> bool:
        return isinstance(self.value, list)

    def isObject(self) -> bool:
        return isinstance(self.value, dict)

    def isTextual(self) -> bool:
        return isinstance(self.value, str)

    def isNumber(self) -> bool:
        return isinstance(self.value, int | float) and not isinstance(self.value, bool)

    def textValue(self) -> str | None:
        return self.value if isinstance(self.value, str) else None

    def asText(self, default: str | None = None) -> str:
        if self.value is _MISSING or self.value is None:
            return default if default is not None else "" if self.value is _MISSING else "null"
        return "" if isinstance(self.value, dict | list) else to_text(self.value)

    def _number(self, default: Any, parse: Callable[[str], Any]) -> Any:
        if isinstance(self.value, str):
            try:
                return parse(trim(self.value))
            except NumberFormatError:
                return default
        return self.value if isinstance(self.value, int | float) else default

    def asInt(self, default: int = 0) -> int:
        return to_int(self._number(default, lambda text: parse_cut(text, parse_int)))

    def asLong(self, default: int = 0) -> int:
        return to_long(self._number(default, lambda text: parse_cut(text, parse_long)))

    def asDouble(self, default: float = 0.0) -> float:
        return float(self._number(default, parse_double))

    def asBoolean(self) -> bool:
        value = self.value
        return trim(value) == "true" if isinstance(value, str) else isinstance(value, int) and value != 0

    def intValue(self) -> int:
        return self.asInt() if self.isNumber() else 0

    def longValue(self) -> int:
        return self.asLong() if self.isNumber() else 0

    def doubleValue(self) -> float:
        return self.asDouble() if self.isNumber() else 0.0

    def size(self) -> int:
        return len(self.value) if isinstance(self.value, dict | list) else 0

    def put(self, key: str, value: Any) -> JsonNode:
        self.value[key] = value.value if isinstance(value, JsonNode) else value
        return self

    def putArray(self, key: str) -> JsonNode:
        self.value[key] = []
        return JsonNode(self.value[key])

    def putObject(self, key: str) -> JsonNode:
        self.value[key] = {}
        return JsonNode(self.value[key])

    def add(self, value: Any) -> JsonNode:
        self.value.append(value.value if isinstance(value, JsonNode) else value)
        return self

    def __iter__(self) -> Iterator[JsonNode]:
        values = self.value.values() if isinstance(self.value, dict) else self.value
        return iter([JsonNode(one) for one in values] if isinstance(self.value, dict | list) else [])

    def __str__(self) -> str:
        return "" if self.value is _MISSING else to_json(self.value, _JACKSON)


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is no JSON")


_DECODER = json.JSONDecoder(parse_constant=_refuse)
_BLANKS = " \t\r\n"


class ObjectMapper:
    def readTree(self, text: str) -> JsonNode:
        return JsonNode(self.readValue(text) if text.strip() else _MISSING)

    def readValue(self, text: str) -> Any:
        try:
            value, end = _DECODER.raw_decode(text, len(text) - len(text.lstrip(_BLANKS)))
        except (ValueError, RecursionError) as error:
            raise JsonProcessingError(str(error)) from error
        if isinstance(value, dict | list | str) or not text[end : end + 1].strip(_BLANKS):
            return value  # Jackson does not look at what follows
        raise JsonProcessingError(f"Unexpected character {text[end]!r} after {text[:end].strip(_BLANKS)}")

    def writeValueAsString(self, value: Any) -> str:
        return to_json(value.value if isinstance(value, JsonNode) else value, _JACKSON)

    def createObjectNode(self) -> JsonNode:
        return JsonNode({})

    def createArrayNode(self) -> JsonNode:
        return JsonNode([])
