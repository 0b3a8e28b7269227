"""FMI 3.0's view of the interface: variables are named by their value references, parameters are knowns too.

Knowns of outputs and derivatives are, by 3.0.2 (section 2.4.8), inputs, states, parameters and time.
"""

from __future__ import annotations

from mb2fmu.fmu.interface.fmu_interface import FmuInterface
from mb2fmu.fmu.interface.model_structure import ModelStructure, form_model_structure


def list_value_references(interface: FmuInterface) -> dict[str, int]:
    """Return the value reference of each variable by name; of one that is in an array only, that of the array."""
    found = {variable.name: variable.value_reference for variable in interface.variables}
    return found | {
        name: array.value_reference for array in interface.arrays if array.replaces for name in array.elements
    }


def form_structure(interface: FmuInterface) -> ModelStructure:
    """Return the structure; numbers are value references."""
    return form_model_structure(interface, list_value_references(interface), ("time", "input", "state", "parameter"))
