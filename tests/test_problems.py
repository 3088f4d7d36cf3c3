"""What is wrong in a file of settings is told in words of ours, whatever pydantic calls it."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from states.loading import kafka_models, models
from states.loading.settings import StateSettings
from trident_py.documents.problems import describe_wanted
from trident_py.extras.gateway import settings as events
from trident_py.extras.redis import models as redis_models

MODELS = [
    model
    for module in (models, kafka_models, redis_models, events)
    for model in vars(module).values()
    if isinstance(model, type) and issubclass(model, BaseModel) and model not in (BaseModel, StateSettings)
]
WRONG: list[Any] = ["words", 1.5, -1, 0, None, True, ["x"], {"x": {}}, float("inf"), "", [[]], 10**30]
OWN = ("missing", "extra_forbidden", "literal_error", "value_error")


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_no_wrong_value_is_told_in_pydantics_words(model: type[BaseModel]) -> None:
    told = 0
    for name in model.model_fields:
        for value in WRONG:
            try:
                model.model_validate({name: value})
            except ValidationError as error:
                for each in error.errors():
                    told += 1
                    kind = each["type"]
                    known = kind in OWN or describe_wanted(kind, dict(each.get("ctx", {})))
                    assert known, (name, value, kind, each["msg"])
    assert told > 0 or not model.model_fields


def test_bounds_are_told_with_their_number() -> None:
    assert describe_wanted("greater_than_equal", {"ge": 1}) == "expected at least 1"
    assert describe_wanted("value_error", {}) is None
