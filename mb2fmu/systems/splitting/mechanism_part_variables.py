"""``MechanismPartVariables``: inputs, outputs, states, parameters and terminals of one part, and its mechanism."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields, replace
from typing import Any

import sympy as sm

from mb2fmu.mechanics.equations.equations_of_motion import KinematicEquations, VelocityConstraints
from mb2fmu.mechanics.mechanism.records.mechanism_records import Mechanism
from mb2fmu.mechanics.mechanism.records.output_and_joint_records import ExpressionOutput, OutputRecord, RequestedOutput
from mb2fmu.model.declarations.declared_terminals import DeclaredTerminal, DeclaredTerminalMember
from mb2fmu.model.quantity_declarations import AuxiliaryState, Input, Parameter
from mb2fmu.systems.splitting.exchanged_part_forces import make_variable_identifier
from mb2fmu.systems.splitting.needed_frames_and_points import FramesAndPointsOfPart
from mb2fmu.systems.splitting.split_part_draft import ACCELERATION, VALUE, MechanismPartDraft

SymbolPair = tuple[sm.Symbol, sm.Symbol]


def _format_acceleration_name(speed: str) -> str:
    """Return the name of the variable that is u'."""
    return f"{speed}_dot"


def _derive_acceleration_unit(unit: str) -> str:
    """Return the unit of u' from that of u: m/s → m/s2."""
    return f"{unit}2" if unit.endswith("/s") else f"{unit}/s" if unit != "1" else "1/s"


