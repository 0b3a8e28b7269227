"""Read a CheckedModel once: SymPy's local relations become plain records.

Only *local* relations are read (a frame's direction cosines to its parent, a point's position from its parent), so that
SymPy never composes, and never expands, anything. SymPy's ``Point.vel`` writes into the points it passes; it is never
called.
"""
# ruff: noqa: SLF001 - SymPy keeps the time symbol and a LagrangesMethod's Lagrangian in private attributes

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import sympy as sm
from sympy.physics.mechanics import LagrangesMethod, Point, System
from sympy.physics.vector import dynamicsymbols

from mb2fmu.mechanics.equations.equations_of_motion import KinematicEquations, SymbolAssignment
from mb2fmu.mechanics.mechanism.records.appearance_records import AppearanceRecords
from mb2fmu.mechanics.mechanism.records.mechanism_records import (
    ConstraintForceApplication,
    Frame,
    Lagrangian,
    Mechanism,
)
from mb2fmu.mechanics.mechanism.records.quaternion_coordinates import (
    QuaternionGroup,
    find_quaternion_coordinates,
    make_rotations_length_independent,
    stabilize_quaternion_length,
    substitute_unit_quaternions,
)
from mb2fmu.mechanics.mechanism.records.symbol_replacement_and_derivatives import (
    DynamicsymbolMap,
    coordinate_rates,
    make_unique_symbol,
    plain_symbols,
    replace_symbols,
    solve_kinematic_equations,
    time_derivative,
)
from mb2fmu.mechanics.mechanism.symbolic.acceleration_dependent_loads import (
    add_load_inertias,
    kinetic_energy_of_loads,
    split_acceleration_loads,
)
from mb2fmu.mechanics.mechanism.sympy_import.body_import import (
    list_frames_to_import,
    list_points_to_import,
    read_sympy_bodies,
)
from mb2fmu.mechanics.mechanism.sympy_import.constraint_import import (
    ConstraintSymbols,
    ImportedConstraints,
    choose_dependent_speeds,
    constraints_determine_speeds,
    read_constraint_force_locations,
    read_sympy_constraints,
)
from mb2fmu.mechanics.mechanism.sympy_import.declared_appearance_import import (
    list_appearance_points,
    read_declared_appearance,
)
from mb2fmu.mechanics.mechanism.sympy_import.declared_event_import import read_declared_events
from mb2fmu.mechanics.mechanism.sympy_import.kinematic_consistency_checks import (
    check_kinematics_and_choose_velocities,
    matches_lagrangian_kinetic_energy,
)
from mb2fmu.mechanics.mechanism.sympy_import.kinematic_tree import SympyFrameAndPointTree
from mb2fmu.mechanics.mechanism.sympy_import.load_import import read_sympy_loads
from mb2fmu.mechanics.mechanism.sympy_import.output_import import (
    SympySourceObjectRecordNumbers,
    read_loop_closed_forms,
    read_outputs,
)
from mb2fmu.mechanics.mechanism.sympy_import.prescribed_motion_and_quaternion_rates import (
    recast_prescribed_motion_and_quaternion_rates,
)
from mb2fmu.mechanics.mechanism.sympy_import.redundant_constraint_removal import remove_redundant_constraints
from mb2fmu.model.checked_model import CheckedModel
from mb2fmu.model.checks.expression_symbols import differentiate_by_time
from mb2fmu.model.declarations.declared_content_and_experiment import DeclaredModelContent
from mb2fmu.model.expression_traversal import partial_derivative
from mb2fmu.model.model import OutputRequest, Parts
from mb2fmu.model.quantity_declarations import Coordinate, Speed
from mb2fmu.model.sources import mechanics_source

if TYPE_CHECKING:
    from mb2fmu.mechanics.equations.contact_equations import ContactEquations
    from mb2fmu.mechanics.equations.latch_equations import LatchEquations
    from mb2fmu.mechanics.mechanism.sympy_import.contact_and_latch_import import SymbolRates


def read_mechanism(definition: CheckedModel) -> Mechanism:
    """Read the mechanics of a checked model.

    Args:
        definition: As ``mb2fmu.model.check_model`` returns it.

    Returns:
        The mechanism; the user's SymPy objects are as before.

    Raises:
        MechanismError: If the kinematics are missing, not linear, or contradict each other.
    """
    return _MechanismReader(definition).read()


