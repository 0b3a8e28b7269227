"""A crane and its hydraulic cylinder: a stiff FMU, which integrates by its own implicit solver.

The pole of the hose is 500 times as fast as the boom on its oil. Only the FMU of the cylinder has to know that: the
communication step follows the boom.
"""

from mb2fmu import CoupledSystem


def hydraulic_crane(step: float = 0.002, stop: float = 3.0, order: int = 2, passes: int = 20) -> CoupledSystem:
    """Crane and cylinder, connected where the cylinder pushes."""
    system = CoupledSystem("HydraulicCrane", description="A crane and its hydraulic cylinder")
    system.component("crane", "crane.py")
    system.component("cylinder", "cylinder.py")
    system.connect("crane.cylinder", "cylinder.eyes")
    same = {f"crane.{name}": name for name in ("boom", "swing", "boom_rate", "swing_rate")}
    same |= {f"cylinder.{name}": name for name in ("x", "p_line", "p_bore", "p_ring")}
    system.monolith("whole.py", same)
    system.experiment(stop=stop, step=step, tolerance=1e-9, order=order, passes=passes, converged=1e-9, bound=1e-5)
    return system
