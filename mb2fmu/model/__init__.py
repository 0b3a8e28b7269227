"""Model: the user's declarations of a mechanism, and their checks.

Input: a model file (``load``) or a ``Model`` built in Python. Output: ``CheckedModel`` (``check_model``), a frozen
record.

Promises: every fault that can be found without forming equations is raised at once, in one ``ModelError``, in plain
words, with the line of the declaration and a remedy; a ``CheckedModel`` has every symbol declared once, names that
are legal and unique, units that are known, coordinates and speeds in the mechanics' order. The user's SymPy objects are
as before: nothing is called that writes into their caches.

Must not: form equations, compute velocities, know of FMUs beyond the rules for names, or touch the disk outside of
``loading`` and ``template``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mb2fmu.deferred_imports import import_on_first_use

if TYPE_CHECKING:
    from mb2fmu.model.checked_model import CheckedModel
    from mb2fmu.model.checks.model_definition_checks import check_model
    from mb2fmu.model.declarations.appearance_declarations import Box, Cylinder, Ellipsoid, Mesh, Sphere
    from mb2fmu.model.declarations.declared_content_and_experiment import DeclaredExperiment, DeclaredModelContent
    from mb2fmu.model.model import Model, OutputRequest
    from mb2fmu.model.model_loading import ModelListEntry, list_models, load, shipped_models_folder
    from mb2fmu.model.model_template import write_model_template
    from mb2fmu.model.script_import.mechanics_from_script import read_script
    from mb2fmu.model.sources.mechanics_source import Mechanics
    from mb2fmu.model.sources.parts_mechanics_source import Parts
    from mb2fmu.model.sources.quaternion_orientation import orient_by_quaternion

__all__ = [
    "Box",
    "CheckedModel",
    "Cylinder",
    "DeclaredExperiment",
    "DeclaredModelContent",
    "Ellipsoid",
    "Mechanics",
    "Mesh",
    "Model",
    "ModelListEntry",
    "OutputRequest",
    "Parts",
    "Sphere",
    "check_model",
    "list_models",
    "load",
    "orient_by_quaternion",
    "read_script",
    "shipped_models_folder",
    "write_model_template",
]

__getattr__ = import_on_first_use(
    __name__,
    {
        "checks.model_definition_checks": "check_model",
        "declarations.declared_content_and_experiment": "DeclaredModelContent DeclaredExperiment",
        "declarations.appearance_declarations": "Box Cylinder Ellipsoid Mesh Sphere",
        "model": "Model OutputRequest",
        "checked_model": "CheckedModel",
        "model_loading": "ModelListEntry list_models load shipped_models_folder",
        "model_template": "write_model_template",
        "script_import.mechanics_from_script": "read_script",
        "sources.mechanics_source": "Mechanics",
        "sources.parts_mechanics_source": "Parts",
        "sources.quaternion_orientation": "orient_by_quaternion",
    },
)
