"""Outputs from the user's own expressions by ``lambdify``, with points and frames by SymPy's objects.

Nothing of the formulations' way to outputs is used, nor of the reference's to attitudes. Accelerations, reactions
(but constraint forces by auxiliary speeds), multipliers and momenta of single speeds (but those of a Lagrangian),
powers and energies that are found from loads are not evaluated in this way.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
import sympy as sm
from sympy.physics.mechanics import LagrangesMethod

from mb2fmu.model.checked_model import CheckedModel
from mb2fmu.model.declarations.declared_outputs import OUTPUT_KINDS, OutputRequest
from mb2fmu.model.quantity_declarations import Output
from mb2fmu.model.sources import mechanics_source
from mb2fmu.validation.source_checks.numeric_kane_equations import (
    NumericKaneEquations,
    PointAndFrameMotion,
    SympySourceMotion,
)
from mb2fmu.validation.source_checks.source_acceleration_samples import ROUND_OFF_FRACTION
from mb2fmu.validation.source_checks.source_equations import SympySourceEquations
from mb2fmu.validation.source_checks.source_symbol_slots import (
    Floats,
    SympySourceEvaluationError,
    SympySourceSymbolSlots,
    make_unused_symbol,
)

_AXIS_SUFFIXES = (".x", ".y", ".z")
_POINT_SUBJECTS, _FRAME_SUBJECTS = {"point", "located point"}, {"frame", "oriented frame"}
_MOTION_OUTPUT_KINDS = {
    *("position", "velocity", "distance", "relative_velocity", "angular_velocity", "orientation"),
    *("centre_of_mass", "centre_of_mass_velocity", "linear_momentum", "angular_momentum", "kinetic_energy"),
}
"""Kinds that the motion of points, frames and bodies gives."""
_JUMP_MARGIN = 1e-3
"""rad, or a quaternion's w: so near to where an attitude's numbers jump it is not compared."""
_ForceSolver = Callable[[list[float], list[float]], tuple[Floats, Floats]]
"""Gives forces and their scales at the values of slots and accelerations."""
NamedOutputValues = dict[str, tuple[float, float]]
"""By FMU name: the value, and the magnitude of what it is made of."""


def list_points_and_frames_of_outputs(definition: CheckedModel) -> tuple[list[Any], list[Any]]:
    """Return points and frames that outputs need."""
    points: list[Any] = []
    frames: list[Any] = []
    for request in definition.outputs:
        if not isinstance(request, OutputRequest) or request.kind not in _MOTION_OUTPUT_KINDS:
            continue
        row, reference = OUTPUT_KINDS[request.kind], [] if request.relative_to is None else [request.relative_to]
        for kind, objects in ((row.subject, request.subject), (row.relative_to, reference)):
            points += objects if kind in _POINT_SUBJECTS else ()
            frames += objects if kind in _FRAME_SUBJECTS else ()
    return points, frames


class SympySourceOutputEvaluator:
    """Evaluates outputs at a state with known x'.

    Args:
        definition: The model with its source objects.
        symbols: Slots of its symbols; equations and kinematics are formed already.
        kinematics: Of the objects; None: only expressions without q'' of their own are evaluated.
        equations: Of the objects; those of a Lagrangian give multipliers, others constraint forces.
    """

    def __init__(
        self,
        definition: CheckedModel,
        symbols: SympySourceSymbolSlots,
        kinematics: NumericKaneEquations | None,
        equations: SympySourceEquations | None = None,
    ) -> None:
        self._symbols, self._kinematics = symbols, kinematics
        self._moving_bodies = mechanics_source.bodies(definition.mechanics) if kinematics else ()
        self._speed_rate_symbols = {u: make_unused_symbol(k, "dot") for k, u in enumerate(symbols.u)}
        output_expressions = [sm.sympify(item.expression) for item in definition.outputs if isinstance(item, Output)]
        accelerated_coordinates = (
            [q for q in symbols.q if q.diff(symbols.t) not in self._speed_rate_symbols] if kinematics else []
        )
        accelerated_coordinates = [
            q
            for q in accelerated_coordinates
            if any(expression.has(q.diff(symbols.t, 2)) for expression in output_expressions)
        ]
        self._second_rate_symbols = {q: make_unused_symbol(k, "second") for k, q in enumerate(accelerated_coordinates)}
        symbols.add_acceleration_symbols(self._speed_rate_symbols, self._second_rate_symbols)
        self._rate_symbols = [*self._speed_rate_symbols.values(), *self._second_rate_symbols.values()]
        unknown = {c.symbol for c in definition.constraints} | {f.symbol for f in definition.constraint_forces}
        self._expressions: dict[str, Any] = {}
        self._requests: list[OutputRequest] = []
        self._solve_forces: _ForceSolver | None = None
        self._force_outputs: dict[str, Any] = {}
        if equations is not None:
            with suppress(SympySourceEvaluationError):
                self._add_force_outputs(definition, equations)
        for item in definition.outputs:
            if isinstance(item, Output):
                self._add_expression(item.name, item.expression, unknown - {None})
                continue
            expression = _form_energy_or_momentum(item, definition)
            if expression is None:
                self._requests.append(item)
            else:
                self._add_expression(item.name, expression, set())

    @property
    def needs_motion(self) -> bool:
        """Whether an output needs the motion of points, frames or bodies."""
        return any(request.kind in _MOTION_OUTPUT_KINDS for request in self._requests)

    def _add_expression(self, name: str, source_expression: Any, unknown: set[Any]) -> None:
        """Add an expression; unknown forces are left out, since x' does not determine them."""
        expression = sm.sympify(source_expression)
        if unknown and expression.has(*unknown):
            return
        with suppress(SympySourceEvaluationError):
            self._expressions[name] = self._symbols.compile_function([expression], self._rate_symbols)

    def evaluate_outputs(
        self, values: list[float], u_dot: Mapping[Any, float], motion: SympySourceMotion | None
    ) -> NamedOutputValues:
        """Return all outputs that can be evaluated.

        Args:
            values: Of all slots, q' included.
            u_dot: By speed.
            motion: Of the objects there.
        """
        rate_values = [u_dot[u] for u in self._speed_rate_symbols]
        if self._kinematics is not None and self._second_rate_symbols:
            second_rates = dict(
                zip(self._symbols.q, self._kinematics.evaluate_second_rates(values, u_dot), strict=True)
            )
            rate_values += [second_rates[q] for q in self._second_rate_symbols]
        values_by_name: NamedOutputValues = {}
        for name, function in self._expressions.items():
            try:
                value = function([*values, *rate_values])[0]
            except (ArithmeticError, ValueError):
                continue  # has no value there
            values_by_name[name] = (value, abs(value))
        values_by_name |= self._evaluate_force_outputs(values, rate_values)
        for request in self._requests if motion is not None else ():
            assert motion is not None
            values_by_name |= _evaluate_request(request, motion, self._moving_bodies)
        return {
            name: value_and_size for name, value_and_size in values_by_name.items() if np.isfinite(value_and_size[0])
        }

    def _add_force_outputs(self, definition: CheckedModel, equations: SympySourceEquations) -> None:
        """Add outputs with multipliers of a Lagrangian, or with constraint forces that auxiliary equations give."""
        if isinstance(definition.mechanics, LagrangesMethod):
            expressions, symbols = _find_multiplier_expressions(definition)
            self._solve_forces = lambda values, _: equations.multipliers(values)
        else:
            expressions, symbols = _find_constraint_force_expressions(definition)
            forces = [force.symbol for force in definition.constraint_forces]
            self._solve_forces = (
                equations.compile_constraint_forces(forces, symbols, self._rate_symbols) if expressions else None
            )
        further_symbols = [*self._rate_symbols, *symbols]
        for name, expression in expressions.items() if self._solve_forces else ():
            with suppress(SympySourceEvaluationError):
                self._force_outputs[name] = self._symbols.compile_function([expression], further_symbols)

    def _evaluate_force_outputs(self, values: list[float], rate_values: list[float]) -> NamedOutputValues:
        """Return the outputs with multipliers or constraint forces, and what the scales of these make of them."""
        if self._solve_forces is None or not self._force_outputs:
            return {}
        try:
            forces, scales = self._solve_forces(values, rate_values)
        except np.linalg.LinAlgError:
            return {}
        # Steps as small as round-off, of either sign: where an output jumps, the bound is its jump.
        steps = ROUND_OFF_FRACTION * np.diag(scales)
        outputs: NamedOutputValues = {}
        for name, function in self._force_outputs.items():
            try:
                value, *changed = (
                    function([*values, *rate_values, *each])[0]
                    for each in [forces.tolist(), *(forces + steps).tolist(), *(forces - steps).tolist()]
                )
            except (ArithmeticError, ValueError):
                continue  # has no value there
            changes = [abs(each - value) for each in changed]
            change = sum(map(max, changes[: len(scales)], changes[len(scales) :]))
            outputs[name] = (value, abs(value) + change / ROUND_OFF_FRACTION)
        return outputs


