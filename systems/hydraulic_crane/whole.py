"""Crane, cylinder and valve as one model: the truth."""

from crane import Crane
from cylinder import Hydraulics

from mb2fmu import Model


def whole() -> Model:
    """The crane with its hydraulics."""
    machine = Crane()
    oil = Hydraulics(machine.length, machine.rate)
    kane = machine.kane(oil.force, oil.mechanics(machine.N, machine.O))
    model = Model("HydraulicCraneWhole", kane)
    machine.declare(model)
    oil.declare(model)
    model.experiment(stop=3.0, step=0.01, tolerance=1e-9, stiff=True)
    return model
