"""A bicycle and its rider: a controller that samples, which holds its command from look to look.

At 3.5 m/s the benchmark bicycle falls by itself. The looks fall on communication points; what the rider gives jumps
not, since the arms follow later; its curvature does, so that errors fall with the square of the step (2.3e-5 at 1 ms).
"""

from mb2fmu import CoupledSystem


def ridden_bicycle(step: float = 0.002, stop: float = 2.0, order: int = 2, passes: int = 20) -> CoupledSystem:
    """The benchmark bicycle at 3.5 m/s, pushed from the side, and who steers it."""
    system = CoupledSystem("RiddenBicycle", description="A bicycle and its rider, who samples")
    system.component("bicycle", "../../models/bicycle.py", arguments={"speed": 3.5})
    system.component("rider", "rider.py")
    for name in ("lean", "lean_rate", "steer_rate"):
        system.connect(f"bicycle.{name}", f"rider.{name}")
    system.connect("rider.steer_torque", "bicycle.steer_torque")
    same = {f"bicycle.{name}": name for name in ("yaw", "lean", "steer", "lean_rate", "steer_rate", "v")}
    same |= {f"rider.{name}": name for name in ("reach", "command")}
    system.monolith("whole.py", same, arguments={"speed": 3.5})
    system.experiment(stop=stop, step=step, tolerance=1e-10, order=order, passes=passes, converged=1e-10, bound=1e-4)
    return system