def _find_constraint_force_expressions(definition: CheckedModel) -> tuple[dict[str, sm.Expr], list[sm.Symbol]]:
    """Return outputs with constraint forces, and the symbols of all of these there."""
    symbols = [make_unused_symbol(k, "force") for k in range(len(definition.constraint_forces))]
    known = {force.symbol: symbol for force, symbol in zip(definition.constraint_forces, symbols, strict=True)}
    multipliers = {item.symbol for item in definition.constraints} - {None}
    expressions = {item.name: sm.sympify(item.expression) for item in definition.outputs if isinstance(item, Output)}
    return {
        name: expression.xreplace(known)
        for name, expression in expressions.items()
        if known and expression.has(*known) and not (multipliers and expression.has(*multipliers))
    }, symbols


def _find_multiplier_expressions(definition: CheckedModel) -> tuple[dict[str, sm.Expr], list[sm.Symbol]]:
    """Return outputs with multipliers of a Lagrangian's rows, and the symbols of these, in SymPy's order of rows."""
    mechanics = definition.mechanics
    if not isinstance(mechanics, LagrangesMethod):
        return {}, []
    symbols = [make_unused_symbol(k, "multiplier") for k in range(len(mechanics.coneqs))]
    symbol_of_row = dict(zip(mechanics.coneqs, symbols, strict=True))
    symbol_of_row |= zip(mechanics._hol_coneqs, symbols, strict=False)  # noqa: SLF001 - their rates come first
    known = {item.symbol: symbol_of_row[item.row] for item in definition.constraints if item.row in symbol_of_row}
    expressions = {
        item.name: sm.sympify(item.expression).xreplace(known)
        for item in definition.outputs
        if isinstance(item, Output) and sm.sympify(item.expression).has(*known)
    }
    expressions |= {
        item.name: symbol_of_row[item.subject[0]]
        for item in definition.outputs
        if isinstance(item, OutputRequest) and item.kind == "multiplier" and item.subject[0] in symbol_of_row
    }
    return expressions, symbols


