"""A four-link pendulum cut at its middle joint: motion one way, force the other.

The acceleration of the joint follows from the force at once, and the force from the acceleration: an algebraic loop,
which only a master that solves it can carry. At the step below the system stays within 1e-6 of the whole model over
5 s.
"""

from mb2fmu import CoupledSystem


def cut_pendulum(step: float = 0.001, stop: float = 5.0, order: int = 2, passes: int = 20) -> CoupledSystem:
    """The upper links take the force, the lower ones the motion."""
    system = CoupledSystem("CutPendulum", description="A four-link pendulum cut at its middle joint")
    system.component("upper", "upper.py")
    system.component("lower", "lower.py")
    for name in ("x", "y", "vx", "vy", "ax", "ay"):
        system.connect(f"upper.{name}", f"lower.{name}")
    for axis in ("x", "y"):
        system.connect(f"lower.f{axis}", f"upper.f{axis}")
        system.bond(f"joint, {axis}", f"upper.f{axis} * upper.v{axis}", f"-lower.f{axis} * lower.v{axis}")
    same = {f"{unit}.{kind}{i}": f"{kind}{i}" for unit, numbers in (("upper", (1, 2)), ("lower", (3, 4)))
            for i in numbers for kind in "qu"}  # fmt: skip
    system.monolith("whole.py", same)
    system.experiment(
        stop=stop, step=step, tolerance=1e-11, order=order, passes=passes, converged=1e-10, loops="solve", bound=1e-6
    )
    return system
