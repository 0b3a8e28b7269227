"""The equations of motion as a NumPy callable: of a derivation, of a model, and as a method of ``Model``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Unpack, cast

import numpy as np
import numpy.typing as npt

import mb2fmu.model
from mb2fmu import robots
from mb2fmu.mechanics.equations import notebook_display_registry
from mb2fmu.pipeline.derivation import model_derivation
from mb2fmu.pipeline.derivation.formulation_and_build_options import FormulationOptions
from mb2fmu.pipeline.derivation.model_derivation import AnyModel, derive
from mb2fmu.pipeline.derivation.right_hand_side import RightHandSide
from mb2fmu.pipeline.derivation.right_hand_side_of_derivation import right_hand_side

if TYPE_CHECKING:
    from mb2fmu.analysis.studies.compiled_model_ensembles import CompiledModelEnsemble
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
                inertia, mimic, packages, outputs, loads, energy, stop, step, excitation (docs/reference/robots.md);
                they replace those of the side file.

        Raises:
            ModelError: With every fault of the file.
        """
        return robots.load_robot(path, settings, cls)

    def __repr__(self) -> str:
        """Return a line: the model's name and description."""
        return f"<Model {self.name}: {self.description}>" if self.description else f"<Model {self.name}>"

    def _repr_html_(self) -> str:
        """Return the declarations as a table, for notebooks."""
        return notebook_display_registry.render_record_as_html(self)

    def compile(self, **options: Unpack[FormulationOptions]) -> CompiledModelEnsemble:
        """Compile the model for many instances: ``model.compile().simulate(1000, {"m": masses})``."""
        from mb2fmu.pipeline.simulation.model_ensemble_compilation import compile_model_ensemble

        return compile_model_ensemble(self, **options)

    def rhs(self, method: Method | Literal["auto"] = "auto") -> RightHandSide:
        """Return the equations of motion as a NumPy callable, without any FMU."""
        return rhs(self, method=method)


def load(path: Path | str, arguments: Mapping[str, Any] | None = None) -> Model:
    """Return the model of a model file's function, of a shipped model, or of a robot description.

    Args:
        path: A Python file, the name of a model that comes with mb2fmu, or a robot file (URDF, MJCF, SDF).
        arguments: Replace the function's defaults, or the robot's settings.

    Raises:
        ModelError: If the file cannot be loaded; with every fault.

    Example:
        >>> import mb2fmu
        >>> mb2fmu.load("n_link_pendulum", {"n": 3}).name
        'NLinkPendulum'
    """
    return cast("Model", model_derivation.load(path, arguments, Model))  # user files import this very class


def rhs(
    model: AnyModel, *, arguments: Mapping[str, Any] | None = None, **options: Unpack[FormulationOptions]
) -> RightHandSide:
    """Return the equations of motion of a model as a NumPy callable; arguments as for :func:`derive`.

    Example:
        >>> import mb2fmu
        >>> f = mb2fmu.rhs("simple_pendulum")
        >>> float(f(0.0, [0.0, 1.5])[0])  # x' = f(t, x), x = (theta, omega)
        1.5
    """
    return right_hand_side(derive(model, arguments=arguments, **options))
