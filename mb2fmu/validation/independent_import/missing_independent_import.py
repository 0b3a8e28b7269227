"""Why a robot's FMU has no independent import to be compared with, or no accelerations of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

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
    is_repaired = robot.settings.inertia == "repair" and any("repaired" in note for note in robot.notes)
    applies_by_reason = {
        "joints have hard stops, of whose stiffness the file says nothing": robot.joints_with_stops,
        "a contact or a latch is closed at the start, of which the file says nothing": _starts_closed(definition),
        "inertias were repaired: the FMU is not what the file says": is_repaired,
    }
    return next((reason for reason, applies in applies_by_reason.items() if applies), "")


def _starts_closed(definition: CheckedModel) -> bool:
    """Return whether a contact rests at the start, or a latch is closed."""
    closed = {contact.resting for contact in definition.contacts} | {latch.engaged for latch in definition.latches}
    return any(state.start for state in definition.auxiliary_states if state.symbol in closed)
