"""Two masses cut at the spring between them: force one way, displacement the other.

The case of the literature on co-simulation whose errors are known in closed form (M. Busch, Zur effizienten Kopplung
von Simulationsprogrammen, 2012): x1, x2 = ½ cos 2πt ± ½ cos 6πt.
"""

import math

from mb2fmu import CoupledSystem


def two_masses(step: float = 0.00125, order: int = 2, passes: int = 20) -> CoupledSystem:
    """The left mass takes the force, the right one the displacement."""
    system = CoupledSystem("TwoMasses", description="Two masses cut at the spring between them")
    system.component("left", "left.py")
    system.component("right", "right.py")
    system.parameter("stiffness", (4.0 * math.pi**2, "N/m"), to=["left.k", "right.k"])  # of the springs to the walls
    system.connect("left.x", "right.s")
    system.connect("right.force", "left.F")
    system.bond("spring", "left.F * left.v", "-right.force * der(right.s)")
    system.monolith("whole.py", {"left.x": "x1", "left.v": "v1", "right.x": "x2", "right.v": "v2"})
    system.experiment(stop=1.0, step=step, tolerance=1e-11, order=order, passes=passes, converged=1e-11, bound=1e-5)
    return system
