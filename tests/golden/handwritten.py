"""Programs and interfaces written by hand, so that the backends can be tested without any mechanics.

A driven pendulum with a rotational damper: m l² u' = tau − d u − m g l sin q, q' = u.
"""

import dataclasses
import uuid

import sympy as sm
from sympy.physics.mechanics import dynamicsymbols

from mb2fmu.compiler.program.program_builder import ProgramBuilder
from mb2fmu.compiler.program.scalar_program import Op, ProgramVariableLayout, ScalarProgram
from mb2fmu.fmu.interface.fmu_interface import (
    DefaultExperiment,
    DisplayUnit,
    FmiVersion,
    FmuCapabilities,
    FmuInterface,
    FmuSolverSettings,
    FmuTarget,
    FmuVariable,
    InterfaceUnit,
    VariableDependency,
)
from mb2fmu.fmu.interface.fmu_types_arrays_terminals import Terminal, TerminalMember
from mb2fmu.fmu.interface.interface_description import (
    LOG_CATEGORIES,
    form_fmu_capabilities,
    form_solver_enumeration,
    form_solver_parameters,
)
from mb2fmu.fmu.interface.physical_quantities import map_units_to_quantity_types
from mb2fmu.mechanics.equations.equations_of_motion import (
    EquationsOfMotion,
    KinematicEquations,
    MassMatrixDynamics,
    OutputExpression,
    SymbolAssignment,
    VelocityConstraints,
)
from mb2fmu.model.checked_model import CheckedModel
from mb2fmu.model.model import DeclaredExperiment
from mb2fmu.model.quantity_declarations import AuxiliaryState, Coordinate, Input, Parameter, Speed

STATES = ("q", "u")
PARAMETERS = ("m", "l", "g", "d")


def pendulum_program() -> ScalarProgram:
    """The pendulum, with the entry points that lowering makes."""
    b = ProgramBuilder(ProgramVariableLayout(states=STATES, inputs=("tau",), parameters=PARAMETERS))
    q, u, tau = b.state(0), b.state(1), b.input(0)
    m, length, g, d = (b.parameter(i) for i in range(4))
    inertia = b.product([m, length, length])
    weight = b.product([m, g, length])
    torque = b.sub(b.sub(tau, b.mul(d, u)), b.mul(weight, b.unary(Op.SIN, q)))
    acceleration = b.div(torque, inertia)
    b.entry("prepare", ("J",), (inertia,))
    b.entry(
        "position", ("tip.x", "tip.y"), (b.mul(length, b.unary(Op.SIN, q)), b.neg(b.mul(length, b.unary(Op.COS, q))))
    )
    b.entry("velocity", ("energy",), (b.mul(b.constant(0.5), b.product([inertia, u, u])),))
    b.entry("acceleration", ("load",), (b.mul(inertia, acceleration),))
    b.entry("dependent_speeds", (), ())
    b.entry("rhs", STATES, (u, acceleration))
    b.entry("accelerations", ("u",), (acceleration,))
    return b.build()


def pendulum_interface(
    name: str = "Pendulum", *, solver: FmuSolverSettings | None = None, **changes: object
) -> FmuInterface:
    """What describes the pendulum; ``changes`` replace attributes, to break laws."""
    everything = ("time", *STATES, "tau", *PARAMETERS)

    def on(*names: str, constant: tuple[str, ...] = ()) -> tuple[VariableDependency, ...]:
        return tuple(
            VariableDependency(n, "constant" if n in constant else "dependent") for n in everything if n in names
        )

    motion = on("q", "u", "tau", *PARAMETERS)
    variables = [
        {"name": "time", "causality": "independent", "initial": None, "unit": "s", "source": "time"},
        {"name": "m", "causality": "parameter", "variability": "tunable", "initial": "exact", "start": 1.0,
         "unit": "kg", "minimum": 0.0, "source": "parameter", "description": "mass & <friends>"},
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
         "minimum": -10.0, "maximum": 10.0, "nominal": 1.0, "source": "state",
         "description": "angle from the vertical"},
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
        "units": tuple(
            InterfaceUnit(unit, 1.0, 0.0, powers, shown.get(unit, ())) for unit, powers in exponents.items()
        ),
        "experiment": DefaultExperiment(0.0, 2.0, 0.01, 1e-6),
        "solver": solver or FmuSolverSettings("explicit", 1e-6),
        "log_categories": LOG_CATEGORIES,
        "capabilities": FmuCapabilities(needs_execution_tool=True, state=True),
        "generation_tool": "mb2fmu",
    }
    return FmuInterface(**{**description, **changes})  # type: ignore[arg-type]


