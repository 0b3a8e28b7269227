"""x' of a robot, or its efforts, from an independent import of its file: samples for ``independent_checks``."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt
import sympy as sm
from sympy.physics.vector import dynamicsymbols

from mb2fmu.errors import Fault, ValidationError
from mb2fmu.model.checked_model import CheckedModel
from mb2fmu.model.quantity_declarations import Input, Parameter, Speed
from mb2fmu.robots.robot_loading import read_robot_file
from mb2fmu.validation.evaluation_plans.lambdified_scalar_functions import compile_scalar_function
from mb2fmu.validation.independent_import.independent_loads import (
    GROUND_POSE,
    AddedGeneralizedForces,
)
from mb2fmu.validation.independent_import.independent_loop_constraints import (
    LinkFrameConnection,
    LoopConstraints,
    close_loops_from_guess,
    compute_loop_constraints,
    project_speeds_on_loops,
    solve_loop_accelerations,
)
from mb2fmu.validation.independent_import.independent_robot_file import (
    RobotImport,
    find_link_places,
    form_added_forces,
    list_evaluation_point_items,
    list_evaluation_point_symbols,
    list_link_vectors,
    list_loop_closures,
    list_loops_of_settings,
    reread_robot_file,
)
from mb2fmu.validation.independent_import.independent_urdf_equations import (
    Array,
    IndependentRobotImport,
    LinkModalState,
    LinkMotion,
    RobotEvaluationPoint,
)
from mb2fmu.validation.independent_import.missing_independent_import import (
    explain_missing_independent_accelerations,
    explain_missing_independent_import,
)
from mb2fmu.validation.independent_import.mujoco_equations import MujocoEquations
from mb2fmu.validation.independent_import.robot_symbol_slots import RobotCoordinateRates, RobotSymbolSlots
from mb2fmu.validation.source_checks.imported_event_check import ImportedEventComparison
from mb2fmu.validation.source_checks.random_admissible_points import RANDOM_SEED, RandomAdmissibleState
from mb2fmu.validation.source_checks.source_acceleration_samples import (
    INDEPENDENT_IMPORT,
    ROUND_OFF_FRACTION,
    AccelerationSample,
    SympySourceAccelerationSamples,
    draw_acceleration_samples,
    list_settable_slots,
)
from mb2fmu.validation.source_checks.source_symbol_slots import SympySourceEvaluationError

if TYPE_CHECKING:
    from mb2fmu.mechanics.mechanism import Mechanism
    from mb2fmu.model.flexible import FlexibleBody
    from mb2fmu.robots import RobotMechanics
    from mb2fmu.robots.tree.robot_mechanics_records import RobotJointSymbols

_LARGEST_TURN_RAD, _LARGEST_SLIDE_M = 0.6, 0.1
_EVENT_POINT_COUNT = 8
"""Points at which events are compared: difference quotients of each row take hundreds of motions at each."""
_TRIES_PER_POINT = 20
"""Times as many points are drawn for events where loops are closed: not all of them close."""
_TRIES_BEFORE_HALF_REACH = 5
"""After so many points that did not close, further ones are drawn within half the range."""


def sample_independent_robot_accelerations(
    definition: CheckedModel, mechanism: Mechanism | None = None
) -> SympySourceAccelerationSamples:
    """Return samples of x' from the robot's file, read again.

    Args:
        definition: The checked model; its mechanics are a robot's.
        mechanism: Imported from it: its events, contacts and latches are compared; None: they are not.

    Raises:
        ValidationError: If the file is not there any more.
    """
    robot = cast("RobotMechanics", definition.mechanics)
    if mechanism is not None:  # has the rate that draws back to the constraints of loops besides
        definition = replace(definition, parameters=mechanism.declared.parameters)
    source = robot.description.source
    missing = explain_missing_independent_import(robot)
    if missing or source is None:
        return _no_samples(missing or "the robot was not read from a file")
    try:
        independent_import = reread_robot_file(robot, source, read_robot_file(source, robot.settings.packages))
    except OSError as error:
        fault = Fault(str(error.strerror or error), source.name, "keep all files until the FMU is validated")
        raise ValidationError("the robot's file cannot be read again:", [fault]) from None
    if isinstance(independent_import, str):
        return _no_samples(independent_import)
    closures = list_loop_closures(independent_import, list_loops_of_settings(robot))
    missing, added = explain_missing_independent_accelerations(definition, robot), None
    try:
        added = None if missing else form_added_forces(definition, robot, independent_import)
    except ValueError as error:
        missing = f"what was added to the file is not known to the independent import: {error}"
    equations = _IndependentRobotAccelerations(definition, robot, independent_import, closures, added)
    samples = _no_samples(missing) if missing else equations.sample_all()
    if mechanism is None:
        return samples
    errors, left_out = equations.compare_events(mechanism)
    return replace(samples, events=tuple(errors), left_out=tuple(left_out))


def _no_samples(reason: str) -> SympySourceAccelerationSamples:
    """Return a result without samples, with the reason for it."""
    return SympySourceAccelerationSamples((), {}, {}, {INDEPENDENT_IMPORT: reason}, methods=(INDEPENDENT_IMPORT,))


class _IndependentRobotAccelerations:
    """The independent import of a robot's file, with added forces and closed loops: a source of accelerations."""

    def __init__(
        self,
        definition: CheckedModel,
        robot: RobotMechanics,
        independent_import: RobotImport,
        closures: Sequence[LinkFrameConnection],
        added: AddedGeneralizedForces | None = None,
    ) -> None:
        self._definition, self._robot, self._import, self._closures = definition, robot, independent_import, closures
        self._added_forces = added or AddedGeneralizedForces(
            (), (), (), list_evaluation_point_symbols(definition), {}, lambda _: GROUND_POSE
        )
        own = independent_import.accuracy if isinstance(independent_import, MujocoEquations) else 0.0
        self._accuracy = max(ROUND_OFF_FRACTION, own)
        self._parameters = [p for p in definition.parameters if not p.calculated]
        self._items = list_evaluation_point_items(definition)
        self._slot = {item.name: k + 1 for k, item in enumerate(self._items)}
        self._slot_of_symbol = {item.symbol: self._slot[item.name] for item in self._items}
        symbols = [p.symbol for p in self._parameters]
        self._gravity = compile_scalar_function(symbols, [sm.sympify(g) for g in robot.gravity])
        self._inverse = robot.settings.role == "inverse-dynamics"
        self._link_vectors = AddedGeneralizedForces(
            (), (), list_link_vectors(robot), (), {}, find_link_places(independent_import)
        )
        self.symbols = RobotSymbolSlots(
            definition, list_evaluation_point_symbols(definition), robot.motion_symbols, self._evaluate_link_vectors
        )
        touches = [contact.gap < 0 for contact in definition.contacts]
        touches += [latch.close for latch in definition.latches]
        self._holds = (
            self.symbols.compile_function([sm.Piecewise((1, sm.Or(*touches)), (0, True))]) if touches else None
        )
        self._rate_placeholders = [0.0] * len(definition.coordinates)
        self._auxiliary_states = definition.auxiliary_states
        self._is_sliding: npt.NDArray[np.bool_] = np.zeros(independent_import.size, dtype=np.bool_)
        for slot, column in (
            *self._iterate_speeds(),
            *((self._slot_of_symbol[motion[1]], column) for motion, column, _ in self._iterate_prescribed()),
        ):
            self._is_sliding[column] = self._items[slot - 1].unit.startswith("m")

    def sample_all(self) -> SympySourceAccelerationSamples:
        """Return all samples."""
        slots = list_settable_slots(self._definition, self.symbols.slot)
        return SympySourceAccelerationSamples(
            draw_acceleration_samples(self), *slots, {}, methods=(INDEPENDENT_IMPORT,)
        )

    def compare_events(self, mechanism: Mechanism) -> tuple[list[tuple[float, str]], list[str]]:
        """Compare what was imported of events, contacts and latches with the model's own expressions at the points.

        Positions and velocities of links in them are those of the independent import.

        Returns:
            (error over bound, quantity and time), and the names of what could not be compared.
        """
        d = self._definition
        kinematics = RobotCoordinateRates(d, self.symbols, lambda values: self._rates_of_coordinates(values)[0])
        reach = [_LARGEST_SLIDE_M if q.unit.startswith("m") else _LARGEST_TURN_RAD for q in d.coordinates]
        unknown = [name for name in self._link_vectors.links if not self._import.has_frame(name)]
        if unknown:
            return [], [f"what names {', '.join(unknown)}"]
        check = ImportedEventComparison(d, mechanism, self.symbols, kinematics, np.array(reach))
        if check.is_empty:
            return [], []
        drawn_points = itertools.islice(self.draw_points(), _TRIES_PER_POINT * _EVENT_POINT_COUNT)
        points = itertools.islice((point for point in drawn_points if point is not None), _EVENT_POINT_COUNT)
        errors = check.compare_at((point.time, kinematics.with_rates(list(point.values))) for point in points)
        return errors, check.left_out

    def _is_open(self, point: RandomAdmissibleState) -> bool:
        """Return whether no contact touches and no latch closes at a point: the file knows nothing of either."""
        return self._holds is None or not self._holds(list(point.values))[0]

    def _evaluate_link_vectors(self, values: Sequence[float]) -> Array:
        """Return the values of what expressions name of the links' motion at a point."""
        motions = self._motions(self._link_vectors.links, self._form_robot_state(list(values)))
        return self._link_vectors.evaluate_motion_vectors(motions)[0]

    def draw_points(self) -> Iterator[RandomAdmissibleState | None]:
        """Yield points on the closed loops, around a start that closes them; None where one does not close."""
        random = np.random.default_rng(RANDOM_SEED)
        start = [0.0, *(float(item.value if isinstance(item, Parameter) else item.start) for item in self._items)]
        centre, failed_count = (self._close_loops(start) or start), 0
        while True:
            closed = self._close_loops(
                self._draw_values(random, centre, 0.5 ** (failed_count // _TRIES_BEFORE_HALF_REACH))
            )
            failed_count += closed is None
            states = self._draw_auxiliary_states(random)
            yield (
                None
                if closed is None
                else RandomAdmissibleState(closed[0], (*closed, *self._rate_placeholders, *states))
            )

    def _draw_auxiliary_states(self, random: np.random.Generator) -> list[float]:
        """Return values of added states: around the start where they move, else the start (of contacts, latches)."""
        values = []
        for state in self._auxiliary_states:
            size = abs(float(state.start)) if state.nominal is None else float(state.nominal)
            reach = 0.0 if sm.sympify(state.derivative).is_zero else size or 1.0
            value = float(state.start) + reach * float(random.uniform(-0.7, 0.7))
            values.append(_keep_within_bounds(state, value))
        return values

    def sample_points(self, points: Sequence[RandomAdmissibleState]) -> Iterator[AccelerationSample]:
        """Yield :meth:`sample_point` of each point that has one."""
        return filter(None, map(self.sample_point, points))

    def sample_point(self, point: RandomAdmissibleState) -> AccelerationSample | None:
        """Return x' at one point by the independent import, of inverse dynamics the efforts.

        None where a contact or a latch holds, or where what was added to the file has no value.
        """
        if not self._is_open(point):
            return None
        try:
            return self._sample_efforts(point) if self._inverse else self._sample_accelerations(point)
        except SympySourceEvaluationError:
            return None

    def _draw_values(self, random: np.random.Generator, centre: Sequence[float], range_fraction: float) -> list[float]:
        """Return values of all slots: time, then the items.

        Args:
            random: Where they are from.
            centre: Values of all slots; states are drawn around these.
            range_fraction: Part of the range of coordinates.
        """
        t = dynamicsymbols._t  # noqa: SLF001 - SymPy has no public name for it
        values = [float(random.uniform(0.0, self._definition.experiment.stop))]
        for item, centre_value in zip(self._items, centre[1:], strict=True):
            random_part = float(random.uniform(-1.0, 1.0))
            match item:
                case Parameter():
                    value = float(item.value) * (1.0 + 0.3 * random_part)
                case Input():
                    signal = sm.sympify(self._definition.experiment.signals.get(item.symbol, 0.0))
                    value = random_part * (1.0 + 2.0 * abs(float(signal.subs(t, values[0]))))  # of either sign
                case _:
                    largest_change = _LARGEST_SLIDE_M if item.unit.startswith("m") else _LARGEST_TURN_RAD
                    value = centre_value + random_part * largest_change * (
                        5.0 if isinstance(item, Speed) else range_fraction
                    )
            values.append(_keep_within_bounds(item, value))
        self._normalize(values)
        return values

    def _sample_accelerations(self, point: RandomAdmissibleState) -> AccelerationSample:
        """Return u' and q' by the independent import at one point, with round-off bounds; closed loops included.

        A bound is what a change of every term by the import's accuracy makes of u' (:data:`ROUND_OFF_FRACTION`, or what
        MuJoCo makes of meshes). Each column is given terms in
        its own unit (ω² where a joint turns, ω v where it slides), so that a file of other lengths is judged alike.
        A⁺ γ is of least norm in m and rad together: another part of u' with other lengths, of the same size.
        """
        values = list(point.values[: 1 + len(self._items)])
        M, f, (added_forces, added_force_sizes), (state_rates, state_rate_sizes) = self._evaluate_import(point)
        f = f + added_forces
        # ω × I ω, of which each joint's own speed is only a part, cancels where I is the same about all axes
        rotational_accelerations = self._estimate_rotational_accelerations(values)
        constraint_accelerations: Array = np.zeros(len(f))
        loop_force_sizes: Array = np.zeros(len(f))
        if self._closures:
            rows = self._compute_loop_rows(values)
            u_dot, inverse, gamma_effect = solve_loop_accelerations(M, f, rows)
            constraint_accelerations = np.abs(gamma_effect) @ (
                np.abs(rows.gamma) + np.abs(rows.A) @ rotational_accelerations
            )
            loop_force_sizes = self._compute_size_at_lever_arms(rows.A, np.abs(gamma_effect.T @ (f - M @ u_dot)))
        else:
            u_dot, inverse = np.asarray(np.linalg.solve(M, f)), np.abs(np.linalg.inv(M))
        scale = constraint_accelerations + inverse @ (
            np.abs(M) @ (np.abs(u_dot) + rotational_accelerations + constraint_accelerations)
            + loop_force_sizes
            + self._size_of_forces(values)
            + added_force_sizes
        )
        rates, bounds = self._rates_of_coordinates(values)
        for slot, column in self._iterate_speeds():
            name = str(self._items[slot - 1].name)
            rates[name], bounds[name] = float(u_dot[column]), self._accuracy * float(scale[column])
        names = [state.name for state in self._auxiliary_states]
        if len(state_rates):
            rates |= zip(names, state_rates.tolist(), strict=True)
            bounds |= zip(names, (self._accuracy * state_rate_sizes).tolist(), strict=True)
        return AccelerationSample(point, {INDEPENDENT_IMPORT: rates}, bounds)

    def _sample_efforts(self, point: RandomAdmissibleState) -> AccelerationSample:
        """Return the efforts that a motion takes, M u' − f, with bounds as in :meth:`_sample_accelerations`.

        An entry of M may be what is left of larger terms; √(M_ii M_jj) is not.
        """
        values = list(point.values[: 1 + len(self._items)])
        M, f, (added, size_of_added), _ = self._evaluate_import(point)
        u_dot, outputs = np.zeros(len(f)), {}
        changed_values = list(self._iterate_prescribed())
        for motion, column, _ in changed_values:
            u_dot[column] = values[self._slot_of_symbol[motion[2]]]
        efforts = M @ u_dot - f - added
        root_inertia = np.sqrt(np.diag(M))
        size = root_inertia * (root_inertia @ (np.abs(u_dot) + self._estimate_rotational_accelerations(values)))
        size = size + self._size_of_forces(values) + size_of_added
        for _, column, name in changed_values:
            outputs[f"{name}.effort"] = (float(efforts[column]), self._accuracy * float(size[column]))
        return AccelerationSample(point, {INDEPENDENT_IMPORT: {}}, {}, outputs=outputs)

    def _evaluate_import(
        self, point: RandomAdmissibleState
    ) -> tuple[Array, Array, tuple[Array, Array], tuple[Array, Array]]:
        """Return M and f of the file, the added forces, and the derivatives of added states, both with term sizes."""
        values = list(point.values[: 1 + len(self._items)])
        state = self._form_robot_state(values)
        M, f = self._import.equations(state)
        motions = self._motions(self._added_forces.links, state)
        values += point.values[len(values) + len(self._rate_placeholders) :]
        return M, f, *self._added_forces.evaluate_forces(values, motions, len(f))

    # --- loops -------------------------------------------------------------------------------------------------------

    def _close_loops(self, values: list[float]) -> list[float] | None:
        """Return values moved onto the closed loops, if any; None where they do not close."""
        return (
            close_loops_from_guess(values, self._compute_loop_rows, self._move_coordinates, self._project_speeds)
            if self._closures
            else values
        )

    def _compute_loop_rows(self, values: list[float]) -> LoopConstraints:
        """Return the constraint rows of closed loops: A, γ and residuals, from the motions of the links they tie."""
        links = dict.fromkeys(link for each in self._closures for link in each.links)
        return compute_loop_constraints(self._closures, self._motions(links, self._form_robot_state(values)))

    def _motions(self, links: Mapping[str, None], state: RobotEvaluationPoint) -> Mapping[str, LinkMotion]:
        """Return the motion of links, if there are any."""
        if not links:
            return {}
        if isinstance(self._import, MujocoEquations):
            return self._import.compute_motions(links, state)
        return self._import.compute_motions(state)

    def _compute_size_at_lever_arms(self, A: Array, forces: Array) -> Array:
        """Return the size by column of Aᵀ λ before arms cancel.

        A row's arm about a joint is a difference of positions: it has the round-off of the longest arm in the row, even
        where it is 0 itself, as about the axis of a light rod that a loop pulls along. What turns has arms in m, what
        slides has none: the longest is taken of columns of one kind.

        Args:
            A: Rows of the loops.
            forces: |λ|, N and N·m.
        """
        size = np.abs(A)
        longest = [np.max(size[:, of_kind], axis=1, initial=0.0) for of_kind in (~self._is_sliding, self._is_sliding)]
        return np.asarray(np.where(self._is_sliding, longest[1] @ forces, longest[0] @ forces))

    def _estimate_rotational_accelerations(self, values: list[float]) -> Array:
        """Return by column the size of accelerations that come of turning: ω² where it turns, ω v where it slides."""
        given_accelerations = (
            self._slot_of_symbol[each.prescribed[1]]
            for each in self._robot.variables.values()
            if each.prescribed is not None
        )
        slots = [*(slot for slot, _ in self._iterate_speeds()), *given_accelerations]
        fastest = {
            kind: max((abs(values[k]) for k in slots if self._items[k - 1].unit.startswith("m") is kind), default=0.0)
            for kind in (False, True)
        }
        return np.asarray(fastest[False] * np.where(self._is_sliding, fastest[True], fastest[False]))

    def _iterate_speeds(self) -> Iterator[tuple[int, int]]:
        """Yield slot and column of every speed."""
        for i, each in self._robot.variables.items():
            column = self._import.column.get(self._robot.tree.parts[i].moving_joint.name)
            for k, u in enumerate(each.u):
                assert column is not None
                yield self._slot_of_symbol[u], column + k
        for link in self._robot.flexible:
            assert isinstance(self._import, IndependentRobotImport), "MuJoCo has none"
            first = self._import.modal_column[link.name]
            yield from ((self._slot_of_symbol[u], first + k) for k, u in enumerate(link.body.u))

    def _iterate_prescribed(self) -> Iterator[tuple[tuple[sm.Expr, sm.Expr, sm.Expr], int, str]]:
        """Yield symbols (position, speed, acceleration), column and name of joints whose efforts are computed."""
        for i, each in self._robot.variables.items() if self._inverse else ():
            assert each.prescribed is not None
            yield each.prescribed, self._import.column[self._robot.tree.parts[i].moving_joint.name], each.name

    def _move_coordinates(self, values: list[float], step: Array) -> list[float]:
        """Return coordinates after a small motion along the speeds; quaternions of unit length."""
        moving = list(values)
        for slot, column in self._iterate_speeds():
            moving[slot] = float(step[column])
        rates, _ = self._rates_of_coordinates(moving)
        moved_values = list(values)
        for name, rate in rates.items():
            moved_values[self._slot[name]] += rate
        self._normalize(moved_values)
        return moved_values

    def _project_speeds(self, values: list[float], A: Array) -> list[float]:
        """Return the nearest speeds that keep the loops closed."""
        slots = dict(self._iterate_speeds())
        u = np.zeros(self._import.size)
        for slot, column in slots.items():
            u[column] = values[slot]
        u, projected_values = project_speeds_on_loops(A, u), list(values)
        for slot, column in slots.items():
            projected_values[slot] = float(u[column])
        return projected_values

    def _normalize(self, values: list[float]) -> None:
        """Scale the quaternions among the values to unit length, in place."""
        for each in self._robot.variables.values():
            if len(each.q) > len(each.u):
                places = [self._slot_of_symbol[q] for q in each.q[-4:]]
                length = float(np.linalg.norm([values[k] for k in places]))
                for k in places:
                    values[k] /= length

    def _size_of_forces(self, values: list[float]) -> Array:
        """Return the size of f's terms before they cancel: gravity, velocities, efforts one by one."""
        state = self._form_robot_state(values)
        zero_efforts = dict.fromkeys(state.effort, 0.0)
        zero_controls = dict.fromkeys(state.control, 0.0)
        zero_speeds = {name: [0.0] * len(u) for name, u in state.u.items()}
        zero_rates = {name: replace(modal, rate=0.0 * modal.rate) for name, modal in state.modal.items()}
        still = replace(state, u=zero_speeds, acceleration={}, modal=zero_rates)
        unloaded_state = replace(state, effort=zero_efforts, control=zero_controls, friction={})
        parts = [
            replace(unloaded_state, u=zero_speeds, acceleration={}, modal=zero_rates),
            replace(unloaded_state, gravity=np.zeros(3)),
            replace(still, gravity=np.zeros(3)),
        ]
        return np.asarray(sum(np.abs(self._import.equations(part)[1]) for part in parts))

    def _form_robot_state(self, values: list[float]) -> RobotEvaluationPoint:
        """Return a point in the independent import's form: q, u, efforts, damping, gravity by joint name.

        Where efforts are computed, accelerations are among u'.
        """
        q, u, acceleration, effort = {}, {}, {}, {}
        for i, each in self._robot.variables.items():
            joint = self._robot.tree.parts[i].moving_joint.name
            if each.prescribed is not None:
                position, speed, prescribed_acceleration = (
                    values[self._slot_of_symbol[symbol]] for symbol in each.prescribed
                )
                q[joint], u[joint], acceleration[joint] = (
                    [position],
                    [speed],
                    0.0 if self._inverse else prescribed_acceleration,
                )
                continue
            q[joint] = [values[self._slot_of_symbol[symbol]] for symbol in each.q]
            u[joint] = [values[self._slot_of_symbol[symbol]] for symbol in each.u]
            if each.effort is not None:
                effort[joint] = values[self._slot_of_symbol[each.effort]]
        damping = {
            self._robot.tree.parts[i].moving_joint.name: values[self._slot_of_symbol[d]]
            for i, d in self._robot.damping.items()
        }
        gravity = np.array(self._gravity(*(values[self._slot[p.name]] for p in self._parameters)), dtype=float)
        declared = {p.name: float(p.value) for p in self._parameters}
        file_gravity = self._import.gravity
        if file_gravity is not None and self._robot.settings.gravity is None:  # the file says where weight pulls
            is_given = "gravity" in self._definition.given  # then the declared value says nothing of the file's
            size = float(np.linalg.norm(file_gravity)) if is_given else declared.get("gravity", 0.0)
            gravity = file_gravity * (values[self._slot["gravity"]] / size if size else 1.0)
        friction = {joint: values[self._slot[name]] / value for joint, (name, value) in self._robot.friction.items()}
        control = {name: values[self._slot_of_symbol[symbol]] for name, symbol in self._robot.controls.items()}
        modal = {link.name: self._form_modal_state(link.body, values) for link in self._robot.flexible}
        return RobotEvaluationPoint(q, u, acceleration, effort, damping, gravity, control, friction, modal)

    def _form_modal_state(self, body: FlexibleBody, values: list[float]) -> LinkModalState:
        """Return the modes of a link that bends, with the parameters' values on the diagonals of both matrices."""
        matrices = []
        for matrix, symbols in (
            (body.data.stiffness, body.stiffness_symbols),
            (body.data.damping, body.damping_symbols),
        ):
            changed = matrix.copy()
            for k, symbol in enumerate(symbols):
                if symbol in self._slot_of_symbol:
                    changed[k, k] = values[self._slot_of_symbol[symbol]]
            matrices.append(changed)
        eta, rate = (np.array([values[self._slot_of_symbol[s]] for s in symbols]) for symbols in (body.q, body.u))
        return LinkModalState(eta, rate, *matrices)

    def _rates_of_coordinates(self, values: list[float]) -> tuple[dict[str, float], dict[str, float]]:
        """Return q' by name: speeds; for floating parts and balls turned velocity and half the quaternion product."""
        rates: dict[str, float] = {}
        moving_parts: list[RobotJointSymbols | FlexibleBody] = [*self._robot.variables.values()]
        moving_parts += [link.body for link in self._robot.flexible]
        for each in moving_parts:
            if len(each.q) == len(each.u):
                rates |= {
                    self._name_of_symbol(q): values[self._slot_of_symbol[u]]
                    for q, u in zip(each.q, each.u, strict=True)
                }
                continue
            w, x, y, z = (values[self._slot_of_symbol[q]] for q in each.q[-4:])
            a, b, c = (values[self._slot_of_symbol[u]] for u in each.u[-3:])
            product = (-x * a - y * b - z * c, w * a + y * c - z * b, w * b + z * a - x * c, w * c + x * b - y * a)
            rates |= {self._name_of_symbol(q): rate / 2 for q, rate in zip(each.q[-4:], product, strict=True)}
            axis = np.array([x, y, z])
            for q, velocity in zip(
                each.q[:-4],
                _rotate_by_quaternion(w, axis, [values[self._slot_of_symbol[u]] for u in each.u[:-3]]),
                strict=True,
            ):
                rates[self._name_of_symbol(q)] = velocity
        return rates, {name: ROUND_OFF_FRACTION * (1.0 + abs(rate)) for name, rate in rates.items()}

    def _name_of_symbol(self, symbol: sm.Expr) -> str:
        """Return the name of a symbol's variable."""
        return str(self._items[self._slot_of_symbol[symbol] - 1].name)


def _rotate_by_quaternion(w: float, axis: Array, v: list[float]) -> list[float]:
    """Return a vector turned by a unit quaternion; none of a ball, which has no velocity."""
    if not v:
        return []
    vector = np.array(v)
    rotated: list[float] = (vector + 2 * np.cross(axis, w * vector + np.cross(axis, vector))).tolist()
    return rotated


def _keep_within_bounds(item: Any, value: float) -> float:
    """Return a value moved into a variable's bounds."""
    low = -np.inf if item.minimum is None else item.minimum
    high = np.inf if item.maximum is None else item.maximum
    return float(min(max(value, low), high))
