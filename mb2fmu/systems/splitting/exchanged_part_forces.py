"""``list_exchanged_forces``: forces that one part of a cut mechanism computes and another receives."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import sympy as sm

from mb2fmu.mechanics.mechanism.numeric.numeric_mechanism_evaluation import MechanismEvaluator
from mb2fmu.mechanics.mechanism.records.mechanism_records import (
    ForceLoad,
    Load,
    Mechanism,
    PathwayLoad,
    TorqueActuatorLoad,
    TorqueLoad,
    VectorTerms,
)
from mb2fmu.model.declarations.declared_terminals import ConnectionKind
from mb2fmu.systems.splitting.body_motion_states import list_frames_turned_by_load, list_load_points

if TYPE_CHECKING:
    from mb2fmu.systems.splitting.mechanism_cut_records import MechanismCut

AXES = "xyz"
_SAMPLE_COUNT = 3


@dataclass(frozen=True, slots=True)
class ExchangedForce:
    """One scalar force or torque between two parts.

    Attributes:
        name: Name of the receiver's input.
        symbol: Symbol of that input in the receiver's records.
        unit: Unit of measure, N or N.m.
        receiver: Number of the part that it acts on.
        sender: Number of the part that computes it.
        sender_output: Name of the sender's output.
        expression: Expression of the sender's output; None: the output is a requested quantity.
        load_index: Number of the load in the whole mechanism whose magnitude it is; -1: a reaction.
        terminal_kinds: Kinds of the terminal members of the receiver and of the sender.
        start: Start value of the receiver's input.
    """

    name: str
    symbol: sm.Symbol
    unit: str
    receiver: int
    sender: int
    sender_output: str
    expression: sm.Expr | None = None
    load_index: int = -1
    terminal_kinds: tuple[ConnectionKind, ConnectionKind] = ("inflow", "outflow")
    start: float = 0.0


def make_variable_identifier(name: str) -> str:
    """Return letters, digits and _ of a name."""
    return re.sub(r"\W+", "_", name).strip("_") or "cut"


def list_exchanged_forces(cut: MechanismCut) -> tuple[ExchangedForce, ...]:
    """Return the exchanged forces of all cuts, in order."""
    if cut.kind == "joint":
        return tuple(_list_joint_wrench(cut))
    if cut.method == "line":
        part_of_state = cut.part_of_state
        return tuple(
            ExchangedForce(
                wave.name,
                wave.symbol,
                wave.unit,
                part_of_state[wave.receiver_state],
                part_of_state[wave.sender_state],
                wave.name,
                wave.expression,
                terminal_kinds=("signal", "signal"),
                start=wave.start,
            )
            for wave in cut.line_waves
        )
    if cut.method != "force":
        return ()
    return tuple(force for load_index in cut.cut_indices for force in _list_load_magnitudes(cut, load_index))


def find_mechanism_parts_under_load(cut: MechanismCut, load: Load) -> frozenset[int]:
    """Return the numbers of the parts whose bodies a load acts on."""
    dependencies = cut.dependencies
    if cut.kind == "joint":
        joint_point = cut.cut_indices[0]
        parts = {int(_is_beyond_joint(cut, joint_point, index)) for index in list_load_points(load)}
        return frozenset(
            parts
            | {
                int(bool(cut.parts_of_states(dependencies.frame_states[index]) & {1}))
                for index in list_frames_turned_by_load(load)
            }
        )
    state_sets = [dependencies.point_states[index] for index in list_load_points(load)] + [
        dependencies.frame_states[index] for index in list_frames_turned_by_load(load)
    ]
    return frozenset(part for states in state_sets for part in cut.parts_of_states(states))


def _is_beyond_joint(cut: MechanismCut, joint_point: int, point: int) -> bool:
    """Return whether a point is located relative to the cut's point, or depends on outer states."""
    ancestors = list(cut.dependencies.ancestors(point))[1:]
    return joint_point in ancestors or 1 in cut.parts_of_states(cut.dependencies.point_states[point])


