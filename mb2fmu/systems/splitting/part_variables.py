"""``PartVariables``: inputs, outputs, states, parameters and terminals of one part, and its mechanism."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields, replace
from typing import Any

import sympy as sm

from mb2fmu.mechanics.equations.equations_of_motion import KinematicEquations, VelocityConstraints
from mb2fmu.mechanics.mechanism.records.mechanism_records import Mechanism
from mb2fmu.mechanics.mechanism.records.requested_quantities import ExpressionOutput, OutputRecord, RequestedOutput
from mb2fmu.model.declarations.declared_terminals import DeclaredTerminal, DeclaredTerminalMember
from mb2fmu.model.quantity_declarations import AuxiliaryState, Input, Parameter
from mb2fmu.systems.splitting.exchanged_forces import make_identifier
from mb2fmu.systems.splitting.part_draft import ACCELERATION, VALUE, PartDraft
from mb2fmu.systems.splitting.record_selection import RecordSelection

Pair = tuple[sm.Symbol, sm.Symbol]


def acceleration_name(speed: str) -> str:
    """Return the name of the variable that is u'."""
    return f"{speed}_dot"


def acceleration_unit(unit: str) -> str:
    """Return the FMU of u' from that of u: m/s → m/s2."""
    return f"{unit}2" if unit.endswith("/s") else f"{unit}/s" if unit != "1" else "1/s"