def _form_energy_or_momentum(request: OutputRequest, definition: CheckedModel) -> sm.Expr | None:
    """Return the potential energy that the model gives, or what a Lagrangian without bodies says; None for others.

    Its kinetic energy is the part of L that is quadratic in q'; its potential energy, unless the model gives one, -L at
    q' = 0, where there are no loads beside it.
    """
    mechanics = definition.mechanics
    if not isinstance(mechanics, LagrangesMethod) or mechanics._bodies:  # noqa: SLF001 - SymPy shows neither
        return definition.potential_energy if request.kind == "potential_energy" else None
    L, rates = mechanics._L[0], list(mechanics._qdots)  # noqa: SLF001
    kinetic = sm.Add(*(a * b * L.diff(a, b) for a in rates for b in rates)) / 2
    potential = definition.potential_energy
    if potential is None and not mechanics.forcelist:
        potential = -L.xreplace(dict.fromkeys(rates, sm.S.Zero))
    match request.kind:
        case "momentum" | "coordinate_momentum":
            subject, coordinates = request.subject[0], list(mechanics.q)
            return L.diff(rates[coordinates.index(subject)] if subject in coordinates else subject)
        case "jacobi_integral":
            return sm.Add(*(rate * L.diff(rate) for rate in rates)) - L
        case "kinetic_energy":
            return kinetic
        case "potential_energy" | "total_energy" if potential is not None:
            return potential if request.kind == "potential_energy" else kinetic + potential
    return None


