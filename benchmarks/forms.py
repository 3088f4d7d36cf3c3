"""Group "forms": one function of a typed text through `each`, as a plain callable, `vectorized` and `expr`."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from trident_py import Fields
from trident_py.engine.processors import Each, NodeContext
from trident_py.model.chunks import Chunk
from trident_py.operations import TridentOperationContext, expr, vectorized

from .measure import measure
from .report import Figure, median

GROUP = "forms of a function"
TUPLES, ROUNDS, WARM = 200_000, 12, 3
FORMS: dict[str, Callable[[], Any]] = {
    "plain callable": lambda: lambda word: [word.upper() if len(word) > 3 else "-"],
    "vectorised": lambda: vectorized(
        lambda words: pc.if_else(pc.greater(pc.utf8_length(words), 3), pc.utf8_upper(words), "-")
    ),
    "expression": lambda: expr("CASE WHEN length(word) > 3 THEN upper(word) ELSE '-' END"),
}


def rate(form: str) -> float:
    """Tuples per CPU second through one `each`, the median over chunks."""
    inputs, outputs = Fields("word string"), Fields("out string")
    fields = inputs.concat(outputs)
    own = TridentOperationContext(0, 1)
    context = NodeContext({}, own, (inputs,), fields, frozenset(fields), True, lambda: None, lambda kind, what: None)
    processor = Each(FORMS[form](), inputs, outputs).make(context)
    column = pa.array([f"word{n % 1000}" if n % 3 else "a" for n in range(TUPLES)])
    seconds = []
    for _ in range(ROUNDS):
        begin = time.process_time()
        processor.execute(0, Chunk({"word": column}, TUPLES))
        seconds.append(time.process_time() - begin)
    return TUPLES / median(seconds[WARM:])


def figures() -> Iterator[Figure]:
    plain = measure("forms.rate", "plain callable")
    yield Figure(GROUP, "plain callable", plain, "tuples/CPU s")
    for form in ("vectorised", "expression"):
        found = measure("forms.rate", form)
        yield Figure(GROUP, form, found, "tuples/CPU s", "plain callable", found / plain)
