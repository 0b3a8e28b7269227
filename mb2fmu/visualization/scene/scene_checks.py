"""Check a scene read from a file: types of its values, and colours.

A scene travels in units, and units come from anywhere: what is drawn from it must not depend on trust.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import fields
from functools import cache
from types import UnionType
from typing import Any, Literal, get_args, get_origin, get_type_hints

MOST_STEPS = 10_000_000
"""Of an experiment that is animated."""
_COLOR = re.compile(r"(#[0-9a-fA-F]{6})?\Z")


def check_types(records: Iterable[object]) -> None:
    """Check the values of records against the types of their fields.

    Args:
        records: Dataclasses with numbers, texts, and tuples and choices of them.

    Raises:
        ValueError: Naming the first field that has another type, no finite number, or is called a colour and is none.
    """
    for record in records:
        kind: type = type(record)
        for field in fields(kind):
            value = getattr(record, field.name)
            if not _fits(value, _hints(kind)[field.name]):
                raise ValueError(f"{kind.__name__}.{field.name} cannot be {_short(value)}")
            if field.name == "color" and not _COLOR.match(value):
                raise ValueError(f"{_short(value)} is no colour: #rrggbb")


def check_experiment(stop: object, step: object, tolerance: object) -> None:
    """Check an experiment's numbers.

    Raises:
        ValueError: If one is no positive number, or there are too many steps.
    """
    for name, value in (("stop", stop), ("step", step), ("tolerance", tolerance)):
        if not _fits(value, float) or not float(value) > 0.0:  # type: ignore[arg-type]
            raise ValueError(f"{name} cannot be {_short(value)}")
    if float(stop) > MOST_STEPS * float(step):  # type: ignore[arg-type]
        raise ValueError(f"more than {MOST_STEPS} steps")


@cache
def _hints(kind: type) -> dict[str, Any]:
    """Return the types of a record's fields."""
    return get_type_hints(kind)


def _fits(value: object, wanted: Any) -> bool:
    """Return whether a value is of a type; whole numbers are numbers, truth values are none."""
    if get_origin(wanted) is Literal:
        return value in get_args(wanted) and isinstance(value, str)
    if get_origin(wanted) is UnionType:
        return any(_fits(value, each) for each in get_args(wanted))
    if get_origin(wanted) is tuple:
        return isinstance(value, tuple) and all(_fits(each, get_args(wanted)[0]) for each in value)
    if wanted is type(None):
        return value is None
    if wanted is float:
        return isinstance(value, float | int) and not isinstance(value, bool) and abs(value) < math.inf
    return type(value) is wanted


def _short(value: object) -> str:
    """Return a value as it is written, cut where it is long."""
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:37]}…"