def _evaluate_request(
    request: OutputRequest, motion: SympySourceMotion, moving_bodies: Sequence[Any]
) -> NamedOutputValues:
    """Return the values of a request; nothing where the objects do not give them."""
    requested = motion.requested_motion
    if request.kind == "kinetic_energy":
        return {request.name: (motion.kinetic, abs(motion.kinetic))}
    if request.kind == "orientation":
        return _evaluate_orientation(request, requested)
    if OUTPUT_KINDS[request.kind].subject == "body":
        vector = _evaluate_bodies(request, requested, request.subject or moving_bodies)
    elif request.kind == "relative_velocity":
        vector = _evaluate_relative_velocity(request, requested)
    else:
        vector = _evaluate_vector(request, requested)
    if vector is None:
        return {}
    value, size = vector
    if request.kind == "distance":
        return {request.name: (float(np.linalg.norm(value)), size)}
    if request.expressed_in is not None:
        if request.expressed_in not in requested.rotations:
            return {}
        value = requested.rotations[request.expressed_in].T @ value
    return {request.name + axis: (float(part), size) for axis, part in zip(_AXIS_SUFFIXES, value, strict=True)}


def _evaluate_orientation(request: OutputRequest, requested: PointAndFrameMotion) -> NamedOutputValues:
    """Return a frame's orientation as a quaternion with w ≥ 0, or as angles; nothing where its sign, or one, jumps."""
    rotations = requested.rotations
    frames = [request.subject[0], *([] if request.relative_to is None else [request.relative_to])]
    if any(frame not in rotations for frame in frames):
        return {}
    rotation = rotations[frames[0]] if len(frames) == 1 else rotations[frames[1]].T @ rotations[frames[0]]
    if request.representation != "quaternion":
        return _compute_body_angles(request, rotation)
    # Trace and skew part: the largest of four ways to write it is taken, whose sign makes w positive.
    R, skew_part = (
        rotation,
        np.array([rotation[2, 1] - rotation[1, 2], rotation[0, 2] - rotation[2, 0], rotation[1, 0] - rotation[0, 1]]),
    )
    products = np.block(
        [[1.0 + np.trace(R), skew_part], [skew_part[:, None], R + R.T + (1.0 - np.trace(R)) * np.eye(3)]]
    )
    largest_row = products[int(np.argmax(np.diag(products)))]
    quaternion = largest_row / np.linalg.norm(largest_row)
    if abs(quaternion[0]) < _JUMP_MARGIN:
        return {}
    quaternion = quaternion * np.sign(quaternion[0])
    return {f"{request.name}.{part}": (float(each), 1.0) for part, each in zip("wxyz", quaternion, strict=True)}


def _compute_body_angles(request: OutputRequest, rotation: Floats) -> NamedOutputValues:
    """Return body-fixed angles by SciPy's formulas; nothing where they jump, or do not say which of two has turned."""
    from scipy.spatial.transform import Rotation

    sequence: Any = request.representation.translate(str.maketrans("123", "xyz")).upper()
    first, last = "XYZ".index(sequence[0]), "XYZ".index(sequence[2])
    if abs(rotation[first, last]) > 1.0 - _JUMP_MARGIN:
        return {}
    angles = Rotation.from_matrix(rotation).as_euler(sequence)
    if np.any(np.abs(angles) > np.pi - _JUMP_MARGIN):
        return {}
    return {f"{request.name}[{k}]": (float(angle), 1.0) for k, angle in enumerate(angles, 1)}