def native_interface(fmi: FmiVersion, **changes: object) -> FmuInterface:
    """What describes the pendulum as a native FMU; ``changes`` replace attributes."""
    python = pendulum_interface()
    types = map_units_to_quantity_types(python.variables)
    enumerated = form_solver_enumeration(list(types))
    solver, step = form_solver_parameters(python.variables, python.solver)
    solver = dataclasses.replace(solver, declared_type=enumerated.name)
    typed = [
        dataclasses.replace(v, declared_type=types[v.unit].name if v.unit in types else None) for v in python.variables
    ]
    members = (
        TerminalMember("tau", "tau", "inflow"),
        TerminalMember("phi", "q"),
        TerminalMember("w", "u"),
    )
    target = FmuTarget(fmi, "native")
    native = {
        "target": target,
        "variables": (*typed, solver, step),
        "types": (*types.values(), enumerated),
        "terminals": (Terminal("tau", members, "the drive"),),
        "capabilities": form_fmu_capabilities(target),
    }
    return dataclasses.replace(python, **{**native, **changes})  # type: ignore[arg-type]


def double_pendulum() -> tuple[CheckedModel, EquationsOfMotion]:
    """Two point masses on massless rods, angles from the vertical, a torque at the first joint."""
    t = dynamicsymbols._t
    q1, q2, u1, u2, tau = dynamicsymbols("q1 q2 u1 u2 tau")
    m1, m2, l1, l2, g, m = sm.symbols("m1 m2 l1 l2 g m")
    definition = _definition(
        "DoublePendulum",
        parameters=(
            Parameter(name="m1", symbol=m1, value=1.0, unit="kg", minimum=0.0),
            Parameter(name="m2", symbol=m2, value=0.7, unit="kg", minimum=0.0),
            Parameter(name="l1", symbol=l1, value=0.8, unit="m", tunable=False),
            Parameter(name="l2", symbol=l2, value=0.6, unit="m", tunable=False),
            Parameter(name="g", symbol=g, value=9.81, unit="m/s2", tunable=False),
            Parameter(name="m", symbol=m, value=m1 + m2, unit="kg", description="total mass"),
        ),
        inputs=(Input(name="tau", symbol=tau, unit="N.m"),),
        coordinates=(
            Coordinate(name="first.q", symbol=q1, start=1.0, unit="rad", display_unit="deg"),
            Coordinate(name="second.q", symbol=q2, start=-0.5, unit="rad", display_unit="deg"),
        ),
        speeds=(
            Speed(name="first.u", symbol=u1, start=0.0, unit="rad/s"),
            Speed(name="second.u", symbol=u2, start=0.3, unit="rad/s"),
        ),
    )
    plain = {s: sm.Symbol(s.func.__name__) for s in (q1, q2, u1, u2, tau)}
    a, b, da, db, torque = plain.values()
    ua, ub = sm.symbols("u1_dot u2_dot")
    c, s = sm.cos(a - b), sm.sin(a - b)
    equations = EquationsOfMotion(
        method="kane",
        t=t,
        q=(a, b),
        u=(da, db),
        u_independent=(0, 1),
        u_dot=(ua, ub),
        p=(m1, m2, l1, l2, g),
        calculated_parameters=(SymbolAssignment(m, m1 + m2),),
        r=(torque,),
        kinematics=KinematicEquations(sm.ImmutableMatrix.eye(2), sm.ImmutableMatrix.zeros(2, 1)),
        dynamics=MassMatrixDynamics(
            sm.ImmutableMatrix([[m * l1**2, m2 * l1 * l2 * c], [m2 * l1 * l2 * c, m2 * l2**2]]),
            sm.ImmutableMatrix(
                [
                    torque - m2 * l1 * l2 * s * db**2 - m * g * l1 * sm.sin(a),
                    m2 * l1 * l2 * s * da**2 - m2 * g * l2 * sm.sin(b),
                ]
            ),
        ),
        outputs=(
            OutputExpression("tip.x", l1 * sm.sin(a) + l2 * sm.sin(b), "position", unit="m"),
            OutputExpression("tip.v", l1 * da * sm.cos(a) + l2 * db * sm.cos(b), "velocity", unit="m/s"),
            OutputExpression("angular", ua + ub, "acceleration", unit="rad/s2"),
        ),
    )
    return definition, equations


