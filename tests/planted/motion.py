"""Faults of a formulation: ``EquationsOfMotion`` of the FMU that are not those of the mechanism that was read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import sympy as sm
from planted.fault import Mutant, Subject

from mb2fmu.mechanics.equations.equations_of_motion import EquationsOfMotion, MassMatrixDynamics, VelocityConstraints
from mb2fmu.mechanics.equations.link_recursion import LinkRecursion

SLIGHTLY = sm.Float("1.02")

Change = Callable[[EquationsOfMotion], EquationsOfMotion]


def mutants(subject: Subject) -> Iterator[Mutant]:
    """Every fault of a formulation that can be planted in the equations of an FMU."""
    equations = subject.derivation.equations
    for faults in (_of_dynamics, _of_constraints, _of_recursion, _of_outputs):
        for kind, place, change in faults(equations):
            yield Mutant(kind, "equations", place, change)


def _with(items: Sequence[Any], index: int, item: Any) -> tuple[Any, ...]:
    """The items with another one at an index."""
    return (*items[:index], item, *items[index + 1 :])


def _entry(matrix: sm.ImmutableMatrix, row: int, column: int, value: sm.Expr) -> sm.ImmutableMatrix:
    """The matrix with another entry."""
    other = matrix.as_mutable()
    other[row, column] = value
    return sm.ImmutableMatrix(other)


def _of_dynamics(equations: EquationsOfMotion) -> Iterator[tuple[str, str, Change]]:
    dynamics = equations.dynamics
    if not isinstance(dynamics, MassMatrixDynamics):
        return
    for i, row in enumerate(dynamics.forcing):
        if row != 0:
            wrong = replace(dynamics, forcing=_entry(dynamics.forcing, i, 0, -row))
            yield "sign", f"row {i + 1} of the forcing", lambda e, wrong=wrong: replace(e, dynamics=wrong)
    for i in range(dynamics.mass_matrix.rows):
        value = dynamics.mass_matrix[i, i] if i < dynamics.mass_matrix.cols else sm.S.Zero
        if value != 0:
            other = replace(dynamics, mass_matrix=_entry(dynamics.mass_matrix, i, i, value * SLIGHTLY))
            yield "mass matrix entry", f"M[{i + 1},{i + 1}]", lambda e, other=other: replace(e, dynamics=other)


def _of_constraints(equations: EquationsOfMotion) -> Iterator[tuple[str, str, Change]]:
    c = equations.velocity_constraints
    if c is None:
        return
    for i, name in enumerate(c.names):
        if c.bias[i] != 0:
            bent: VelocityConstraints = replace(c, bias=_entry(c.bias, i, 0, sm.S.Zero))
            place = f"{name}: no acceleration by turning"
            yield (
                "missing Coriolis term",
                place,
                lambda e, bent=bent: replace(e, velocity_constraints=bent, reduction=e.reduction and bent),
            )
    for i, (name, phi) in enumerate(equations.holonomic):
        moved = (name, phi + sm.Float("0.005"))
        yield (
            "constraint by a constant",
            f"{name}, in the FMU only",
            lambda e, i=i, moved=moved: replace(e, holonomic=_with(e.holonomic, i, moved)),
        )


def _of_recursion(equations: EquationsOfMotion) -> Iterator[tuple[str, str, Change]]:
    recursion = equations.recursion
    if recursion is None:
        return

    def recursed(**changes: Any) -> Change:
        return lambda e: replace(e, recursion=replace(_recursion(e), **changes))

    for i, body in enumerate(recursion.bodies):
        heavy = recursed(bodies=_with(recursion.bodies, i, replace(body, mass=body.mass * SLIGHTLY)))
        yield "mass", f"{body.name}: mass times 1.02, in the recursion only", heavy
    for i, frame in enumerate(recursion.frames):
        if any(component != 0 for vector in frame.spin for component in vector.bias):
            spin = tuple(replace(vector, bias=(sm.S.Zero,) * 3) for vector in frame.spin)
            frames = _with(recursion.frames, i, replace(frame, spin=spin))
            yield "missing Coriolis term", f"{frame.name}: no bias of its spin", recursed(frames=frames)
    if recursion.gravity is not None:
        gravity = tuple(component * SLIGHTLY for component in recursion.gravity)
        yield "factor of a load", "gravity of the recursion times 1.02", recursed(gravity=gravity)


def _recursion(equations: EquationsOfMotion) -> LinkRecursion:
    assert equations.recursion is not None
    return equations.recursion


def _of_outputs(equations: EquationsOfMotion) -> Iterator[tuple[str, str, Change]]:
    for i, output in enumerate(equations.outputs):
        for what, expression in (("times 1.02", output.expression * SLIGHTLY), ("negated", -output.expression)):
            wrong = replace(output, expression=expression)
            yield (
                "one output",
                f"{output.name} {what}",
                lambda e, i=i, wrong=wrong: replace(e, outputs=_with(e.outputs, i, wrong)),
            )
