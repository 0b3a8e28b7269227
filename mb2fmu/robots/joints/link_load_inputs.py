"""Forces and torques on links whose components are inputs: what the settings request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import sympy as sm
from sympy.physics.vector import dynamicsymbols

from mb2fmu.model.quantity_declarations import Input
from mb2fmu.model.sources.record_based_mechanics import NamedFramePoint
from mb2fmu.model.variable_naming import suggest_identifier
from mb2fmu.robots.description.robot_description import Array
from mb2fmu.robots.joints.inverse_dynamics_setup import choose_excitation_frequency
from mb2fmu.robots.robot_settings import LoadWord, RobotLoadSetting
from mb2fmu.robots.tree.robot_inertia_and_stability import compute_part_poses_and_twists
from mb2fmu.robots.tree.robot_mechanics_records import RobotMechanics

_ZERO_TOLERANCE = 1e-9
_LOAD_UNITS: dict[LoadWord, str] = {"force": "N", "torque": "N.m"}


def declare_load_inputs(
    loads: Sequence[RobotLoadSetting], links: Sequence[str], notes: list[str]
) -> tuple[tuple[str, ...], tuple[Input, ...]]:
    """Return the name of each load in the FMU, and its components as inputs: force before torque.

    Args:
        loads: Of the settings.
        links: Names of the robot's.
        notes: Take a sentence on each name that the FMU cannot have.
    """
    names: list[str] = []
    inputs = []
    for load in loads:
        wanted = load.name or load.frame
        first = suggest_identifier(wanted, "load")
        tries = (first, *(f"{first}_{k}" for k in range(2, len(loads) + 2)))
        names.append(next(name for name in tries if name not in names))
        if names[-1] != wanted:
            notes.append(f"the load {wanted!r} is called {names[-1]} in the FMU")
        for word in load.of:
            at = f"link {load.frame}"
            if word == "force" and any(load.offset):
                at = f"the point at {', '.join(f'{x:g}' for x in load.offset)} m of {at}"
            along = f"along the axes of link {load.axes}" if load.axes in links else "in the inertial frame"
            for axis in "xyz":
                text = f"{axis} component of the {word} on {at}, {along}"
                name = f"{names[-1]}.{word}.{axis}"
                symbol = dynamicsymbols(f"{word}_{axis}_{names[-1]}")
                inputs.append(Input(symbol=symbol, name=name, unit=_LOAD_UNITS[word], description=text))
    return tuple(names), tuple(inputs)


def add_requested_link_loads(mechanics: RobotMechanics, inputs: Sequence[Input]) -> None:
    """Add the loads of the settings, whose components are the inputs, in their order."""
    symbols, source = iter([item.symbol for item in inputs]), mechanics.description.source
    for load in mechanics.settings.loads:
        for word in load.of:
            x, y, z = next(symbols), next(symbols), next(symbols)
            if word == "force":
                mechanics.add_force(load.frame, (x, y, z), offset=load.offset, axes=load.axes)
            else:
                mechanics.add_torque(load.frame, (x, y, z), axes=load.axes)
            mechanics.loads[-1] = replace(mechanics.loads[-1], where=source.name if source else "")


def make_link_load_signals(
    mechanics: RobotMechanics,
    inputs: Sequence[Input],
    positions: Mapping[int, float],
    M: Array,
    size: float,
    first: int,
) -> dict[sm.Expr, sm.Expr]:
    """Return the signal of each input: it swings, so that the largest acceleration has a given size.

    Args:
        mechanics: Has the loads of the settings first.
        inputs: Of these, in their order.
        positions: Number of a part → position of its joint at the start, rad or m.
        M: Mass matrix there, along all directions.
        size: Of the accelerations, rad/s² or m/s².
        first: Number of excitations before these.
    """
    t = dynamicsymbols._t  # noqa: SLF001 - SymPy has no public name for it
    poses, columns = compute_part_poses_and_twists(mechanics.tree, positions)
    signals: dict[sm.Expr, sm.Expr] = {}
    for k, item in enumerate(inputs):
        load = mechanics.loads[k // 3]
        part, pose = mechanics.tree.location_of_link[load.frame]
        axes = np.eye(3)
        if load.axes != mechanics.ground:
            other, turned = mechanics.tree.location_of_link[load.axes]
            axes = poses[other].rotation @ turned.rotation
        forces = np.zeros(len(M))
        for j, column in columns[part].items():
            moved: Array = column[:3]
            if isinstance(load.at, NamedFramePoint):
                at = poses[part] @ pose
                place = at.position + at.rotation @ np.array(load.at.offset)
                moved = column[3:] + np.cross(column[:3], place)
            forces[j] = moved @ axes[:, k % 3]
        most = np.max(np.abs(np.linalg.solve(M, forces)), initial=0.0) if len(M) else 0.0
        # along a direction in which nothing moves a force of 1 N or 1 N·m does no harm
        swing = float(f"{size / most:.6g}") if most > _ZERO_TOLERANCE * np.linalg.norm(forces) else size
        signals[item.symbol] = swing * sm.sin(choose_excitation_frequency(first + k) * t)
    return signals