class PartVariables:
    """The variables of one part.

    Args:
        draft: The part.
        drafts: All parts.
    """

    def __init__(self, draft: PartDraft, drafts: Sequence[PartDraft]) -> None:
        self._draft, self._drafts = draft, drafts
        self._m = draft.m
        self.left_out: tuple[str, ...] = ()
        self._dynamic: dict[sm.Symbol, sm.Expr] = {}
        self._inputs: list[tuple[sm.Symbol, Input]] = []
        self._driven: list[Pair] = []
        self._states: list[tuple[sm.Symbol, AuxiliaryState, sm.Expr]] = []
        self._added: list[Parameter] = []
        self._take_motion()
        self._take_forces()
        self._take_bushing()

    # --- taken

    def _time(self, symbol: sm.Symbol) -> sm.Expr:
        """Return a function of time for a symbol."""
        made = self._m.dynamic.get(symbol) or sm.Function(symbol.name)(self._m.t)
        self._dynamic[symbol] = made
        return made

    def _input(self, symbol: sm.Symbol, name: str, unit: str, start: float, description: str) -> None:
        """Add an input for a symbol that another part defines."""
        made = Input(name=name, symbol=self._time(symbol), unit=unit, start=start, description=description)
        self._inputs.append((symbol, made))

    def _take_motion(self) -> None:
        """Take motion of others as inputs, perhaps followed by a third-order filter without overshoot of its poles."""
        draft = self._draft
        followed = draft.follows
        starts = draft.settings.accelerations
        for state, level in draft.wanted.items():
            record = draft.record[state]
            whose = f"of {draft.cut.names[draft.cut.owners[state]]}"
            symbol = sm.Symbol(f"{state.name}_given") if followed and level == ACCELERATION else state
            self._input(symbol, record.name, record.unit, record.start, whose)
            if state in draft.rate and level > VALUE:
                self._driven.append((state, draft.rate[state]))
            if level < ACCELERATION or state not in draft.dot:
                continue
            dot, name = draft.dot[state], acceleration_name(record.name)
            self._driven.append((state, dot))
            start = float(starts.get(state.name, 0.0))
            unit = acceleration_unit(record.unit)
            if not followed:
                self._input(dot, name, unit, start, whose)
                continue
        if followed:
            self._follow()
        self._differentiate()

    def _differentiate(self) -> None:
        """Replace rates of driven symbols by derivatives, for methods that differentiate functions of time."""
        positions_first = sorted(self._driven, key=lambda pair: pair[0] not in self._draft.rate)
        for symbol, rate in positions_first:
            self._dynamic[rate] = sm.Derivative(self._dynamic[symbol], self._m.t)
        self._inputs = [(s, replace(item, symbol=self._dynamic[s])) for s, item in self._inputs]
        self._states = [(s, replace(item, symbol=self._dynamic[s]), rate) for s, item, rate in self._states]

    def _follow(self) -> None:
        """Add a filter per coordinate: q' = u, u' = a, a' = w³ Δq + 3 w² Δu - 3 w a, with Δ = given - own."""
        draft, w = self._draft, sm.Symbol("bandwidth")
        self._added.append(
            Parameter(
                name="bandwidth", symbol=w, unit="rad/s", value=draft.settings.bandwidth, minimum=1e-9,
                description="of the filter that the motion at the cut passes through",
            )
        )  # fmt: skip
        for q in [q for q, level in draft.wanted.items() if q in draft.rate and level == ACCELERATION]:
            u = draft.rate[q]
            a = draft.dot[u]
            given_q, given_u = sm.Symbol(f"{q.name}_given"), sm.Symbol(f"{u.name}_given")
            jerk = w**3 * (given_q - q) + 3 * w**2 * (given_u - u) - 3 * w * a
            start = float(draft.settings.accelerations.get(u.name, 0.0))
            of_q, of_u = draft.record[q], draft.record[u]
            for symbol, rate, unit, value, name in (
                (q, u, of_q.unit, of_q.start, f"{of_q.name}_followed"),
                (u, a, of_u.unit, of_u.start, f"{of_u.name}_followed"),
                (a, jerk, acceleration_unit(of_u.unit), start, f"{acceleration_name(of_u.name)}_followed"),
            ):
                made = AuxiliaryState(name=name, symbol=self._time(symbol), unit=unit, start=value, derivative=rate,
                                      description="followed through the filter")  # fmt: skip
                self._states.append((symbol, made, rate))

    def _take_forces(self) -> None:
        """Add an input for each force that another part gives."""
        for force in self._draft.takes:
            whose = f"by {self._draft.cut.names[force.giver]}"
            self._input(force.symbol, force.name, force.unit, force.start, whose)

    def _take_bushing(self) -> None:
        """Add stiffness (N/m) and damping (N·s/m) if a constraint is replaced by a bushing."""
        if not self._draft.bushings:
            return
        settings = self._draft.settings
        self._added += [
            Parameter(name="bushing_stiffness", symbol=sm.Symbol("bushing_stiffness"), value=settings.stiffness,
                      unit="N/m", description="force per violation of the constraint"),
            Parameter(name="bushing_damping", symbol=sm.Symbol("bushing_damping"), value=settings.damping,
                      unit="N.s/m", description="force per rate of the violation"),
        ]  # fmt: skip

    # --- given

    def _outputs(self, selection: RecordSelection, bodies: int) -> Iterator[OutputRecord]:
        """Yield outputs that other parts need, and those outputs of the whole that this part alone can compute."""
        draft = self._draft
        taken = {name for name, _ in self._wanted_accelerations()}
        for name, speed in self._wanted_accelerations():
            unit = acceleration_unit(draft.record[speed].unit)
            yield ExpressionOutput(name=name, unit=unit, expression=draft.dot[speed], description=f"{speed}'")
        for force in draft.gives:
            if force.expression is not None:
                yield ExpressionOutput(name=force.output, unit=force.unit, expression=force.expression)
                taken.add(force.output)
        yield from self._asked_forces()
        if draft.cut.kind == "joint" and draft.gives:
            yield from self._reactions(selection, bodies)
        allowed = {*draft.own, *(draft.dot[s] for s in draft.own if s in draft.dot), *self._m.p, self._m.t}
        allowed |= {*self._m.r, *(a.symbol for a in self._m.calculated_parameters)}
        allowed |= {force.symbol for force in draft.takes}
        left_out = []
        for item in self._m.outputs:
            told = draft.cut.told.get(item.name)
            if told is not None:  # of a cut's own force and velocity each side tells its own
                if told in draft.own:
                    yield item
                continue
            fits = isinstance(item, ExpressionOutput) and item.expression.free_symbols <= allowed
            if isinstance(item, ExpressionOutput) and fits and item.name not in taken:
                if item.expression.free_symbols & draft.own:
                    yield item
            else:
                left_out.append(item.name)
        self.left_out = tuple(left_out)

    def _wanted_accelerations(self) -> list[tuple[str, sm.Symbol]]:
        """Return (name, speed) of own accelerations that others take as inputs."""
        others = [d for d in self._drafts if d is not self._draft and not d.follows]
        wanted = {s for d in others for s, level in d.wanted.items() if level == ACCELERATION and s in d.dot}
        own = sorted(wanted & self._draft.own, key=self._m.u.index)
        return [(acceleration_name(self._draft.record[s].name), s) for s in own]

    def _asked_forces(self) -> Iterator[OutputRecord]:
        """Yield an output for each load whose force other parts take."""
        for force in self._draft.gives:
            if force.expression is None and force.load >= 0:
                place = self._draft.loads.index(self._m.loads[force.load])
                yield RequestedOutput(name=force.output, unit=force.unit, kind="force", subject=(place,))

    def _reactions(self, selection: RecordSelection, bodies: int) -> Iterator[OutputRecord]:
        """Yield the force of the inner part on this one: on all its bodies together, about the joint's point."""
        point = selection.point(self._draft.cut.numbers[0])
        for kind, unit in (("reaction_force", "N"), ("reaction_torque", "N.m")):
            word = kind.removeprefix("reaction_")
            if any(force.unit == unit for force in self._draft.gives):
                yield RequestedOutput(
                    name=f"{make_identifier(self._draft.cut.name)}_{word}", unit=unit, kind=kind,  # type: ignore[arg-type]
                    subject=tuple(range(bodies)), relative_to=point, description="of the inner part on this one",
                )  # fmt: skip

    # --- terminals

    def terminal_names(self) -> dict[str, str]:
        """Return other part → name of the terminal with it."""
        return {self._drafts[k].name: name for k, name, _ in self._members()}

    def _members(self) -> Iterator[tuple[int, str, list[DeclaredTerminalMember]]]:
        """Yield (number of the other part, name, members) of each terminal."""
        draft = self._draft
        for other in self._drafts:
            if other is draft:
                continue
            made = [DeclaredTerminalMember(make_identifier(name), name) for name in _motion(draft, other)]
            made += [DeclaredTerminalMember(make_identifier(name), name) for name in _motion(other, draft)]
            made += [DeclaredTerminalMember(f.name, f.name, f.kinds[0]) for f in draft.takes if f.giver == other.number]
            made += [
                DeclaredTerminalMember(f.name, f.output, f.kinds[1]) for f in draft.gives if f.taker == other.number
            ]
            if made:
                first, second = sorted((draft.number, other.number))
                several = f"_{first + 1}{second + 1}" if len(self._drafts) > 2 else ""
                yield other.number, make_identifier(draft.cut.name) + several, made

    # --- the mechanism

    def mechanism(self) -> Mechanism:
        """Return the part's mechanism."""
        draft, m = self._draft, self._m
        bodies = [*draft.bodies, *((draft.socket,) if draft.socket else ())]
        at_joint = draft.cut.kind == "joint"
        acts = [act for k in draft.rows for act in m.acts[k]]
        points = [act.at for act in acts if not act.torque] + ([draft.cut.numbers[0]] if at_joint else [])
        frames = [act.at for act in acts if act.torque] + [k for act in acts for k, _ in act.vector]
        selection = RecordSelection(m, bodies, draft.loads, points, frames + ([draft.cut.frame] if at_joint else []))
        outputs = tuple(self._outputs(selection, len(bodies)))
        loads = tuple(selection.load(load) for load in draft.loads)
        body_records = tuple(selection.body(body) for body in bodies)
        used = self._used(selection, loads, body_records, outputs)
        own_r = [(s, i) for s, i in zip(m.r, m.declared.inputs, strict=True) if s in used]
        inputs = [*own_r, *self._inputs]
        states = [(s, z, dot) for s, z, dot in zip(m.z, m.declared.auxiliary_states, m.z_dot, strict=True)
                  if s in draft.own] + self._states  # fmt: skip
        calculated = tuple(a for a in m.calculated_parameters if a.symbol in used)
        declared = self._declared(used, inputs, states)
        speeds = draft.speeds
        return replace(
            m, declared=declared, q=tuple(q for q in m.q if q in draft.own), u=tuple(m.u[j] for j in speeds),
            u_dot=tuple(m.u_dot[j] for j in speeds), z=tuple(s for s, _, _ in states),
            z_dot=tuple(d for _, _, d in states),
            p=tuple(p for p in (*m.p, *(a.symbol for a in self._added)) if p in used or p not in m.p),
            r=tuple(s for s, _ in inputs), driven=(*m.driven, *self._driven), calculated_parameters=calculated,
            u_independent=self._independent(), quaternions=self._quaternions(), dynamic={**m.dynamic, **self._dynamic},
            kinematics=self._kinematics(), frames=selection.frames(), points=selection.points(), bodies=body_records,
            loads=loads, joints=(), prescribed=m.prescribed or bool(self._driven),
            potential_forces=tuple(m.potential_forces[j] for j in speeds) if m.potential_forces else (),
            outputs=outputs, loops=(), given_potential=None, declared_potential=sm.S.Zero, known_potentials=(),
            scenery=None,
            **self._constraints(selection),
        )  # fmt: skip

    def _used(self, selection: RecordSelection, loads: Any, bodies: Any, outputs: Any) -> set[sm.Symbol]:
        """Return all symbols of the part, with those that calculated parameters depend on."""
        m, draft = self._m, self._draft
        parts: list[Any] = [self._kinematics(), selection.frames(), selection.points(), loads, bodies, outputs]
        parts += [self._constraints(selection), [d for _, _, d in self._states]]
        parts += [dot for z, dot in zip(m.z, m.z_dot, strict=True) if z in draft.own]
        parts += [m.potential_forces[j] for j in draft.speeds] if m.potential_forces else []
        used = set(_symbols(parts))
        for assignment in reversed(m.calculated_parameters):
            if assignment.symbol in used:
                used |= assignment.expression.free_symbols
        return used | ({m.stabilization_rate} if m.stabilization_rate else set())

    def _declared(self, used: set[sm.Symbol], inputs: Any, states: Any) -> Any:
        """Return the declarations that belong to this part, with what its expressions use."""
        d, m, draft = self._m.declared, self._m, self._draft
        coordinates = tuple(c for c, q in zip(d.coordinates, m.q, strict=True) if q in draft.own)
        speeds = tuple(d.speeds[j] for j in draft.speeds)
        own_inputs = {i.symbol for _, i in inputs}
        signals = {s: v for s, v in d.experiment.signals.items() if s in own_inputs}
        return replace(
            d, name=f"{d.name}_{draft.name}", description=f"The part {draft.name} of {d.name}, cut at {draft.cut.name}",
            parameters=(*(p for p in d.parameters if p.symbol in used), *self._added),
            inputs=tuple(i for _, i in inputs), coordinates=coordinates, speeds=speeds,
            auxiliary_states=tuple(z for _, z, _ in states), experiment=replace(d.experiment, signals=signals),
            source=None, diagram="", given={},
            terminals=tuple(DeclaredTerminal(name, tuple(members)) for _, name, members in self._members()),
            dependent=tuple(n for n in d.dependent if n in {r.name for r in (*coordinates, *speeds)})
            if draft.rows else (),
        )  # fmt: skip

    def _kinematics(self) -> KinematicEquations:
        """Return the rows of K and k0 of this part's coordinates, for its own speeds."""
        m, draft = self._m, self._draft
        rows = [i for i, q in enumerate(m.q) if q in draft.own]
        matrix = m.kinematics.matrix.extract(rows, draft.speeds) if rows else sm.zeros(0, len(draft.speeds))
        offset = m.kinematics.offset.extract(rows, [0]) if rows else sm.zeros(0, 1)
        projection = m.kinematics.projection
        return KinematicEquations(
            sm.ImmutableMatrix(matrix),
            sm.ImmutableMatrix(offset),
            None if projection is None else tuple(projection[i] for i in rows),
        )

    def _independent(self) -> tuple[int, ...]:
        """Return the part's independent speeds, by their place in the part."""
        draft = self._draft
        if not draft.rows:
            return tuple(range(len(draft.speeds)))
        return tuple(k for k, j in enumerate(draft.speeds) if j in self._m.u_independent)

    def _quaternions(self) -> tuple[tuple[int, int, int, int], ...]:
        """Return the part's quaternions, by the places of their coordinates in the part."""
        m, draft = self._m, self._draft
        place = {q: k for k, q in enumerate(q for q in m.q if q in draft.own)}
        own = [group for group in m.quaternions if m.q[group[0]] in draft.own]
        return tuple((place[m.q[a]], place[m.q[b]], place[m.q[c]], place[m.q[d]]) for a, b, c, d in own)

    def _constraints(self, selection: RecordSelection) -> dict[str, Any]:
        """Return the fields of the constraints that the part keeps."""
        m, rows = self._m, self._draft.rows
        whole = m.velocity_constraints
        own = self._draft.own
        invariants = tuple(row for row in m.kinematic_invariants if own.issuperset(row[1].free_symbols & set(m.q)))
        if whole is None or not rows:
            return {
                "holonomic": (), "velocity_constraints": None, "multipliers": (), "acts": (), "redundant": (),
                "kinematic_invariants": invariants,
            }  # fmt: skip
        chosen = VelocityConstraints(
            tuple(whole.names[k] for k in rows),
            sm.ImmutableMatrix(whole.jacobian.extract(rows, self._draft.speeds)),
            sm.ImmutableMatrix(whole.offset.extract(rows, [0])),
            sm.ImmutableMatrix(whole.bias.extract(rows, [0])),
        )
        return {
            "holonomic": tuple(m.holonomic[k] for k in rows if k < len(m.holonomic)),
            "velocity_constraints": chosen,
            "kinematic_invariants": invariants,
            "multipliers": tuple(m.multipliers[k] for k in rows),
            "acts": tuple(tuple(map(selection.application, m.acts[k])) for k in rows),
        }


def _motion(giver: PartDraft, taker: PartDraft) -> Iterator[str]:
    """Yield the names of the giver's variables that the taker takes."""
    for state, level in taker.wanted.items():
        if state not in giver.own:
            continue
        name = taker.record[state].name
        yield name
        if level == ACCELERATION and state in taker.dot and not taker.follows:
            yield acceleration_name(name)


def _symbols(item: Any) -> Iterator[sm.Symbol]:
    """Yield all symbols in nested records."""
    if isinstance(item, sm.Basic | sm.MatrixBase):
        yield from item.free_symbols
    elif isinstance(item, dict):
        for each in item.values():
            yield from _symbols(each)
    elif isinstance(item, tuple | list):
        for each in item:
            yield from _symbols(each)
    elif hasattr(item, "__dataclass_fields__"):
        for each in fields(item):
            yield from _symbols(getattr(item, each.name))
