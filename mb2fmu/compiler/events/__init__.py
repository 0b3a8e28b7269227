"""Switching: turn a program's switches into modes that are constant between events.

Input: a lowered program, in which entry ``switches`` names what jumps or has a kink, and ``conditions`` and ``resets``
what the model's own events are. Output: a program without jumps: every switch reads its mode from discrete memory.

Entries that it adds: ``indicators`` (one margin per switch: positive as long as its mode is right), ``surfaces`` (what
each switch looks at, then the factor by which each that sticks is held), ``event`` (states after the event, then
whether each condition holds now), and where switches look at time alone ``next_time_event`` (when each of them changes
next; ``instants``). ``docs/decisions/0035-events-modes-and-event-indicators.md`` has the reasons.

Promises: a program without switches and events is handed back as it is, the same object.

Must not: know how modes change; the fixed part of the FMU does that (``fmu/emit_c/runtime/events.c``).
"""

from mb2fmu.compiler.events.switch_to_mode_conversion import (
    Switch,
    SwitchKind,
    convert_switches_to_modes,
    list_program_switches,
)

__all__ = ["Switch", "SwitchKind", "convert_switches_to_modes", "list_program_switches"]
