"""Why a robot's FMU has no independent import to be compared with, or no accelerations of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import sympy as sm

from mb2fmu.model.checked_model import CheckedModel
from mb2fmu.robots import MJCF
from mb2fmu.validation.independent_import.mujoco_equations import is_mujoco_installed

if TYPE_CHECKING:
    from mb2fmu.robots import RobotMechanics


def explain_missing_independent_import(robot: RobotMechanics) -> str:
    """Return why a model has no independent import; empty if it has one."""
    applies_by_reason = {
        f"the independent import of {robot.kind} is MuJoCo's, which is not installed: pip install mujoco": (
            robot.kind == MJCF and not is_mujoco_installed()
        ),
        "MuJoCo has no links that bend as these do": robot.kind == MJCF and robot.flexible,
    }
    return next((reason for reason, applies in applies_by_reason.items() if applies), "")


def explain_missing_independent_accelerations(definition: CheckedModel, robot: RobotMechanics) -> str:
    """Return why the independent import has no x' of a model; empty if it has."""
    states = {state.symbol for state in definition.auxiliary_states} - _list_open_contact_states(definition)
    is_repaired = robot.settings.inertia == "repair" and any("repaired" in note for note in robot.notes)
    applies_by_reason = {
        "joints have hard stops, of whose stiffness the file says nothing": robot.joints_with_stops,
        "states were added to what the file says": states,
        "inertias were repaired: the FMU is not what the file says": is_repaired,
    }
    return next((reason for reason, applies in applies_by_reason.items() if applies), "")


def _list_open_contact_states(definition: CheckedModel) -> set[sm.Expr]:
    """Return the states of contacts and latches, without effect while these are open; none where one starts closed."""
    states: set[sm.Expr] = set()
    for contact in definition.contacts:
        states |= {contact.resting, contact.impulse, contact.count}
        if contact.friction:
            states |= {contact.friction.sliding, contact.friction.impulse, contact.friction.changes or contact.count}
    for latch in definition.latches:
        states |= {latch.engaged, latch.changes}
        states |= {symbol for row in latch.rows for symbol in (row.impulse, row.held_at)}
    closed = {contact.resting for contact in definition.contacts} | {latch.engaged for latch in definition.latches}
    starts_closed = any(state.start for state in definition.auxiliary_states if state.symbol in closed)
    return set() if starts_closed else states
