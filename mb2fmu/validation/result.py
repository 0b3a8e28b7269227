"""ValidationResult: what was compared with what, how far apart they are, how far they may be, and the verdict."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from mb2fmu.audit.checkers import Finding
from mb2fmu.validation.description import UnitKind
from mb2fmu.validation.reference import Kind, Reference
from mb2fmu.validation.simulate import Simulation

Floats = npt.NDArray[np.float64]
Verdict = Literal["passed", "failed", "unjudged"]
KIND_NAMES: Mapping[UnitKind, str] = {
    "CoSimulation": "Co-Simulation",
    "ModelExchange": "Model Exchange, integrated by CVODE",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class VariableResult:
    """One variable of the FMU against the reference.

    Attributes:
        name: FMU variable name.
        kind: What it is.
        unit: Of ``range``, ``max_error``, ``error``, ``bound``.
        range: Largest minus smallest value of the reference.
        max_error: Largest error within the horizon.
        at: Time in s within the horizon where error/bound is largest.
        error: There.
        bound: There.
        ratio: error/bound there; above 1 the variable failed. Infinite where the FMU gives no finite number.
        horizon: Time in s up to which the variable is judged.
        verdict: ``unjudged`` where the horizon ends before anything could be judged: no pass.
        reason: Why it is not judged to the end, or why it failed.
        errors: |FMU − reference|, shape (n_t,), beyond the horizon too.
        bounds: Shape (n_t,).
    """

    name: str
    kind: Kind
    unit: str
    range: float
    max_error: float
    at: float
    error: float
    bound: float
    ratio: float
    horizon: float
    verdict: Verdict
    reason: str
    errors: Floats
    bounds: Floats

    @property
    def relative_error(self) -> float:
        """``max_error`` over ``range``; over 1 unit where the variable does not move."""
        return self.max_error / self.range if self.range else self.max_error


@dataclass(frozen=True, slots=True, kw_only=True)
class InvariantResult:
    """Something that holds along every true motion, judged over the whole run, chaotic or not.

    Attributes:
        name: What is judged.
        formula: How value and bound are computed.
        unit: Of value and bound.
        value: Where value/bound is largest.
        at: Time in s there.
        bound: There.
        ratio: value/bound there.
        verdict: ``passed`` or ``failed``.
        values: Shape (n_t,) or (n_t - 1,).
        bounds: Same shape.
    """

    name: str
    formula: str
    unit: str
    value: float
    at: float
    bound: float
    ratio: float
    verdict: Verdict
    values: Floats
    bounds: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class KindResult:
    """The same unit run in another way.

    Attributes:
        variables: One per compared variable.
        invariants: As for the first kind.
        simulation: What the FMU did; says of which kind it was.
    """

    variables: tuple[VariableResult, ...]
    invariants: tuple[InvariantResult, ...]
    simulation: Simulation

    @property
    def passed(self) -> bool:
        """Every variable judged and within its bound, every invariant kept."""
        judged: list[VariableResult | InvariantResult] = [*self.variables, *self.invariants]
        return all(item.verdict == "passed" for item in judged)


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidationResult:
    """The proof.

    Attributes:
        passed: Every variable judged and within its bound, every invariant kept, no checker found an error.
        model: Name of the model.
        variables: One per compared variable.
        invariants: Step defects, energy balance, constraint residuals of the FMU.
        conformance: What the checkers say of the archive.
        reference: The reference that it was compared with.
        simulation: What the FMU did.
        timings: s of wall clock by activity.
        provenance: Versions, hash of the FMU, method of the FMU and of the reference.
        others: The other kinds of a unit that has several, under the same bounds.
        notes: What a reader must know, such as that both sides used the same formulation.
    """

    model: str
    variables: tuple[VariableResult, ...]
    invariants: tuple[InvariantResult, ...]
    conformance: tuple[Finding, ...]
    reference: Reference
    simulation: Simulation
    timings: Mapping[str, float]
    provenance: Mapping[str, object]
    others: tuple[KindResult, ...] = ()
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.variables:
            raise ValueError("nothing was compared")

    @property
    def passed(self) -> bool:
        """The verdict."""
        return (
            all(v.verdict == "passed" for v in self.variables)
            and all(i.verdict == "passed" for i in self.invariants)
            and all(other.passed for other in self.others)
            and not any(f.severity == "error" for f in self.conformance)
        )

    def to_json(self, *, timings: bool = False) -> str:
        """The result as JSON with sorted keys; without ``timings`` the same bytes for the same numbers."""
        trajectory = self.reference.trajectory
        summary: dict[str, object] = {
            "model": self.model,
            "passed": self.passed,
            "variables": [_scalars(v) for v in self.variables],
            "invariants": [_scalars(i) for i in self.invariants],
            "conformance": [
                {"checker": f.checker, "severity": f.severity, "message": f.message} for f in self.conformance
            ],
            "reference": {
                "provenance": dict(trajectory.provenance),
                "uncertainty": dict(
                    zip(trajectory.names, map(_number, trajectory.uncertainty[-1].tolist()), strict=True)
                ),
                "balances": [
                    {"name": b.name, "formula": b.formula, "worst": _number(b.worst)} for b in self.reference.balances
                ],
            },
            "kind": self.simulation.kind,
            "others": [
                {
                    "kind": other.simulation.kind,
                    "passed": other.passed,
                    "variables": [_scalars(v) for v in other.variables],
                    "invariants": [_scalars(i) for i in other.invariants],
                }
                for other in self.others
            ],
            "provenance": dict(self.provenance),
            "notes": list(self.notes),
        }
        if timings:
            summary["timings"] = dict(self.timings)
        return json.dumps(summary, indent=2, sort_keys=True, ensure_ascii=False, allow_nan=False) + "\n"


def _scalars(record: VariableResult | InvariantResult) -> dict[str, object]:
    """The record without its arrays."""
    names = [name for name in record.__slots__ if name not in {"errors", "bounds", "values"}]
    return {name: _number(getattr(record, name)) for name in names}


def _number(value: object) -> object:
    """JSON has no NaN and no infinities: they become their names."""
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value
