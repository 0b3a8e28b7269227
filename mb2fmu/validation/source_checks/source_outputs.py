"""Outputs from the user's own expressions by ``lambdify``, with points and frames by SymPy's objects.

Nothing of the formulations' way to outputs is used, nor of the reference's to attitudes. Reactions, multipliers,
momenta, powers and energies that are found from loads are not told in this way.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import numpy as np
import sympy as sm

from mb2fmu.model.declarations.declared_outputs import OutputRequest
from mb2fmu.model.model_definition import ModelDefinition
from mb2fmu.model.quantity_declarations import Output
from mb2fmu.validation.source_checks.source_kinematics import RequestedMotion, SourceKinematics, SourceMotion
from mb2fmu.validation.source_checks.source_symbols import Floats, NotFormedError, SourceSymbols, make_unused_symbol

_AXIS_SUFFIXES = (".x", ".y", ".z")
_MOTION_OUTPUT_KINDS = {"position", "velocity", "distance", "angular_velocity", "orientation", "kinetic_energy"}
_JUMP_MARGIN = 1e-3
"""rad, or a quaternion's w: so near to where an attitude's numbers jump it is not compared."""
NamedOutputValues = dict[str, tuple[float, float]]
"""By FMU name: the value, and the magnitude of what it is made of."""


def find_points_and_frames_needed(definition: ModelDefinition) -> tuple[list[Any], list[Any]]:
    """Return points and frames that outputs need."""
    points: list[Any] = []
    frames: list[Any] = []
    for request in definition.outputs:
        if isinstance(request, OutputRequest) and request.kind in {"position", "velocity", "distance"}:
            points += [point for point in (*request.subject, request.relative_to) if point is not None]
        if isinstance(request, OutputRequest) and request.kind in {"angular_velocity", "orientation"}:
            frames += [frame for frame in (*request.subject, request.relative_to) if frame is not None]
    return points, frames


class SourceOutputs:
    """Evaluates outputs at a state with known x'.

    Args:
        definition: The model as it was handed over.
        symbols: Slots of its symbols; equations and kinematics are formed already.
        kinematics: Of the objects; None: only expressions without q'' of their own are evaluated.
    """

    def __init__(
        self, definition: ModelDefinition, symbols: SourceSymbols, kinematics: SourceKinematics | None
    ) -> None:
        self._symbols, self._kinematics = symbols, kinematics
        self._dots = {u: make_unused_symbol(k, "dot") for k, u in enumerate(symbols.u)}
        written = [sm.sympify(item.expression) for item in definition.outputs if isinstance(item, Output)]
        second = [q for q in symbols.q if q.diff(symbols.t) not in self._dots] if kinematics else []
        second = [q for q in second if any(expression.has(q.diff(symbols.t, 2)) for expression in written)]
        self._second = {q: make_unused_symbol(k, "second") for k, q in enumerate(second)}
        symbols.accelerated(self._dots, self._second)
        self._more = [*self._dots.values(), *self._second.values()]
        unknown = {c.symbol for c in definition.constraints} | {f.symbol for f in definition.constraint_forces}
        self._expressions: dict[str, Any] = {}
        self._requests: list[OutputRequest] = []
        for item in definition.outputs:
            if isinstance(item, Output):
                self._add(item, unknown - {None})
            else:
                self._requests.append(item)

    @property
    def needs_motion(self) -> bool:
        """Whether an output needs the motion of points, frames or bodies."""
        return any(request.kind in _MOTION_OUTPUT_KINDS for request in self._requests)

    def _add(self, item: Output, unknown: set[Any]) -> None:
        """Add an expression; unknown forces are left out, since x' does not determine them."""
        expression = sm.sympify(item.expression)
        if unknown and expression.has(*unknown):
            return
        with suppress(NotFormedError):
            self._expressions[item.name] = self._symbols.function([expression], self._more)

    def at(self, values: list[float], u_dot: Mapping[Any, float], motion: SourceMotion | None) -> NamedOutputValues:
        """Return all outputs that can be evaluated.

        Args:
            values: Of all slots, q' included.
            u_dot: By speed.
            motion: Of the objects there.
        """
        more = [u_dot[u] for u in self._dots]
        if self._kinematics is not None and self._second:
            seconds = dict(zip(self._symbols.q, self._kinematics.second_rates(values, u_dot), strict=True))
            more += [seconds[q] for q in self._second]
        found: NamedOutputValues = {}
        for name, function in self._expressions.items():
            try:
                value = function([*values, *more])[0]
            except (ArithmeticError, ValueError):
                continue  # has no value there
            found[name] = (value, abs(value))
        for request in self._requests if motion is not None else ():
            assert motion is not None
            found |= _evaluate_request(request, motion)
        return {name: pair for name, pair in found.items() if np.isfinite(pair[0])}


