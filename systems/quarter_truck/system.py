"""A quarter truck with its axle in an FMU of its own, over a bump.

Connected by terminals. The truck stands still until the bump: the suspension carries the weight from the first moment,
since inputs and outputs agree before the first step. Masters that begin with inputs of zero let it drop.
"""

from mb2fmu import CoupledSystem


def quarter_truck(step: float = 0.002, stop: float = 3.0, order: int = 2, passes: int = 20) -> CoupledSystem:
    """Body and axle, connected at the mount of the suspension."""
    system = CoupledSystem("QuarterTruck", description="A quarter truck with its axle in an FMU of its own")
    system.component("body", "body.py")
    system.component("axle", "axle.py")
    system.connect("body.mount", "axle.mount")
    system.monolith("whole.py", {"body.z": "z_body", "axle.z": "z_axle", "body.v": "v_body", "axle.v": "v_axle"})
    system.experiment(stop=stop, step=step, tolerance=1e-10, order=order, passes=passes, converged=1e-10, bound=1e-5)
    return system
