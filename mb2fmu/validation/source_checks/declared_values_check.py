"""Imported values, units and the experiment, compared with what the model declares."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import sympy as sm

from mb2fmu.mechanics.mechanism import Mechanism
from mb2fmu.model.checked_model import CheckedModel
from mb2fmu.model.declarations.declared_content_and_experiment import DeclaredModelContent
from mb2fmu.model.quantity_declarations import Parameter, Speed

_QUANTITY_FIELDS = ("unit", "minimum", "maximum", "nominal")
_EXPERIMENT_FIELDS = ("stop", "step", "tolerance", "stiff", "solver", "internal_step", "signals")

_LENGTHS = (0.9, 1.1)
_ROUND_OFF = 1e-12


def compare_quaternion_lengths(mechanism: Mechanism) -> Iterator[tuple[str, bool]]:
    """Yield for each quaternion whether nothing drives its length away from 1.

    All states that are compared elsewhere have length 1; a long run leaves it by round-off, and must not go on.
    """
    generator = np.random.default_rng(5)
    kinematics = mechanism.kinematics
    for group in mechanism.quaternions:
        rows = [kinematics.matrix[k, :].dot(mechanism.u) + kinematics.offset[k] for k in group]
        names = ", ".join(mechanism.declared.coordinates[k].name for k in group)
        free = sorted(set().union(*(row.free_symbols for row in rows)), key=str)
        values = {symbol: sm.Float(generator.uniform(0.2, 1.0)) for symbol in free}
        quaternion = generator.uniform(-1.0, 1.0, 4)
        is_attracted = True
        for length in _LENGTHS:
            components = length * quaternion / np.linalg.norm(quaternion)
            values_at_length = values | {mechanism.q[k]: sm.Float(e) for k, e in zip(group, components, strict=True)}
            rates = np.array([float(row.xreplace(values_at_length)) for row in rows])
            growth = float(components @ rates) * (length - 1.0)
            is_attracted = is_attracted and growth <= _ROUND_OFF * float(np.abs(components) @ np.abs(rates))
        yield f"the length of the quaternion {names} is driven away from 1" * (not is_attracted), is_attracted


def compare_declared_values(definition: CheckedModel, declared: DeclaredModelContent) -> Iterator[tuple[str, bool]]:
    """Yield each comparison of declared quantities and the experiment, and whether both agree.

    Start values that the import solves for (guesses, states of contacts and latches) are left out.

    Args:
        definition: The checked model.
        declared: The imported declarations, which all later stages use.
    """
    solved = {c.resting for c in definition.contacts} | {latch.engaged for latch in definition.latches}
    solved |= {c.friction.sliding for c in definition.contacts if c.friction}
    imported = {item.name: item for item in declared.quantities}
    for item in definition.quantities:
        imported_item: Any = imported.get(item.name)
        if imported_item is None:  # the rate of a quaternion's length, which is no speed of its own
            yield f"{item.name} was not read", isinstance(item, Speed)
            continue
        for field in _QUANTITY_FIELDS:
            yield _form_comparison(item.name, field, getattr(item, field), getattr(imported_item, field))
        if isinstance(item, Parameter):
            yield _form_comparison(item.name, "value", item.value, imported_item.value)
        elif item.symbol not in solved and getattr(item, "kind", "fixed") == "fixed":
            yield _form_comparison(item.name, "start", item.start, imported_item.start)
    for field in _EXPERIMENT_FIELDS:
        yield _form_comparison(
            "the experiment", field, getattr(definition.experiment, field), getattr(declared.experiment, field)
        )


def _form_comparison(name: str, field: str, declared: Any, imported: Any) -> tuple[str, bool]:
    """Return one comparison; with words if it fails."""
    if isinstance(declared, float) and isinstance(imported, float):
        is_equal = declared == imported or (math.isnan(declared) and math.isnan(imported))
    else:
        is_equal = bool(declared == imported)
    return (
        f"{name}: {field}" if is_equal else f"{name}: the model says {field} {declared}, {imported} was read"
    ), is_equal
