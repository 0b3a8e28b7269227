"""mb2fmu: turn a mechanism written with SymPy into a Functional Mock-up Unit, and validate that it moves as it must.

    >>> import tempfile, mb2fmu
    >>> model = mb2fmu.load("simple_pendulum")  # or a file of yours: mb2fmu.load("pendulum.py")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     result = mb2fmu.run(model, folder)  # makes the FMU, validates it, and writes the report beside it
    >>> result.passed
    True

The names below are imported when they are first used, so that ``import mb2fmu`` costs nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mb2fmu.deferred_imports import import_on_first_use
from mb2fmu.version import __version__

if TYPE_CHECKING:
    from mb2fmu.errors import Mb2FmuError
    from mb2fmu.model import Box, Cylinder, Ellipsoid, Mesh, Parts, Sphere, orient_by_quaternion, read_script
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
    from mb2fmu.model.flexible import BeamSection, FlexibleBody
    from mb2fmu.model.supported_functions import no_event, pre, sticking_sign
    from mb2fmu.pipeline import (
        Model,
        animate,
        build,
        compare_with_data,
        derive,
        export,
        linearize,
        load,
        quantities,
        rhs,
        run,
        sensitivities,
        simulate,
        sweep,
        validate,
    )
    from mb2fmu.pipeline.adoption.script_adoption import adopt
    from mb2fmu.pipeline.command_functions import audit_fmu, couple, fit, split, study
    from mb2fmu.systems import CoupledSystem

__all__ = [
    "Backlash",
    "BeamSection",
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
    "FlexibleBody",
    "GearMotor",
    "GravityGradient",
    "HardStop",
    "HeightSurface",
    "HydraulicCylinder",
    "Impact",
    "Latch",
    "MagicFormula",
    "Mb2FmuError",
    "Mesh",
    "Model",
    "OneWayClutch",
    "Parts",
    "PlaneSurface",
    "Sphere",
    "SphereSurface",
    "SpringDamper",
    "Tyre",
    "Valve",
    "Work",
    "__version__",
    "adopt",
    "animate",
    "audit_fmu",
    "build",
    "compare_with_data",
    "couple",
    "derive",
    "export",
    "fit",
    "linearize",
    "load",
    "no_event",
    "orient_by_quaternion",
    "pre",
    "quantities",
    "read_script",
    "rhs",
    "run",
    "sensitivities",
    "simulate",
    "split",
    "sticking_sign",
    "study",
    "sweep",
    "validate",
]

__getattr__ = import_on_first_use(
    __name__,
    {
        "model.elements": (
            "Backlash Brake Brush Bushing Clutch Contact CoulombFriction CylinderSurface Drag "
            "GearMotor GravityGradient HardStop HeightSurface HydraulicCylinder Impact Latch "
            "MagicFormula OneWayClutch PlaneSurface SphereSurface SpringDamper Tyre Valve Work"
        ),
        "model.flexible": "BeamSection FlexibleBody",
        "model": "Box Cylinder Ellipsoid Mesh Parts Sphere orient_by_quaternion read_script",
        "systems": "CoupledSystem",
        "errors": "Mb2FmuError",
        "pipeline.adoption.script_adoption": "adopt",
        "pipeline.run_and_report.notebook_magic": "load_ipython_extension",  # %load_ext mb2fmu
        "pipeline.command_functions": "audit_fmu couple fit split study",
        "pipeline": (
            "Model animate build compare_with_data derive export linearize load quantities "
            "rhs run sensitivities simulate sweep validate"
        ),
        "model.supported_functions": "no_event pre sticking_sign",
    },
)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