def _evaluate_vector(request: OutputRequest, requested: PointAndFrameMotion) -> tuple[Floats, float] | None:
    """Return components in the inertial frame, and the magnitudes of their terms."""
    vectors: Mapping[Any, tuple[Floats, float]]
    match request.kind:
        case "position" | "distance":
            vectors = requested.positions
        case "velocity":
            vectors = {point: (v, float(np.max(np.abs(v)))) for point, v in requested.velocities.items()}
        case "angular_velocity":
            vectors = {frame: (w, float(np.max(np.abs(w)))) for frame, w in requested.omegas.items()}
        case _:
            return None
    terms = [request.subject[0]]
    reference = request.subject[1] if request.kind == "distance" else request.relative_to
    if reference is not None:
        terms.append(reference)
    if any(term not in vectors for term in terms):
        return None
    value, size = vectors[terms[0]]
    if reference is not None:
        value, size = value - vectors[reference][0], size + vectors[reference][1]
    return value, size


def _evaluate_relative_velocity(request: OutputRequest, requested: PointAndFrameMotion) -> tuple[Floats, float] | None:
    """Return v_P − v_O − ω × (r_P − r_O), the rate of r_P − r_O that the frame of O sees, and its terms' magnitudes."""
    P, O = request.subject
    base = request.relative_to
    if P not in requested.velocities or O not in requested.velocities or (base and base not in requested.omegas):
        return None
    omega = requested.omegas[base] if base else np.zeros(3)
    (place, place_size), (origin, origin_size) = requested.positions[P], requested.positions[O]
    v, w = requested.velocities[P], requested.velocities[O]
    size = float(np.max(np.abs(v)) + np.max(np.abs(w)) + np.max(np.abs(omega)) * (place_size + origin_size))
    return v - w - np.cross(omega, place - origin), size


def _evaluate_bodies(
    request: OutputRequest, requested: PointAndFrameMotion, bodies: Sequence[Any]
) -> tuple[Floats, float] | None:
    """Return a sum over bodies, and the magnitudes of its terms: Σ m r / Σ m, its rate, Σ m v, or Σ r × m v + I ω."""
    motions = [requested.bodies[id(body)] for body in bodies if id(body) in requested.bodies]
    mass = sum(body.mass for body in motions)
    if len(motions) < len(bodies) or mass == 0.0:
        return None
    momentum = sum((body.mass * body.velocity for body in motions), np.zeros(3))
    momentum_size = float(sum(abs(body.mass) * np.max(np.abs(body.velocity)) for body in motions))
    if request.kind == "linear_momentum":
        return momentum, momentum_size
    if request.kind == "centre_of_mass_velocity":
        return momentum / mass, momentum_size / abs(mass)
    places = [body.position for body in motions if body.position is not None]
    if len(places) < len(motions):
        return None
    centre = sum((b.mass * r for b, (r, _) in zip(motions, places, strict=True)), np.zeros(3)) / mass
    centre_size = float(sum(abs(b.mass) * size for b, (_, size) in zip(motions, places, strict=True)) / abs(mass))
    about = (centre, centre_size) if request.relative_to is None else requested.positions.get(request.relative_to)
    if request.kind == "centre_of_mass" or about is None:
        return None if about is None else (centre, centre_size)
    value, size = np.zeros(3), 0.0
    for body, (place, place_size) in zip(motions, places, strict=True):
        value = value + np.cross(place - about[0], body.mass * body.velocity) + body.spin
        size += (place_size + about[1]) * abs(body.mass) * float(np.max(np.abs(body.velocity)))
        size += float(np.max(np.abs(body.spin)))
    return value, size