def _evaluate_request(request: OutputRequest, motion: SourceMotion) -> NamedOutputValues:
    """Return the values of a request; nothing where the objects do not give them."""
    asked = motion.asked
    if request.kind == "kinetic_energy":
        return {request.name: (motion.kinetic, abs(motion.kinetic))}
    if request.kind == "orientation":
        return _evaluate_orientation(request, asked)
    vector = _evaluate_vector(request, asked)
    if vector is None:
        return {}
    value, size = vector
    if request.kind == "distance":
        return {request.name: (float(np.linalg.norm(value)), size)}
    if request.expressed_in is not None:
        if request.expressed_in not in asked.rotations:
            return {}
        value = asked.rotations[request.expressed_in].T @ value
    return {request.name + axis: (float(part), size) for axis, part in zip(_AXIS_SUFFIXES, value, strict=True)}


def _evaluate_orientation(request: OutputRequest, asked: RequestedMotion) -> NamedOutputValues:
    """Return a frame's orientation as a quaternion with w ≥ 0, or as angles; nothing where its sign, or one, jumps."""
    known = asked.rotations
    frames = [request.subject[0], *([] if request.relative_to is None else [request.relative_to])]
    if any(frame not in known for frame in frames):
        return {}
    turned = known[frames[0]] if len(frames) == 1 else known[frames[1]].T @ known[frames[0]]
    if request.representation != "quaternion":
        return _compute_body_angles(request, turned)
    # Trace and skew part: the largest of four ways to write it is taken, whose sign makes w positive.
    R, w = turned, np.array([turned[2, 1] - turned[1, 2], turned[0, 2] - turned[2, 0], turned[1, 0] - turned[0, 1]])
    products = np.block([[1.0 + np.trace(R), w], [w[:, None], R + R.T + (1.0 - np.trace(R)) * np.eye(3)]])
    row = products[int(np.argmax(np.diag(products)))]
    quaternion = row / np.linalg.norm(row)
    if abs(quaternion[0]) < _JUMP_MARGIN:
        return {}
    quaternion = quaternion * np.sign(quaternion[0])
    return {f"{request.name}.{part}": (float(each), 1.0) for part, each in zip("wxyz", quaternion, strict=True)}


def _compute_body_angles(request: OutputRequest, turned: Floats) -> NamedOutputValues:
    """Return body-fixed angles by SciPy's formulas; nothing where they jump, or do not say which of two has turned."""
    from scipy.spatial.transform import Rotation

    sequence: Any = request.representation.translate(str.maketrans("123", "xyz")).upper()
    first, last = "XYZ".index(sequence[0]), "XYZ".index(sequence[2])
    if abs(turned[first, last]) > 1.0 - _JUMP_MARGIN:
        return {}
    angles = Rotation.from_matrix(turned).as_euler(sequence)
    if np.any(np.abs(angles) > np.pi - _JUMP_MARGIN):
        return {}
    return {f"{request.name}[{k}]": (float(angle), 1.0) for k, angle in enumerate(angles, 1)}


def _evaluate_vector(request: OutputRequest, asked: RequestedMotion) -> tuple[Floats, float] | None:
    """Return components in the inertial frame, and the magnitudes of their terms."""
    known: Mapping[Any, tuple[Floats, float]]
    match request.kind:
        case "position" | "distance":
            known = asked.positions
        case "velocity":
            known = {point: (v, float(np.max(np.abs(v)))) for point, v in asked.velocities.items()}
        case "angular_velocity":
            known = {frame: (w, float(np.max(np.abs(w)))) for frame, w in asked.omegas.items()}
        case _:
            return None
    terms = [request.subject[0]]
    other = request.subject[1] if request.kind == "distance" else request.relative_to
    if other is not None:
        terms.append(other)
    if any(term not in known for term in terms):
        return None
    value, size = known[terms[0]]
    if other is not None:
        value, size = value - known[other][0], size + known[other][1]
    return value, size