def constrained_point() -> tuple[CheckedModel, EquationsOfMotion]:
    """A point in the plane whose velocity keeps u2 = q1 u1, driven by a force, with a filter state z' = (F − z)/T.

    On the constraint m u1' = F − lambda q1 ..., eliminated: m (1 + q1²) u1' = F − m q1 u1².
    """
    t = dynamicsymbols._t
    q1, q2, u1, u2, z, force = dynamicsymbols("q1 q2 u1 u2 z F")
    m, delay = sm.symbols("m T")
    definition = _definition(
        "ConstrainedPoint",
        parameters=(
            Parameter(name="m", symbol=m, value=2.0, unit="kg"),
            Parameter(name="T", symbol=delay, value=0.1, unit="s", tunable=False),
        ),
        inputs=(Input(name="F", symbol=force, unit="N", start=1.0),),
        coordinates=(
            Coordinate(name="q1", symbol=q1, start=0.5, unit="m"),
            Coordinate(name="q2", symbol=q2, start=0.0, unit="m"),
        ),
        speeds=(
            Speed(name="u1", symbol=u1, start=0.2, unit="m/s"),
            Speed(name="u2", symbol=u2, start=0.0, unit="m/s", kind="guess"),
        ),
        auxiliary_states=(AuxiliaryState(name="z", symbol=z, start=0.0, unit="N", derivative=(force - z) / delay),),
    )
    a, b, ua, ub, zz, f = sm.symbols("q1 q2 u1 u2 z F")
    dots = sm.symbols("u1_dot u2_dot")
    equations = EquationsOfMotion(
        method="kane",
        t=t,
        q=(a, b),
        u=(ua, ub),
        u_independent=(0,),
        u_dot=dots,
        z=(zz,),
        p=(m, delay),
        r=(f,),
        kinematics=KinematicEquations(sm.ImmutableMatrix.eye(2), sm.ImmutableMatrix.zeros(2, 1)),
        z_dot=((f - zz) / delay,),
        velocity_constraints=VelocityConstraints(
            ("slope",), sm.ImmutableMatrix([[-a, 1]]), sm.ImmutableMatrix([[0]]), sm.ImmutableMatrix([[-(ua**2)]])
        ),
        dynamics=MassMatrixDynamics(sm.ImmutableMatrix([[m, 0], [0, m]]), sm.ImmutableMatrix([[f], [0]])),
    )
    return definition, equations


def _definition(name: str, **parts: object) -> CheckedModel:
    nothing = dict.fromkeys(("inputs", "auxiliary_states", "constraint_forces", "outputs"), ())
    rest = {
        "description": "by hand",
        "mechanics": None,
        "potential_energy": None,
        "experiment": DeclaredExperiment(stop=2.0),
    }
    return CheckedModel(name=name, **{**nothing, **rest, **parts})  # type: ignore[arg-type]