class _MechanismReader:
    """State of the import of one definition.

    ``__init__`` makes symbols and reads q' = K u + k0, so that all rates can be translated; :meth:`mechanism` reads the
    rest with them.
    """

    def __init__(self, definition: CheckedModel) -> None:
        self.recast_model = recast_prescribed_motion_and_quaternion_rates(definition)
        self.definition = self.recast_model.definition
        self.mechanics = definition.mechanics
        self.speeds = self.recast_model.speeds
        self.quaternions: tuple[QuaternionGroup, ...] = ()
        self.t = dynamicsymbols._t
        self._declare_symbols()
        self.kinematics = self._read_kinematics()
        self.plain = DynamicsymbolMap(self.to_plain, self.to_dynamic)

    def _declare_symbols(self) -> None:
        """Make a plain symbol for each of the user's functions of time, and the maps between both."""
        definition = self.definition
        self.taken_names = {p.symbol.name for p in definition.parameters} | {str(self.t)}
        self.q_user = [c.symbol for c in definition.coordinates]
        self.u_user = [s.symbol for s in definition.speeds]
        groups: list[Sequence[sm.Expr]] = [
            self.q_user,
            self.u_user,
            self.speeds.auxiliary,
            [s.symbol for s in definition.auxiliary_states],
            [i.symbol for i in definition.inputs],
            [f.symbol for f in definition.constraint_forces],
            [c.symbol for c in definition.constraints if c.symbol is not None],
            definition.unilateral_forces,
        ]
        plain = [plain_symbols(group, self.taken_names) for group in groups]
        self.q, self.u, self.u_auxiliary, self.z, self.r, self.constraint_forces, *_ = plain
        self.u_dot = tuple(make_unique_symbol(f"{speed.name}_d", self.taken_names) for speed in self.u)
        self.to_plain: dict[sm.Basic, sm.Expr] = {}
        for group, symbols in zip(groups, plain, strict=True):
            self.to_plain.update(zip(group, symbols, strict=True))
        self.to_dynamic: dict[sm.Basic, sm.Expr] = {symbol: user for user, symbol in self.to_plain.items()}

    def _read_kinematics(self) -> KinematicEquations:
        """Read K and k0; afterwards the translation knows q', q'' and u' too."""
        # auxiliary speeds are zero in the motion: they must not enter q'
        zero_auxiliary_speeds = dict.fromkeys(self.speeds.auxiliary, sm.S.Zero)
        equations = [
            sm.sympify(equation).xreplace(zero_auxiliary_speeds) for equation in self.recast_model.kinematic_equations
        ]
        kinematics = solve_kinematic_equations(equations, self.q_user, self.u_user, dict(self.to_plain))
        self._translate_rates(kinematics)
        return kinematics

    def _translate_rates(self, kinematics: KinematicEquations) -> None:
        """Translate q', q'' and u' to plain symbols."""
        self.q_dot = coordinate_rates(kinematics, self.u)
        accelerations = dict(zip(self.u_user, self.u_dot, strict=True))
        self.to_plain |= {differentiate_by_time(user): rate for user, rate in zip(self.q_user, self.q_dot, strict=True)}
        self.to_plain |= {differentiate_by_time(user): dot for user, dot in accelerations.items()}
        self.to_plain |= {differentiate_by_time(user): sm.S.Zero for user in self.speeds.auxiliary}
        self._translate_rates_of_states()
        for speed, rate in self.recast_model.replaced_speeds.items():
            self.to_plain[speed] = self.to_plain[rate]
        acceleration_of_speed = dict(zip(self.u, self.u_dot, strict=True))
        moving = self._list_moving_rates()
        for user, rate in zip(self.q_user, self.q_dot, strict=True):
            second_rate = time_derivative(rate, *moving)
            second_rate += sum(
                partial_derivative(rate, speed_symbol) * acceleration_of_speed[speed_symbol]
                for speed_symbol in sorted(rate.free_symbols & acceleration_of_speed.keys(), key=str)
            )
            self.to_plain[differentiate_by_time(user, 2)] = second_rate

    def _translate_rates_of_states(self) -> None:
        """Translate z' as declared; those that contain rates of other states come after these."""
        rates = {differentiate_by_time(s.symbol): s.derivative for s in self.definition.auxiliary_states}
        for _ in rates:
            rates = {user: rate.xreplace(rates) for user, rate in rates.items()}
        self.to_plain |= {user: replace_symbols(rate, self.to_plain) for user, rate in rates.items()}

    def read(self) -> Mechanism:
        """Put everything together and check the kinematics numerically."""
        if not isinstance(self.mechanics, LagrangesMethod):
            return self._read_with_bodies()
        lagrangian = self._read_lagrangian(self.mechanics)
        if self.mechanics.bodies and self.mechanics.inertial is not None:
            mechanism = self._read_with_bodies(
                lagrangian=lagrangian, potential_forces=self._derive_potential_forces(lagrangian)
            )
            if matches_lagrangian_kinetic_energy(mechanism):
                return mechanism
        constraints = self._read_constraints()
        lagrangian_mechanism = self._make_bodiless_mechanism(
            constraints, force_applications=((),) * len(constraints.declarations)
        )
        lagrangian_mechanism = replace(
            lagrangian_mechanism, lagrangian=lagrangian, appearance=self._read_ground_appearance()
        )
        return self._add_observables(lagrangian_mechanism, SympySourceObjectRecordNumbers())

    def _add_observables(self, mechanism: Mechanism, numbers: SympySourceObjectRecordNumbers) -> Mechanism:
        """Return outputs and closed forms; their rows and points are those of the finished mechanism."""
        outputs = read_outputs(self.definition, mechanism, self.plain, numbers)
        loops = tuple(read_loop_closed_forms(self.definition, mechanism, self.plain))
        names = {load: mechanism.loads[number].name for load, number in numbers.loads.items()}
        potentials = self.definition.known_potentials
        known_potentials = tuple(
            (frozenset(names[id(load)] for load in loads), self.plain(energy)) for loads, energy in potentials
        )
        element_loads = self.definition.element_of_load
        elements = {names[id(load)]: element for load, element in element_loads if id(load) in names}
        return replace(
            mechanism,
            outputs=outputs,
            loop_closed_forms=loops,
            known_potentials=known_potentials,
            element_of_load=elements,
            loads=numbers.assign_elastic_loads(self.definition, mechanism.loads),
            flexible_bodies=numbers.flexible_body_records(self.definition.flexible_bodies),
        )

    def _read_ground_appearance(self) -> AppearanceRecords | None:
        """Return pictures of a Lagrangian alone, on frames and points that occur nowhere else."""
        ground = self.definition.ground
        if ground is None:
            return None
        trees = SympyFrameAndPointTree(ground[0], self.plain, self._list_declared_symbols())
        frames, points = trees.read_frames({}), trees.read_points(ground[1], [*list_appearance_points(self.definition)])
        return replace(
            read_declared_appearance(self.definition, trees, {}, self._list_moving_symbols()),
            frames=frames,
            points=points,
        )

    def _list_declared_symbols(self) -> set[sm.Basic]:
        """Return all symbols and functions of time that the model declares, as its mechanics have them."""
        return {self.t, *self.to_plain, *(p.symbol for p in self.definition.parameters)}

    def _list_moving_symbols(self) -> tuple[sm.Symbol, ...]:
        """Return t, q, u, z and r: all that can change while the FMU runs."""
        return (self.t, *self.q, *self.u, *self.z, *self.r)

    def _read_frames(self, trees: SympyFrameAndPointTree) -> tuple[Frame, ...]:
        """Return all frames; quaternions among the coordinates are stabilized at unit length from here on."""
        needed_frames = list_frames_to_import(self.definition)
        frames = trees.read_frames(needed_frames)
        groups = self.quaternions = find_quaternion_coordinates((frame.rotation for frame in frames), self.q)
        if not groups:
            return frames
        self.unstabilized_kinematics = stabilize_quaternion_length(self.kinematics, groups, self.q, self.u, sm.S.Zero)
        self.kinematics = stabilize_quaternion_length(self.kinematics, groups, self.q, self.u)
        self._translate_rates(self.kinematics)
        return make_rotations_length_independent(trees.read_frames(needed_frames), groups, self.q)

    def _scale_quaternions(self) -> None:
        """Translate quaternions and their rates to those of unit length: what is read from here on has no other."""
        if not self.quaternions:
            return
        self._translate_rates(self.unstabilized_kinematics)
        components = [self.q_user[k] for group in self.quaternions for k in group]
        functions = [
            function
            for component in components
            for function in (component, differentiate_by_time(component), differentiate_by_time(component, 2))
        ] + [*self.recast_model.replaced_speeds]
        normalized_quaternions = {
            function: substitute_unit_quaternions(self.to_plain[function], self.quaternions, self.q)
            for function in functions
        }
        self._translate_rates(self.kinematics)
        self.to_plain |= normalized_quaternions

    def _derive_potential_forces(self, lagrangian: Lagrangian) -> tuple[sm.Expr, ...]:
        """-∂V/∂q with V = -L at q' = 0."""
        at_rest = lagrangian.expression.xreplace(dict.fromkeys(self.u, sm.S.Zero))
        return tuple(at_rest.diff(q) for q in self.q)

    def _read_with_bodies(
        self, lagrangian: Lagrangian | None = None, potential_forces: tuple[sm.Expr, ...] = ()
    ) -> Mechanism:
        """Read frames, points, bodies, loads and constraints of mechanics that have bodies.

        The order matters: frames show which coordinates are quaternions, which changes the kinematics; constraints are
        read with quaternions as they are, and everything behind them with quaternions of unit length.
        """
        ground = mechanics_source.inertial_frame(self.mechanics)
        trees = SympyFrameAndPointTree(ground, self.plain, self._list_declared_symbols())
        frames = self._read_frames(trees)
        constraints = self._read_constraints()
        self._scale_quaternions()
        bodies = mechanics_source.bodies(self.mechanics)
        origin = mechanics_source.origin(self.mechanics)
        pivot = mechanics_source.find_pivot_as_position_origin(self.mechanics)
        points = trees.read_points(origin or Point("O"), list_points_to_import(self.definition), pivot=pivot)
        loads, load_of, z_dot = read_sympy_loads(
            mechanics_source.loads(self.mechanics),
            mechanics_source.actuators(self.mechanics),
            trees,
            [self.plain(s.derivative) for s in self.definition.auxiliary_states],
            self.taken_names,
            self.speeds.auxiliary,
        )
        bodiless_mechanism = self._make_bodiless_mechanism(
            constraints, read_constraint_force_locations(constraints.declarations, trees, bodies)
        )
        numbers = SympySourceObjectRecordNumbers(
            frames=trees.frame_of,
            points=trees.point_of,
            loads=load_of,
            bodies={id(body): i for i, body in enumerate(bodies)},
            joints=mechanics_source.joints(self.mechanics),
        )
        draft = replace(
            bodiless_mechanism,
            z_dot=z_dot,
            lagrangian=lagrangian,
            potential_forces=potential_forces,
            frames=frames,
            points=points,
            bodies=read_sympy_bodies(self.mechanics, trees, self.plain, self._list_moving_symbols()),
            loads=loads,
            joints=numbers.joint_records(),
            appearance=read_declared_appearance(self.definition, trees, load_of, self._list_moving_symbols()),
        )
        draft, accelerations = split_acceleration_loads(remove_redundant_constraints(draft))
        origins = self._find_unnamed_origins(trees, pivot)
        checked = check_kinematics_and_choose_velocities(draft, trees.read_given_velocities(), origins_found=origins)
        self.to_plain |= zip(self.q_user, self.q, strict=True)
        self._translate_rates(self.kinematics)
        return self._add_observables(add_load_inertias(checked, accelerations), numbers)

    def _find_unnamed_origins(self, trees: SympyFrameAndPointTree, pivot: Point | None) -> frozenset[int]:
        """Return the numbers of an unnamed origin and of the pivot in it (see :func:`choose_point_velocities`)."""
        if isinstance(self.mechanics, (System, Parts)):
            return frozenset()
        if pivot is not None:
            return frozenset({0, trees.point_of[pivot]})
        return frozenset({0} if mechanics_source.origin(self.mechanics) is not None else ())

    def _make_bodiless_mechanism(
        self, constraints: ImportedConstraints, force_applications: tuple[tuple[ConstraintForceApplication, ...], ...]
    ) -> Mechanism:
        """Return the mechanism without frames, points, bodies and loads: all that a Lagrangian alone has."""
        definition = self.definition
        declared, multipliers = self._make_declarations(), self._make_multipliers(constraints)
        rates, start = self._list_moving_rates(), self._collect_start_values()
        independent = self._list_independent_speeds(constraints)
        contacts, latches = self._read_contacts_and_latches(rates, constraints, start)
        body_potentials = map(mechanics_source.body_potential_energy, mechanics_source.bodies(self.mechanics))
        return Mechanism(
            declared=declared,
            t=self.t,
            q=self.q,
            u=self.u,
            u_dot=self.u_dot,
            u_auxiliary=self.u_auxiliary,
            z=self.z,
            p=tuple(p.symbol for p in definition.parameters if not p.calculated),
            r=self.r,
            calculated_parameters=self._list_calculated_parameters(),
            constraint_forces=self.constraint_forces,
            inputs_with_rates=self._list_inputs_with_rates(),
            u_independent=independent,
            holonomic=constraints.holonomic,
            velocity_constraints=constraints.velocity,
            kinematic_invariants=constraints.kinematic_invariants,
            auxiliary_rows=constraints.auxiliary,
            speed_choice=self._describe_speed_choice(independent),
            multipliers=multipliers,
            dynamic=self.to_dynamic,
            kinematics=self.kinematics,
            z_dot=tuple(self.plain(s.derivative) for s in definition.auxiliary_states),
            quaternions=self.quaternions,
            events=read_declared_events(definition, self.plain, {*self.q, *self.u, *self.z}),
            contacts=contacts,
            latches=latches,
            force_applications=force_applications,
            needs_multipliers=self._needs_multipliers(constraints, force_applications),
            given_potential=None if definition.potential_energy is None else self.plain(definition.potential_energy),
            declared_potential=sm.Add(*map(self.plain, body_potentials)),
            frames=(),
            points=(),
            bodies=(),
            loads=(),
        )

    def _read_contacts_and_latches(
        self, rates: SymbolRates, constraints: ImportedConstraints, start: Mapping[sm.Symbol, float]
    ) -> tuple[ContactEquations | None, LatchEquations | None]:
        """Return contacts and latches; None where the model has none."""
        definition = self.definition
        if not definition.contacts and not definition.latches:
            return None, None
        from mb2fmu.mechanics.mechanism.sympy_import.contact_and_latch_import import read_contacts_and_latches

        return read_contacts_and_latches(
            definition, self.plain, rates, self.u, self.taken_names, constraints.velocity, start
        )

    def _list_calculated_parameters(self) -> tuple[SymbolAssignment, ...]:
        """Return calculated parameters with their expressions, in order."""
        parameters = (p for p in self.definition.parameters if p.calculated)
        return tuple(SymbolAssignment(p.symbol, sm.sympify(p.value)) for p in parameters)

    def _list_independent_speeds(self, constraints: ImportedConstraints) -> tuple[int, ...]:
        """Return indices of the independent speeds: those not named as dependent, or a choice.

        A Lagrangian names none; and where rows determine the named ones at no start as it is (a blade along x, whose
        speed along x is to depend on the other), others depend on them.
        """
        dependent, rows = {self.u_user.index(u) for u in self.speeds.dependent}, constraints.velocity
        if rows and isinstance(self.mechanics, LagrangesMethod):
            dependent = set(choose_dependent_speeds(rows, self._collect_start_values(), self._list_guessed_speeds()))
        elif rows and dependent and not constraints.holonomic:
            start = self._collect_start_values()
            if not constraints_determine_speeds(rows, start, sorted(dependent)):
                guesses = [i for i, speed in enumerate(self.definition.speeds) if speed.kind == "guess"]
                dependent = set(choose_dependent_speeds(rows, start, guesses))
        return tuple(i for i in range(len(self.u)) if i not in dependent)

    def _describe_speed_choice(self, independent: tuple[int, ...]) -> str:
        """Return a sentence where other speeds depend than those that the mechanics name; else nothing."""
        named_dependent = {self.u_user.index(u) for u in self.speeds.dependent}
        dependent = {*range(len(self.u))} - {*independent}
        if not named_dependent or named_dependent == dependent:
            return ""
        replaced = ", ".join(self.u[i].name for i in sorted(named_dependent - dependent))
        replacing = ", ".join(self.u[i].name for i in sorted(dependent - named_dependent))
        return f"the constraints do not determine {replaced} at the start: {replacing} depends on the rest instead"

    def _make_declarations(self) -> DeclaredModelContent:
        """Return the plain part of the definition, and what the mechanics name as dependent."""
        definition = self.definition
        dependent_names = {str(q) for q in mechanics_source.dependent_coordinates(self.mechanics)}
        dependent_names |= {str(u) for u in self.speeds.dependent}
        states: tuple[Coordinate | Speed, ...] = (*definition.coordinates, *definition.speeds)
        dependent = tuple(item.name for item in states if str(item.symbol) in dependent_names)
        return definition.declarations(dependent, mechanics_source.describe_mechanics_kind(self.mechanics))

    def _needs_multipliers(
        self, constraints: ImportedConstraints, applications: tuple[tuple[ConstraintForceApplication, ...], ...]
    ) -> bool:
        """Return whether an output or unknown force may need multipliers."""
        definition = self.definition
        kinds = {item.kind for item in definition.outputs if isinstance(item, OutputRequest)}
        reactions = bool(kinds & {"reaction_force", "reaction_torque"}) and any(applications)
        return (
            constraints.auxiliary is not None
            or "multiplier" in kinds
            or reactions
            or any(c.symbol is not None for c in definition.constraints)
        )

    def _read_lagrangian(self, method: LagrangesMethod) -> Lagrangian:
        """Return L, and the generalized forces: those of a method with the same loads and no Lagrangian.

        Its mass matrix is what loads have of q'': with the kinetic energy of that, L says the same.
        """
        loads_only = LagrangesMethod(0, list(method.q), method.forcelist or None, None, method.inertial)
        loads_only.form_lagranges_equations()
        forces = tuple(self.plain(force) for force in loads_only.forcing)
        inertia = sm.ImmutableMatrix(len(self.u), len(self.u), [self.plain(e) for e in loads_only.mass_matrix])
        energy = kinetic_energy_of_loads(inertia, self.u, self._list_moving_symbols())
        return Lagrangian(self.plain(method._L[0]) + energy, forces)

    def _read_constraints(self) -> ImportedConstraints:
        """Read all constraints; rates of holonomic ones come first. Lengths of quaternions are left out."""
        if self.quaternions:
            self._translate_rates(self.unstabilized_kinematics)
        symbols, rates, t = self._list_moving_rates()
        motion = ConstraintSymbols(t, symbols, rates, self.u, self.u_auxiliary, frozenset(self.r), self.quaternions)
        constraints = read_sympy_constraints(self.mechanics, self.plain, motion, self.definition.constraints)
        if self.quaternions:
            self._translate_rates(self.kinematics)
        return constraints

    def _list_inputs_with_rates(self) -> tuple[tuple[sm.Symbol, sm.Symbol], ...]:
        """Return inputs of which another input is the rate."""
        input_symbols = {i.symbol: r for i, r in zip(self.definition.inputs, self.r, strict=True)}
        return tuple(
            (r, input_symbols[differentiate_by_time(user)])
            for user, r in input_symbols.items()
            if differentiate_by_time(user) in input_symbols
        )

    def _list_moving_rates(self) -> tuple[tuple[sm.Symbol, ...], tuple[sm.Expr, ...], sm.Symbol]:
        """Return the rates of everything that moves positions, time included."""
        inputs_with_rates = self._list_inputs_with_rates()
        return (
            (*self.q, *(r for r, _ in inputs_with_rates)),
            (*self.q_dot, *(rate for _, rate in inputs_with_rates)),
            self.t,
        )

    def _list_guessed_speeds(self) -> list[int]:
        """Return speeds of a LagrangesMethod whose start value, or whose coordinate's, is a guess."""
        definition = self.definition
        rates = {differentiate_by_time(c.symbol) for c in definition.coordinates if c.kind == "guess"}
        return [i for i, speed in enumerate(definition.speeds) if speed.kind == "guess" or speed.symbol in rates]

    def _collect_start_values(self) -> dict[sm.Symbol, float]:
        """Return start values of q and of parameters, inputs and time at the start."""
        definition = self.definition
        values: dict[sm.Symbol, Any] = {q: c.start for q, c in zip(self.q, definition.coordinates, strict=True)}
        values |= {r: i.start for r, i in zip(self.r, definition.inputs, strict=True)}
        values |= {z: s.start for z, s in zip(self.z, definition.auxiliary_states, strict=True)}
        values[self.t] = 0.0
        for p in definition.parameters:
            value = sm.sympify(p.value)
            values[p.symbol] = float(value.subs(values) if p.calculated else value)
        return values

    def _make_multipliers(self, constraints: ImportedConstraints) -> tuple[sm.Symbol, ...]:
        """Return one symbol per velocity constraint, the user's own where there is one."""
        names = constraints.velocity.names if constraints.velocity else ()
        symbols = []
        for name, item in zip(names, constraints.declarations, strict=True):
            user_symbol = item.symbol if item else None
            identifier = re.sub(r"\W+", "_", name).strip("_")
            symbols.append(
                make_unique_symbol(f"lambda_{identifier}", self.taken_names)
                if user_symbol is None
                else self.to_plain[user_symbol]
            )
        return tuple(symbols)