class MechanismPartVariables:
    """The variables of one part.

    Args:
        draft: The part.
        drafts: All parts.
    """

    def __init__(self, draft: MechanismPartDraft, drafts: Sequence[MechanismPartDraft]) -> None:
        self._draft, self._drafts = draft, drafts
        self._mechanism = draft.mechanism
        self.omitted_outputs: tuple[str, ...] = ()
        self._time_functions: dict[sm.Symbol, sm.Expr] = {}
        self._inputs: list[tuple[sm.Symbol, Input]] = []
        self._driven_rates: list[SymbolPair] = []
        self._filter_states: list[tuple[sm.Symbol, AuxiliaryState, sm.Expr]] = []
        self._added_parameters: list[Parameter] = []
        self._add_motion_inputs()
        self._add_force_inputs()
        self._add_bushing_parameters()

    # --- inputs

    def _make_time_function(self, symbol: sm.Symbol) -> sm.Expr:
        """Return a function of time for a symbol."""
        time_function = self._mechanism.dynamic.get(symbol) or sm.Function(symbol.name)(self._mechanism.t)
        self._time_functions[symbol] = time_function
        return time_function

    def _add_input(self, symbol: sm.Symbol, name: str, unit: str, start: float, description: str) -> None:
        """Add an input for a symbol that another part defines."""
        declared_input = Input(
            name=name, symbol=self._make_time_function(symbol), unit=unit, start=start, description=description
        )
        self._inputs.append((symbol, declared_input))

    def _add_motion_inputs(self) -> None:
        """Add the motion of other parts as inputs, with the method ``filter`` through a third-order filter."""
        draft = self._draft
        filters_motion = draft.filters_motion
        initial_accelerations = draft.settings.initial_accelerations
        for state, level in draft.needed_states.items():
            declaration = draft.declaration_of_state[state]
            description = f"of {draft.cut.part_names[draft.cut.part_of_state[state]]}"
            symbol = sm.Symbol(f"{state.name}_given") if filters_motion and level == ACCELERATION else state
            self._add_input(symbol, declaration.name, declaration.unit, declaration.start, description)
            if state in draft.rate_of_coordinate and level > VALUE:
                self._driven_rates.append((state, draft.rate_of_coordinate[state]))
            if level < ACCELERATION or state not in draft.acceleration_of_speed:
                continue
            acceleration, name = draft.acceleration_of_speed[state], _format_acceleration_name(declaration.name)
            self._driven_rates.append((state, acceleration))
            start = float(initial_accelerations.get(state.name, 0.0))
            unit = _derive_acceleration_unit(declaration.unit)
            if not filters_motion:
                self._add_input(acceleration, name, unit, start, description)
                continue
        if filters_motion:
            self._add_motion_filters()
        self._replace_driven_rates()

    def _replace_driven_rates(self) -> None:
        """Replace rates of driven symbols by derivatives, for methods that differentiate functions of time."""
        positions_first = sorted(self._driven_rates, key=lambda pair: pair[0] not in self._draft.rate_of_coordinate)
        for symbol, rate in positions_first:
            self._time_functions[rate] = sm.Derivative(self._time_functions[symbol], self._mechanism.t)
        self._inputs = [
            (symbol_of_item, replace(item, symbol=self._time_functions[symbol_of_item]))
            for symbol_of_item, item in self._inputs
        ]
        self._filter_states = [
            (symbol_of_item, replace(item, symbol=self._time_functions[symbol_of_item]), rate)
            for symbol_of_item, item, rate in self._filter_states
        ]

    def _add_motion_filters(self) -> None:
        """Add a filter per coordinate: q' = u, u' = a, a' = w³ Δq + 3 w² Δu - 3 w a, with Δ = given - own."""
        draft, bandwidth = self._draft, sm.Symbol("bandwidth")
        self._added_parameters.append(
            Parameter(
                name="bandwidth", symbol=bandwidth, unit="rad/s", value=draft.settings.bandwidth, minimum=1e-9,
                description="of the filter that the motion at the cut passes through",
            )
        )  # fmt: skip
        for coordinate in [
            coordinate
            for coordinate, level in draft.needed_states.items()
            if coordinate in draft.rate_of_coordinate and level == ACCELERATION
        ]:
            speed = draft.rate_of_coordinate[coordinate]
            acceleration = draft.acceleration_of_speed[speed]
            given_coordinate, given_speed = sm.Symbol(f"{coordinate.name}_given"), sm.Symbol(f"{speed.name}_given")
            jerk = (
                bandwidth**3 * (given_coordinate - coordinate)
                + 3 * bandwidth**2 * (given_speed - speed)
                - 3 * bandwidth * acceleration
            )
            start = float(draft.settings.initial_accelerations.get(speed.name, 0.0))
            of_q, of_u = draft.declaration_of_state[coordinate], draft.declaration_of_state[speed]
            self._add_filter_state(coordinate, speed, of_q.unit, of_q.start, of_q.name)
            self._add_filter_state(speed, acceleration, of_u.unit, of_u.start, of_u.name)
            unit, name = _derive_acceleration_unit(of_u.unit), _format_acceleration_name(of_u.name)
            self._add_filter_state(acceleration, jerk, unit, start, name)

    def _add_filter_state(self, symbol: sm.Symbol, rate: sm.Expr, unit: str, start: float, filtered_name: str) -> None:
        """Add a state of the filter: what it follows is named ``filtered_name``."""
        state = AuxiliaryState(
            name=f"{filtered_name}_followed", symbol=self._make_time_function(symbol), unit=unit, start=start,
            derivative=rate, description="followed through the filter",
        )  # fmt: skip
        self._filter_states.append((symbol, state, rate))

    def _add_force_inputs(self) -> None:
        """Add an input for each force that another part computes."""
        for force in self._draft.received_forces:
            description = f"by {self._draft.cut.part_names[force.sender]}"
            self._add_input(force.symbol, force.name, force.unit, force.start, description)

    def _add_bushing_parameters(self) -> None:
        """Add stiffness (N/m) and damping (N·s/m) if a constraint is replaced by a bushing."""
        if not self._draft.bushing_rows:
            return
        settings = self._draft.settings
        self._added_parameters += [
            Parameter(name="bushing_stiffness", symbol=sm.Symbol("bushing_stiffness"), value=settings.stiffness,
                      unit="N/m", description="force per violation of the constraint"),
            Parameter(name="bushing_damping", symbol=sm.Symbol("bushing_damping"), value=settings.damping,
                      unit="N.s/m", description="force per rate of the violation"),
        ]  # fmt: skip

    # --- outputs

    def _list_outputs(self, selection: FramesAndPointsOfPart, bodies: int) -> Iterator[OutputRecord]:
        """Yield outputs that other parts need, and those outputs of the whole that this part alone can compute."""
        draft = self._draft
        used_names = {name for name, _ in self._list_sent_accelerations()}
        for name, speed in self._list_sent_accelerations():
            unit = _derive_acceleration_unit(draft.declaration_of_state[speed].unit)
            yield ExpressionOutput(
                name=name, unit=unit, expression=draft.acceleration_of_speed[speed], description=f"{speed}'"
            )
        for force in draft.sent_forces:
            if force.expression is not None:
                yield ExpressionOutput(name=force.sender_output, unit=force.unit, expression=force.expression)
                used_names.add(force.sender_output)
        yield from self._list_load_force_outputs()
        if draft.cut.kind == "joint" and draft.sent_forces:
            yield from self._list_reaction_outputs(selection, bodies)
        allowed_symbols = {
            *draft.own_states,
            *(draft.acceleration_of_speed[state] for state in draft.own_states if state in draft.acceleration_of_speed),
            *self._mechanism.p,
            self._mechanism.t,
        }
        allowed_symbols |= {
            *self._mechanism.r,
            *(calculated.symbol for calculated in self._mechanism.calculated_parameters),
        }
        allowed_symbols |= {force.symbol for force in draft.received_forces}
        omitted_names = []
        for output in self._mechanism.outputs:
            owner_state = draft.cut.output_states.get(output.name)
            if owner_state is not None:  # each side outputs its own force and velocity at the cut
                if owner_state in draft.own_states:
                    yield output
                continue
            is_computable = isinstance(output, ExpressionOutput) and output.expression.free_symbols <= allowed_symbols
            if isinstance(output, ExpressionOutput) and is_computable and output.name not in used_names:
                if output.expression.free_symbols & draft.own_states:
                    yield output
            else:
                omitted_names.append(output.name)
        self.omitted_outputs = tuple(omitted_names)

    def _list_sent_accelerations(self) -> list[tuple[str, sm.Symbol]]:
        """Return (name, speed) of own accelerations that other parts need as inputs."""
        receiving_parts = [part for part in self._drafts if part is not self._draft and not part.filters_motion]
        needed_speeds = {
            speed
            for part in receiving_parts
            for speed, level in part.needed_states.items()
            if level == ACCELERATION and speed in part.acceleration_of_speed
        }
        sent_speeds = sorted(needed_speeds & self._draft.own_states, key=self._mechanism.u.index)
        return [
            (_format_acceleration_name(self._draft.declaration_of_state[speed].name), speed) for speed in sent_speeds
        ]

    def _list_load_force_outputs(self) -> Iterator[OutputRecord]:
        """Yield an output for each load whose force other parts receive."""
        for force in self._draft.sent_forces:
            if force.expression is None and force.load_index >= 0:
                load_index = self._draft.loads.index(self._mechanism.loads[force.load_index])
                yield RequestedOutput(name=force.sender_output, unit=force.unit, kind="force", subject=(load_index,))

    def _list_reaction_outputs(self, selection: FramesAndPointsOfPart, bodies: int) -> Iterator[OutputRecord]:
        """Yield the force of the inner part on this one: on all its bodies together, about the joint's point."""
        point = selection.new_point_number(self._draft.cut.cut_indices[0])
        for kind, unit in (("reaction_force", "N"), ("reaction_torque", "N.m")):
            quantity = kind.removeprefix("reaction_")
            if any(force.unit == unit for force in self._draft.sent_forces):
                yield RequestedOutput(
                    name=f"{make_variable_identifier(self._draft.cut.name)}_{quantity}", unit=unit, kind=kind,  # type: ignore[arg-type]
                    subject=tuple(range(bodies)), relative_to=point, description="of the inner part on this one",
                )  # fmt: skip

    # --- terminals

    def terminal_names(self) -> dict[str, str]:
        """Return other part → name of the terminal with it."""
        return {self._drafts[part].name: name for part, name, _ in self._list_terminals()}

    def _list_terminals(self) -> Iterator[tuple[int, str, list[DeclaredTerminalMember]]]:
        """Yield (number of the other part, name, members) of each terminal."""
        draft = self._draft
        for other in self._drafts:
            if other is draft:
                continue
            members = [
                DeclaredTerminalMember(make_variable_identifier(name), name)
                for name in _list_exchanged_motion(draft, other)
            ]
            members += [
                DeclaredTerminalMember(make_variable_identifier(name), name)
                for name in _list_exchanged_motion(other, draft)
            ]
            members += [
                DeclaredTerminalMember(force.name, force.name, force.terminal_kinds[0])
                for force in draft.received_forces
                if force.sender == other.number
            ]
            members += [
                DeclaredTerminalMember(force.name, force.sender_output, force.terminal_kinds[1])
                for force in draft.sent_forces
                if force.receiver == other.number
            ]
            if members:
                first_number, second_number = sorted((draft.number, other.number))
                suffix = f"_{first_number + 1}{second_number + 1}" if len(self._drafts) > 2 else ""
                yield other.number, make_variable_identifier(draft.cut.name) + suffix, members

    # --- the mechanism

    def make_mechanism(self) -> Mechanism:
        """Return the part's mechanism."""
        draft, mechanism = self._draft, self._mechanism
        bodies = [*draft.bodies, *((draft.joint_socket,) if draft.joint_socket else ())]
        at_joint = draft.cut.kind == "joint"
        applications = [
            application for index in draft.constraint_rows for application in mechanism.force_applications[index]
        ]
        points = [application.point_or_frame for application in applications if not application.is_torque] + (
            [draft.cut.cut_indices[0]] if at_joint else []
        )
        frames = [application.point_or_frame for application in applications if application.is_torque] + [
            frame for application in applications for frame, _ in application.vector
        ]
        selection = FramesAndPointsOfPart(
            mechanism, bodies, draft.loads, points, frames + ([draft.cut.joint_frame] if at_joint else [])
        )
        outputs = tuple(self._list_outputs(selection, len(bodies)))
        loads = tuple(selection.renumber_load(load) for load in draft.loads)
        body_records = tuple(selection.renumber_body(body) for body in bodies)
        used_symbols = self._find_used_symbols(selection, loads, body_records, outputs)
        own_inputs = [
            pair for pair in zip(mechanism.r, mechanism.declared.inputs, strict=True) if pair[0] in used_symbols
        ]
        inputs = [*own_inputs, *self._inputs]
        own_states = zip(mechanism.z, mechanism.declared.auxiliary_states, mechanism.z_dot, strict=True)
        states = [row for row in own_states if row[0] in draft.own_states] + self._filter_states
        declared = self._select_declarations(used_symbols, inputs, states)
        speeds = draft.speed_indices
        all_parameters = (*mechanism.p, *(added.symbol for added in self._added_parameters))
        potential_forces = tuple(mechanism.potential_forces[j] for j in speeds) if mechanism.potential_forces else ()
        return replace(
            mechanism, declared=declared, q=tuple(q for q in mechanism.q if q in draft.own_states),
            u=tuple(mechanism.u[j] for j in speeds), u_dot=tuple(mechanism.u_dot[j] for j in speeds),
            z=tuple(symbol for symbol, _, _ in states), z_dot=tuple(derivative for _, _, derivative in states),
            p=tuple(p for p in all_parameters if p in used_symbols or p not in mechanism.p),
            r=tuple(symbol for symbol, _ in inputs),
            inputs_with_rates=(*mechanism.inputs_with_rates, *self._driven_rates),
            calculated_parameters=tuple(p for p in mechanism.calculated_parameters if p.symbol in used_symbols),
            u_independent=self._list_independent_speeds(), quaternions=self._select_quaternions(),
            dynamic={**mechanism.dynamic, **self._time_functions}, kinematics=self._select_kinematics(),
            frames=selection.renumbered_frames(), points=selection.renumbered_points(), bodies=body_records,
            loads=loads, joints=(), prescribed=mechanism.prescribed or bool(self._driven_rates),
            potential_forces=potential_forces, outputs=outputs, loop_closed_forms=(), given_potential=None,
            declared_potential=sm.S.Zero, known_potentials=(), appearance=None, flexible_bodies=(),
            **self._select_constraints(selection),
        )  # fmt: skip

    def _find_used_symbols(
        self, selection: FramesAndPointsOfPart, loads: Any, bodies: Any, outputs: Any
    ) -> set[sm.Symbol]:
        """Return all symbols of the part, with those that calculated parameters depend on."""
        mechanism, draft = self._mechanism, self._draft
        records: list[Any] = [
            self._select_kinematics(),
            selection.renumbered_frames(),
            selection.renumbered_points(),
            loads,
            bodies,
            outputs,
        ]
        records += [self._select_constraints(selection), [derivative for _, _, derivative in self._filter_states]]
        records += [
            derivative
            for auxiliary_state, derivative in zip(mechanism.z, mechanism.z_dot, strict=True)
            if auxiliary_state in draft.own_states
        ]
        records += (
            [mechanism.potential_forces[column] for column in draft.speed_indices] if mechanism.potential_forces else []
        )
        symbols = set(_collect_symbols(records))
        for assignment in reversed(mechanism.calculated_parameters):
            if assignment.symbol in symbols:
                symbols |= assignment.expression.free_symbols
        return symbols | ({mechanism.stabilization_rate} if mechanism.stabilization_rate else set())

    def _select_declarations(self, used_symbols: set[sm.Symbol], inputs: Any, states: Any) -> Any:
        """Return the declarations that belong to this part, with what its expressions use."""
        declared, mechanism, draft = self._mechanism.declared, self._mechanism, self._draft
        coordinates = tuple(
            coordinate
            for coordinate, symbol in zip(declared.coordinates, mechanism.q, strict=True)
            if symbol in draft.own_states
        )
        speeds = tuple(declared.speeds[column] for column in draft.speed_indices)
        input_symbols = {part_input.symbol for _, part_input in inputs}
        signals = {
            input_symbol: signal
            for input_symbol, signal in declared.experiment.signals.items()
            if input_symbol in input_symbols
        }
        return replace(
            declared,
            name=f"{declared.name}_{draft.name}",
            description=f"The part {draft.name} of {declared.name}, cut at {draft.cut.name}",
            parameters=(
                *(parameter for parameter in declared.parameters if parameter.symbol in used_symbols),
                *self._added_parameters,
            ),
            inputs=tuple(part_input for _, part_input in inputs),
            coordinates=coordinates,
            speeds=speeds,
            auxiliary_states=tuple(auxiliary_state for _, auxiliary_state, _ in states),
            experiment=replace(declared.experiment, signals=signals),
            source=None,
            diagram="",
            given={},
            terminals=tuple(DeclaredTerminal(name, tuple(members)) for _, name, members in self._list_terminals()),
            dependent=tuple(
                dependent_name
                for dependent_name in declared.dependent
                if dependent_name in {record.name for record in (*coordinates, *speeds)}
            )
            if draft.constraint_rows
            else (),
        )

    def _select_kinematics(self) -> KinematicEquations:
        """Return the rows of K and k0 of this part's coordinates, for its own speeds."""
        mechanism, draft = self._mechanism, self._draft
        rows = [row for row, coordinate in enumerate(mechanism.q) if coordinate in draft.own_states]
        matrix = (
            mechanism.kinematics.matrix.extract(rows, draft.speed_indices)
            if rows
            else sm.zeros(0, len(draft.speed_indices))
        )
        offset = mechanism.kinematics.offset.extract(rows, [0]) if rows else sm.zeros(0, 1)
        return KinematicEquations(sm.ImmutableMatrix(matrix), sm.ImmutableMatrix(offset))

    def _list_independent_speeds(self) -> tuple[int, ...]:
        """Return the part's independent speeds, by their place in the part."""
        draft = self._draft
        if not draft.constraint_rows:
            return tuple(range(len(draft.speed_indices)))
        return tuple(
            index for index, column in enumerate(draft.speed_indices) if column in self._mechanism.u_independent
        )

    def _select_quaternions(self) -> tuple[tuple[int, int, int, int], ...]:
        """Return the part's quaternions, by the places of their coordinates in the part."""
        mechanism, draft = self._mechanism, self._draft
        new_index = {
            coordinate: index
            for index, coordinate in enumerate(
                coordinate for coordinate in mechanism.q if coordinate in draft.own_states
            )
        }
        own_groups = [group for group in mechanism.quaternions if mechanism.q[group[0]] in draft.own_states]
        return tuple(
            (
                new_index[mechanism.q[first]],
                new_index[mechanism.q[second]],
                new_index[mechanism.q[third]],
                new_index[mechanism.q[fourth]],
            )
            for first, second, third, fourth in own_groups
        )

    def _select_constraints(self, selection: FramesAndPointsOfPart) -> dict[str, Any]:
        """Return the fields of the constraints that the part keeps."""
        mechanism, rows = self._mechanism, self._draft.constraint_rows
        constraints = mechanism.velocity_constraints
        own_states = self._draft.own_states
        invariants = tuple(
            row
            for row in mechanism.kinematic_invariants
            if own_states.issuperset(row[1].free_symbols & set(mechanism.q))
        )
        if constraints is None or not rows:
            return {
                "holonomic": (), "velocity_constraints": None, "multipliers": (),
                "force_applications": (), "redundant_constraints": (),
                "kinematic_invariants": invariants,
            }  # fmt: skip
        kept_constraints = VelocityConstraints(
            tuple(constraints.names[row_index] for row_index in rows),
            sm.ImmutableMatrix(constraints.jacobian.extract(rows, self._draft.speed_indices)),
            sm.ImmutableMatrix(constraints.offset.extract(rows, [0])),
            sm.ImmutableMatrix(constraints.bias.extract(rows, [0])),
        )
        return {
            "holonomic": tuple(
                mechanism.holonomic[row_index] for row_index in rows if row_index < len(mechanism.holonomic)
            ),
            "velocity_constraints": kept_constraints,
            "kinematic_invariants": invariants,
            "multipliers": tuple(mechanism.multipliers[row_index] for row_index in rows),
            "force_applications": tuple(
                tuple(map(selection.renumber_application, mechanism.force_applications[row_index]))
                for row_index in rows
            ),
        }


def _list_exchanged_motion(sender: MechanismPartDraft, receiver: MechanismPartDraft) -> Iterator[str]:
    """Yield the names of the sender's variables that the receiver needs."""
    for state, level in receiver.needed_states.items():
        if state not in sender.own_states:
            continue
        name = receiver.declaration_of_state[state].name
        yield name
        if level == ACCELERATION and state in receiver.acceleration_of_speed and not receiver.filters_motion:
            yield _format_acceleration_name(name)


def _collect_symbols(record: Any) -> Iterator[sm.Symbol]:
    """Yield all symbols in nested records."""
    if isinstance(record, sm.Basic | sm.MatrixBase):
        yield from record.free_symbols
    elif isinstance(record, dict):
        for part in record.values():
            yield from _collect_symbols(part)
    elif isinstance(record, tuple | list):
        for part in record:
            yield from _collect_symbols(part)
    elif hasattr(record, "__dataclass_fields__"):
        for part in fields(record):
            yield from _collect_symbols(getattr(record, part.name))
