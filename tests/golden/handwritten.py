"""Programs and interfaces written by hand, so that the backends can be tested without any mechanics.

A driven pendulum with a rotational damper: m l² u' = tau − d u − m g l sin q, q' = u.
"""

import uuid

from mb2fmu.interface.description import (
    Capabilities,
    DefaultExperiment,
    Dependency,
    DisplayUnit,
    FmuInterface,
    FmuVariable,
    LogCategory,
    SolverSettings,
    UnitDefinition,
)
from mb2fmu.lowering.builder import ProgramBuilder
from mb2fmu.lowering.program import Layout, Op, Program

STATES = ("q", "u")
PARAMETERS = ("m", "l", "g", "d")


def pendulum_program() -> Program:
    """The pendulum, with the entry points that lowering makes."""
    b = ProgramBuilder(Layout(states=STATES, inputs=("tau",), parameters=PARAMETERS))
    q, u, tau = b.state(0), b.state(1), b.input(0)
    m, length, g, d = (b.parameter(i) for i in range(4))
    inertia = b.product([m, length, length])
    weight = b.product([m, g, length])
    torque = b.sub(b.sub(tau, b.mul(d, u)), b.mul(weight, b.unary(Op.SIN, q)))
    acceleration = b.div(torque, inertia)
    b.entry("prepare", ("J",), (inertia,))
    b.entry("position", ("tip.x", "tip.y"), (b.mul(length, b.unary(Op.SIN, q)), b.neg(b.mul(length, b.unary(Op.COS, q)))))
    b.entry("velocity", ("energy",), (b.mul(b.constant(0.5), b.product([inertia, u, u])),))
    b.entry("acceleration", ("load",), (b.mul(inertia, acceleration),))
    b.entry("dependent_speeds", (), ())
    b.entry("rhs", STATES, (u, acceleration))
    b.entry("accelerations", ("u",), (acceleration,))
    return b.build()


def pendulum_interface(name: str = "Pendulum", *, solver: SolverSettings | None = None, **changes: object) -> FmuInterface:
    """What describes the pendulum; ``changes`` replace attributes, to break laws."""
    everything = ("time", *STATES, "tau", *PARAMETERS)

    def on(*names: str, constant: tuple[str, ...] = ()) -> tuple[Dependency, ...]:
        return tuple(Dependency(n, "constant" if n in constant else "dependent") for n in everything if n in names)

    motion = on("q", "u", "tau", *PARAMETERS)
    variables = [
        {"name": "time", "causality": "independent", "initial": None, "unit": "s", "source": "time"},
        {"name": "m", "causality": "parameter", "variability": "tunable", "initial": "exact", "start": 1.0, "unit": "kg",
         "minimum": 0.0, "source": "parameter", "description": "mass & <friends>"},
        {"name": "l", "causality": "parameter", "variability": "fixed", "initial": "exact", "start": 0.5, "unit": "m",
         "source": "parameter", "index": 1, "description": "length"},
        {"name": "g", "causality": "parameter", "variability": "fixed", "initial": "exact", "start": 9.81,
         "unit": "m/s2", "source": "parameter", "index": 2},
        {"name": "d", "causality": "parameter", "variability": "tunable", "initial": "exact", "start": 0.1,
         "unit": "N.m.s/rad", "source": "parameter", "index": 3},
        {"name": "J", "causality": "calculatedParameter", "variability": "tunable", "initial": "calculated",
         "unit": "kg.m2", "source": "prepare", "dependencies": on("m", "l", constant=("m",))},
        {"name": "tau", "causality": "input", "initial": "exact", "start": 0.0, "unit": "N.m", "source": "input"},
        {"name": "q", "causality": "output", "initial": "exact", "start": 0.5, "unit": "rad", "display_unit": "deg",
         "minimum": -10.0, "maximum": 10.0, "nominal": 1.0, "source": "state", "description": "angle from the vertical"},
        {"name": "u", "causality": "output", "initial": "exact", "start": 0.0, "unit": "rad/s", "source": "state",
         "index": 1},
        {"name": "der(q)", "causality": "local", "initial": "calculated", "unit": "rad/s", "derivative_of": "q",
         "source": "rhs", "dependencies": on("u", constant=("u",))},
        {"name": "der(u)", "causality": "local", "initial": "calculated", "unit": "rad/s2", "derivative_of": "u",
         "source": "rhs", "index": 1, "dependencies": motion},
        {"name": "tip.x", "causality": "output", "initial": "calculated", "unit": "m", "source": "position",
         "dependencies": on("q", "l", constant=("l",))},
        {"name": "tip.y", "causality": "output", "initial": "calculated", "unit": "m", "source": "position", "index": 1,
         "dependencies": on("q", "l", constant=("l",))},
        {"name": "energy", "causality": "output", "initial": "calculated", "unit": "J", "source": "velocity",
         "dependencies": on("u", "m", "l")},
        {"name": "load", "causality": "output", "initial": "calculated", "unit": "N.m", "source": "acceleration",
         "dependencies": motion},
    ]  # fmt: skip
    exponents = {"s": (0, 0, 1, 0, 0, 0, 0, 0), "kg": (1, 0, 0, 0, 0, 0, 0, 0), "m": (0, 1, 0, 0, 0, 0, 0, 0),
                 "m/s2": (0, 1, -2, 0, 0, 0, 0, 0), "N.m.s/rad": (1, 2, -1, 0, 0, 0, 0, -1),
                 "kg.m2": (1, 2, 0, 0, 0, 0, 0, 0), "N.m": (1, 2, -2, 0, 0, 0, 0, 0), "rad": (0, 0, 0, 0, 0, 0, 0, 1),
                 "rad/s": (0, 0, -1, 0, 0, 0, 0, 1), "rad/s2": (0, 0, -2, 0, 0, 0, 0, 1),
                 "J": (1, 2, -2, 0, 0, 0, 0, 0)}  # fmt: skip
    shown = {"rad": (DisplayUnit("deg", 57.29577951308232, 0.0),)}
    description = {
        "model_name": name,
        "model_identifier": name,
        "description": "a driven pendulum",
        "token": str(uuid.uuid5(uuid.NAMESPACE_OID, f"{name} {solver}")),
        "variables": tuple(FmuVariable(value_reference=i, **v) for i, v in enumerate(variables)),  # type: ignore[arg-type]
        "units": tuple(UnitDefinition(unit, 1.0, 0.0, powers, shown.get(unit, ())) for unit, powers in exponents.items()),
        "experiment": DefaultExperiment(0.0, 2.0, 0.01, 1e-6),
        "solver": solver or SolverSettings("explicit", 1e-6),
        "log_categories": (LogCategory("logStatusDiscard", "steps refused"), LogCategory("logStatusError", "calls refused")),
        "capabilities": Capabilities(needs_execution_tool=True, state=True),
        "generation_tool": "mb2fmu",
    }
    return FmuInterface(**{**description, **changes})  # type: ignore[arg-type]
