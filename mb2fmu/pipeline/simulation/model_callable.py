"""The equations of motion as a NumPy callable: of a derivation, of a model, and as a method of ``Model``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Unpack

import numpy as np
import numpy.typing as npt

import mb2fmu.model
from mb2fmu import robots
from mb2fmu.compiler import evaluation
from mb2fmu.mechanics.equations import notebook_display
from mb2fmu.pipeline.derivation.model_derivation import AnyModel, derive
from mb2fmu.pipeline.derivation.pipeline_options import FormulationOptions
from mb2fmu.pipeline.derivation.pipeline_results import Derivation
from mb2fmu.pipeline.derivation.right_hand_side import RightHandSide

if TYPE_CHECKING:
    from mb2fmu.analysis.studies.ensembles import Ensemble
    from mb2fmu.mechanics.equations.equations_of_motion import Method

Floats = npt.NDArray[np.float64]


class Model(mb2fmu.model.Model):
    """The model that users write; defined here because ``rhs`` needs all stages up to the program."""

    __doc__ = mb2fmu.model.Model.__doc__

    @classmethod
    def from_urdf(cls, path: Path | str, **settings: Any) -> Model:
        """Return the model of a robot description; outputs, states and efforts can be added to it.

        ``model.mechanics`` has the robot's ``position`` and ``speed`` by the names of joints, ``point`` and ``frame``
        by those of links, ``add_effort``, ``add_force`` and ``add_torque``, and for expressions ``position_of``,
        ``velocity_of`` and ``angular_velocity_of``.

        Args:
            path: A URDF file.
            settings: What the file leaves open: base, gravity, inputs, locked, prescribed, start, speeds, limits,
                inertia, mimic, packages, outputs, loads, energy, stop, step, excitation (docs/robots.md); they replace
                those of the side file.

        Raises:
            ModelError: With every fault of the file.
        """
        return robots.load_robot(path, settings, cls)

    def __repr__(self) -> str:
        """Return a line: the model's name and description."""
        return f"<Model {self.name}: {self.description}>" if self.description else f"<Model {self.name}>"

    def _repr_html_(self) -> str:
        """Return the declarations as a table, for notebooks."""
        return notebook_display.html(self)

    def compile(self, **options: Unpack[FormulationOptions]) -> Ensemble:
        """Compile the model for many instances: ``model.compile().simulate(1000, {"m": masses})``."""
        from mb2fmu.pipeline.simulation.batch_compilation import compiled

        return compiled(self, **options)

    def rhs(self, method: Method | Literal["auto"] = "auto") -> RightHandSide:
        """Return the equations of motion as a NumPy callable, without any FMU."""
        return rhs(self, method=method)


def rhs(
    model: AnyModel, *, arguments: Mapping[str, Any] | None = None, **options: Unpack[FormulationOptions]
) -> RightHandSide:
    """Return the equations of motion of a model as a NumPy callable; arguments as for :func:`derive`."""
    return right_hand_side(derive(model, arguments=arguments, **options))


def start_values(derivation: Derivation) -> tuple[Floats, Floats, Floats]:
    """Return start values x0 of the states (independent q and u, z), r0 of the inputs, p0 of the free parameters."""
    definition, equations = derivation.definition, derivation.equations
    q = [definition.coordinates[i].start for i in equations.q_independent]
    u = [definition.speeds[i].start for i in equations.u_independent]
    x0 = [*q, *u, *(state.start for state in definition.auxiliary_states)]
    r0 = [signal.start for signal in definition.inputs]
    return (
        np.array(x0),
        np.array(r0),
        np.array([p.value for p in definition.parameters if not p.calculated], dtype=float),
    )


def _names(derivation: Derivation) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """Return FMU names of states, inputs and free parameters, in the order of :func:`start_values`."""
    definition, equations = derivation.definition, derivation.equations
    q = [definition.coordinates[i].name for i in equations.q_independent]
    u = [definition.speeds[i].name for i in equations.u_independent]
    return (
        (*q, *u, *(state.name for state in definition.auxiliary_states)),
        tuple(signal.name for signal in definition.inputs),
        tuple(parameter.name for parameter in definition.parameters if not parameter.calculated),
    )


def right_hand_side(derivation: Derivation) -> RightHandSide:
    """Return the equations of motion of a derivation as a NumPy callable."""
    program = derivation.program
    x0, r0, p0 = start_values(derivation)
    evaluate = evaluation.evaluator(program, "rhs")
    states, inputs, parameters = _names(derivation)
    return RightHandSide(
        states=states,
        inputs=inputs,
        parameters=parameters,
        x0=x0,
        r0=r0,
        p0=p0,
        evaluate=evaluate,
        evaluate_outputs=evaluation.evaluator(program, "outputs", memory=evaluate.memory),
        output_names=program.entries["outputs"].labels,
        program=program,
        memory=evaluate.memory,
    )
