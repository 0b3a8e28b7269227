"""mb2fmu: turn a mechanism written with SymPy into a Functional Mock-up Unit, and validate that it moves as it must.

    >>> import mb2fmu                                            # doctest: +SKIP
    >>> model = mb2fmu.load("models/double_pendulum.py")         # doctest: +SKIP
    >>> mb2fmu.run(model, "out").validation.passed               # doctest: +SKIP
    True

The names below are imported when they are first used, so that ``import mb2fmu`` costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from mb2fmu.version import __version__

if TYPE_CHECKING:
    from mb2fmu.analysis.studies.output_reductions import FirstCrossing, Largest
    from mb2fmu.errors import Mb2FmuError
    from mb2fmu.model import Box, Cylinder, Ellipsoid, Mesh, Parts, Sphere, orient_by_quaternion
    from mb2fmu.model.elements import (
        Backlash,
        Brake,
        Brush,
        Bushing,
        Clutch,
        Contact,
        CoulombFriction,
        CylinderSurface,
        Drag,
        GearMotor,
        GravityGradient,
        HardStop,
        HeightSurface,
        HydraulicCylinder,
        Impact,
        Latch,
        MagicFormula,
        OneWayClutch,
        PlaneSurface,
        SphereSurface,
        SpringDamper,
        Tyre,
        Valve,
        Work,
    )
    from mb2fmu.model.functions import no_event, pre, sticking_sign
    from mb2fmu.pipeline import (
        Model,
        RightHandSide,
        animate,
        build,
        derive,
        export,
        linearize,
        load,
        measure,
        quantities,
        rhs,
        run,
        sensitivities,
        simulate,
        validate,
    )
    from mb2fmu.systems import CoupledSystem

__all__ = [
    "Backlash",
    "Box",
    "Brake",
    "Brush",
    "Bushing",
    "Clutch",
    "Contact",
    "CoulombFriction",
    "CoupledSystem",
    "Cylinder",
    "CylinderSurface",
    "Drag",
    "Ellipsoid",
    "FirstCrossing",
    "GearMotor",
    "GravityGradient",
    "HardStop",
    "HeightSurface",
    "HydraulicCylinder",
    "Impact",
    "Largest",
    "Latch",
    "MagicFormula",
    "Mb2FmuError",
    "Mesh",
    "Model",
    "OneWayClutch",
    "Parts",
    "PlaneSurface",
    "RightHandSide",
    "Sphere",
    "SphereSurface",
    "SpringDamper",
    "Tyre",
    "Valve",
    "Work",
    "__version__",
    "animate",
    "build",
    "derive",
    "export",
    "linearize",
    "load",
    "measure",
    "no_event",
    "orient_by_quaternion",
    "pre",
    "quantities",
    "rhs",
    "run",
    "sensitivities",
    "simulate",
    "sticking_sign",
    "sweep",
    "validate",
]

_HOMES = {
    "CoupledSystem": "mb2fmu.systems",
    "Mb2FmuError": "mb2fmu.errors",
} | dict.fromkeys(("no_event", "pre", "sticking_sign"), "mb2fmu.model.functions")
_HOMES |= dict.fromkeys(("FirstCrossing", "Largest"), "mb2fmu.analysis.studies.output_reductions")
_HOMES |= dict.fromkeys(
    (
        "Backlash",
        "Brake",
        "Brush",
        "Bushing",
        "Clutch",
        "Contact",
        "CoulombFriction",
        "CylinderSurface",
        "Drag",
        "GearMotor",
        "GravityGradient",
        "HardStop",
        "HeightSurface",
        "HydraulicCylinder",
        "Impact",
        "Latch",
        "MagicFormula",
        "OneWayClutch",
        "PlaneSurface",
        "SphereSurface",
        "SpringDamper",
        "Tyre",
        "Valve",
        "Work",
    ),
    "mb2fmu.model.elements",
)
_HOMES |= dict.fromkeys(
    ("Box", "Cylinder", "Ellipsoid", "Mesh", "Parts", "Sphere", "orient_by_quaternion"), "mb2fmu.model"
)


def __getattr__(name: str) -> object:
    """Import a public name from the module that defines it, on first use."""
    if name.startswith("_") or name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_HOMES.get(name, "mb2fmu.pipeline")), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
