"""A robot's arm and the drives of its joints: the arm from its URDF file, each drive an FMU of its own.

The arm takes efforts and gives motion, a drive takes motion and gives the effort of its gear: terminals of the same
members, a line for each joint. The gear is elastic, so that no output depends on itself. The dry friction that the file
says is left out: it would be an event, between two units, and the error of any step.
"""

from mb2fmu import CoupledSystem

DRIVES = {
    "j1": ("hinge", 0.2, 400.0, 0.6),
    "j2": ("hinge", 0.1, 300.0, -0.4),
    "j3": ("slide", 4.0, 9000.0, 0.08),
}
"""Joint of the file → kind, inertia of the rotor, stiffness of the gear, target."""


def driven_arm(step: float = 0.001, stop: float = 2.0, order: int = 2, passes: int = 20) -> CoupledSystem:
    """An arm of two hinges and a slide, a drive at each."""
    system = CoupledSystem("DrivenArm", description="A robot's arm and the drives of its joints")
    system.component("arm", "arm.urdf", arguments={"friction": "ignore"})
    same = {}
    for joint, (kind, inertia, stiffness, target) in DRIVES.items():
        arguments = {"kind": kind, "inertia": inertia, "stiffness": stiffness, "target": target}
        system.component(f"{joint}_drive", "drive.py", arguments=arguments)
        system.connect(f"arm.{joint}", f"{joint}_drive.shaft")
        place = "angle" if kind == "hinge" else "position"
        same |= {f"arm.{joint}.{name}": f"{joint}.{name}" for name in (place, "speed")}
        same |= {f"{joint}_drive.{name}": f"{name}_{joint}" for name in ("phi", "omega")}
    system.monolith("whole.py", same)
    system.experiment(stop=stop, step=step, tolerance=1e-10, order=order, passes=passes, converged=1e-10, bound=1e-5)
    return system