def _list_load_magnitudes(cut: MechanismCut, load_index: int) -> Iterator[ExchangedForce]:
    """Yield the scalars of one load that the first of its parts receives from the last."""
    load = cut.mechanism.loads[load_index]
    involved_parts = find_mechanism_parts_under_load(cut, load) | cut.parts_of_states(
        cut.dependencies.magnitude_states(load)
    )
    receiver, sender = min(involved_parts), max(involved_parts)
    if receiver == sender or receiver not in find_mechanism_parts_under_load(cut, load):
        return
    identifier = make_variable_identifier(load.name)

    def make_force(name: str, unit: str, expression: sm.Expr | None) -> ExchangedForce:
        return ExchangedForce(name, sm.Symbol(name), unit, receiver, sender, name, expression, load_index)

    match load:
        case PathwayLoad():
            yield make_force(f"{identifier}_tension", "N", None)
        case TorqueActuatorLoad():
            yield make_force(f"{identifier}_torque", "N.m", load.torque)
        case ForceLoad():
            yield from (
                make_force(f"{identifier}_{axis}", "N", component)
                for axis, component in _list_nonzero_components(load.force)
            )
        case TorqueLoad():
            yield from (
                make_force(f"{identifier}_{axis}", "N.m", component)
                for axis, component in _list_nonzero_components(load.torque)
            )


def _list_nonzero_components(vector_terms: VectorTerms) -> Iterator[tuple[str, sm.Expr]]:
    """Yield the non-zero (axis, component) pairs; axes of further frames have numbers."""
    for term_index, (_, components) in enumerate(vector_terms):
        for axis, component in zip(AXES, components, strict=True):
            if component != 0:
                yield f"{axis}{term_index or ''}", component


def _list_joint_wrench(cut: MechanismCut) -> Iterator[ExchangedForce]:
    """Yield the force of the outer part on the inner one at the joint, along axes in which the inner one can move."""
    identifier, free_axes = (
        make_variable_identifier(cut.name),
        find_axes_of_point_and_frame_motion(cut.mechanism, cut.cut_indices[0], cut.joint_frame),
    )
    for quantity, letter, unit, axes in zip(("force", "torque"), "fm", ("N", "N.m"), free_axes, strict=True):
        for axis, is_free in zip(AXES, axes, strict=True):
            if is_free:
                name = f"{identifier}_{letter}{axis}"
                symbol, output = sm.Symbol(name), f"{identifier}_{quantity}.{axis}"
                yield ExchangedForce(name, symbol, unit, 0, 1, output, terminal_kinds=("inflow", "inflow"))


def find_axes_of_point_and_frame_motion(mechanism: Mechanism, point: int, frame: int) -> tuple[list[bool], list[bool]]:
    """Find the axes of N along which a point moves, and about which a frame turns."""
    numeric = MechanismEvaluator(mechanism)
    random = np.random.default_rng(0)
    translation, rotation = np.zeros(3), np.zeros(3)
    for _ in range(_SAMPLE_COUNT):
        parameters = numeric.parameters(random.uniform(0.5, 1.5, len(mechanism.p)))
        coordinates, speeds, auxiliary_states, inputs = (
            random.uniform(0.2, 1.2, len(symbols))
            for symbols in (mechanism.q, mechanism.u_all, mechanism.z, mechanism.r)
        )
        numeric.set_state(0.3, coordinates, speeds, auxiliary_states, inputs, parameters)
        translation += np.abs(numeric.points[point].partials).sum(axis=1)
        rotation += np.abs(numeric.frames[frame].partials).sum(axis=1)
    return [bool(sum_of_partials > 1e-12) for sum_of_partials in translation], [
        bool(sum_of_partials > 1e-12) for sum_of_partials in rotation
    ]


def replace_magnitude_by_input(load: Load, symbols: dict[sm.Expr, sm.Symbol]) -> Load:
    """Return the load with its magnitude from inputs: expression → input, in the order of exchange."""
    from dataclasses import replace

    def substitute(terms: VectorTerms) -> VectorTerms:
        return tuple(
            (frame, tuple(symbols.get(component, component) for component in components)) for frame, components in terms
        )

    match load:
        case ForceLoad():
            return replace(load, force=substitute(load.force))
        case TorqueLoad():
            return replace(load, torque=substitute(load.torque))
        case PathwayLoad():
            return replace(load, force=next(iter(symbols.values())), potential=None)
    return replace(load, torque=next(iter(symbols.values())))
