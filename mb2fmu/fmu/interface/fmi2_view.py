"""FMI 2.0's view of the interface: variables are numbered from 1 in their order, parameters are no knowns.

What 2.0.5 (section 2.2.8) wants of ``OutputDeclarations`` and ``Derivatives``: dependencies on inputs and time; on
states in Model Exchange, and in Co-Simulation where directional derivatives are provided; on parameters never.
"""

from __future__ import annotations

from mb2fmu.fmu.interface.fmu_interface import FmuInterface
from mb2fmu.fmu.interface.model_structure import ModelStructure, StructureUnknown, form_model_structure

__all__ = ["ModelStructure", "StructureUnknown", "form_structure", "number_variables"]


def number_variables(interface: FmuInterface) -> dict[str, int]:
    """Return the index of each variable by name, counted from 1."""
    return {variable.name: i for i, variable in enumerate(interface.variables, start=1)}


def form_structure(interface: FmuInterface) -> ModelStructure:
    """Return the structure; numbers are indices."""
    able = interface.capabilities
    if able.model_exchange or able.directional_derivatives:
        return form_model_structure(interface, number_variables(interface), ("time", "input", "state"))
    return form_model_structure(interface, number_variables(interface), ("time", "input"))
