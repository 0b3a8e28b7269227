"""Switching: turn a program's switches into modes that are constant between events.

Input: a lowered program: entry ``switches`` names what jumps or has a kink, ``conditions`` and ``resets`` are the
model's own events. Output: a program without jumps, with ``indicators`` (margins, positive while modes are right),
``surfaces`` (the switches' arguments, and factors of what sticks), ``event`` (states after it, conditions that hold),
and ``next_time_event`` with ``instants`` where switches depend on time alone. Reasons: docs/decisions/0035.

Promises: a program without switches and events is returned as it is, the same object.

Must not: know how modes change; the fixed part of the FMU does that (``fmu/emit_c/runtime/events.c``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mb2fmu.deferred_imports import import_on_first_use

if TYPE_CHECKING:
    from mb2fmu.compiler.events.program_switches import ProgramSwitch, SwitchKind, list_program_switches, needs_modes
    from mb2fmu.compiler.events.stuck_friction_removal import SLIP_ENTRY, remove_friction_signs
    from mb2fmu.compiler.events.switch_to_mode_conversion import convert_switches_to_modes

__all__ = [
    "SLIP_ENTRY",
    "ProgramSwitch",
    "SwitchKind",
    "convert_switches_to_modes",
    "list_program_switches",
    "needs_modes",
    "remove_friction_signs",
]

__getattr__ = import_on_first_use(
    __name__,
    {
        "stuck_friction_removal": "SLIP_ENTRY remove_friction_signs",
        "program_switches": "ProgramSwitch SwitchKind list_program_switches needs_modes",
        "switch_to_mode_conversion": "convert_switches_to_modes",
    },
)
