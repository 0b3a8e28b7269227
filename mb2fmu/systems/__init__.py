"""Systems: coupled FMUs, run by mb2fmu's own master, and written for other masters.

Input: a ``CoupledSystem`` and the FMUs of its components, made by mb2fmu or others. Output: ``WiredSystem`` (checked
connections), ``SystemTrajectories`` (recorded outputs), files for other masters.

Promises: units of measure are checked and converted; all faults of a system are reported together, with remedies; FMUs
run in a process of their own; results up to a failure are kept.

This stage must not derive equations or make FMUs; the pipeline hands them in. The numerics of the master (``master``)
know nothing of files and models, and their process imports nothing else: names below are imported when first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mb2fmu.deferred_imports import import_on_first_use

if TYPE_CHECKING:
    from mb2fmu.systems.coupled_system import CoupledSystem
    from mb2fmu.systems.fmu_component import FmuComponent, read_fmu_component
    from mb2fmu.systems.port_and_bond_records import CommunicationStepSettings
    from mb2fmu.systems.system_simulation import SystemRunError, SystemTrajectories, simulate_system
    from mb2fmu.systems.system_wiring import wire_system
    from mb2fmu.systems.wired_system import CouplingError, WiredSystem

__all__ = [
    "CommunicationStepSettings",
    "CoupledSystem",
    "CouplingError",
    "FmuComponent",
    "SystemRunError",
    "SystemTrajectories",
    "WiredSystem",
    "read_fmu_component",
    "simulate_system",
    "wire_system",
]

__getattr__ = import_on_first_use(
    __name__,
    {
        "coupled_system": "CoupledSystem",
        "fmu_component": "FmuComponent read_fmu_component",
        "port_and_bond_records": "CommunicationStepSettings",
        "system_simulation": "SystemTrajectories SystemRunError simulate_system",
        "wired_system": "CouplingError WiredSystem",
        "system_wiring": "wire_system",
    },
)
