"""Systems: coupled FMUs, run by mb2fmu's own master, and written for other masters.

Input: a ``CoupledSystem`` and the units of its components, ours or any others. Output: ``WiredSystem`` (checked
connections), ``SystemMotion`` (what the system did), files for other masters.

Promises: units of measure are checked and converted; every fault of a system is told at once, with its remedy; FMUs
run in a process of their own; results up to a failure are kept.

This stage must not derive equations or make FMUs; the pipeline hands them in. The numerics of the master (``master``)
know nothing of files and models, and their process imports nothing else: names below are imported when first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mb2fmu.systems.coupled_system import CoupledSystem
    from mb2fmu.systems.fmu_component import FmuComponent, read_component
    from mb2fmu.systems.resolved_system import SteppingSettings
    from mb2fmu.systems.system_simulation import SystemMotion, SystemRunError, simulate_system
    from mb2fmu.systems.wired_system import CouplingError, WiredSystem
    from mb2fmu.systems.wiring import wire_system

__all__ = [
    "CoupledSystem",
    "CouplingError",
    "FmuComponent",
    "SteppingSettings",
    "SystemMotion",
    "SystemRunError",
    "WiredSystem",
    "read_component",
    "simulate_system",
    "wire_system",
]

_HOMES = {
    "FmuComponent": "fmu_component",
    "read_component": "fmu_component",
    "CoupledSystem": "coupled_system",
    "SteppingSettings": "resolved_system",
    "SystemMotion": "system_simulation",
    "SystemRunError": "system_simulation",
    "simulate_system": "system_simulation",
} | dict.fromkeys(("CouplingError", "WiredSystem", "wire_system"), "wiring")


def __getattr__(name: str) -> object:
    """Import a public name from its module, on first use."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"mb2fmu.systems.{_HOMES[name]}"), name)
    globals()[name] = value
    return value
