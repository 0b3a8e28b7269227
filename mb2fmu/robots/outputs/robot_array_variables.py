"""A robot's variables as arrays: ``q``, ``v``, ``acceleration``, ``tau``, and requested quantities."""

from __future__ import annotations

import re
from collections.abc import Iterator

from mb2fmu.model.declarations.declared_outputs import OutputRequest
from mb2fmu.model.model import Model
from mb2fmu.model.quantity_declarations import Coordinate, Input, Speed
from mb2fmu.model.variable_naming import list_output_variable_names

ARRAY_NAMES = frozenset({"q", "v", "acceleration", "tau", "control", "desired_acceleration", "prescribed"})
"""What no joint is called where there are arrays."""

_EQUATION_ARRAY_NAMES = {
    "mass_matrix": "mass_matrix",
    "gravity_effort": "gravity_effort",
    "inverse_effort": "required_effort",
    "joint_effort": "tau",
}
"""Kind of an output of which there is one per speed or pair of speeds → array of all of them."""

_JACOBIAN_KINDS = {"partial_velocity", "partial_angular_velocity"}


def declare_robot_arrays(model: Model) -> None:
    """Declare the arrays of a robot whose variables and outputs are declared.

    Args:
        model: Of the robot. Arrays have its variables in their order.
    """
    coordinates = [item.name for item in model.declared if isinstance(item, Coordinate)]
    speeds = [item.name for item in model.declared if isinstance(item, Speed)]
    found = {
        "q": (coordinates, "positions, in the order of the scalars"),
        "v": (speeds, "speeds, in the order of the scalars"),
        "acceleration": ([f"der({name})" for name in speeds], "rates of the speeds"),
    }
    for name, item in _list_input_arrays(model, moves=bool(coordinates)):
        found.setdefault(name, ([], _INPUT_ARRAY_NAMES[name.rpartition(".")[2]]))[0].append(item)
    for name, (elements, text) in found.items():
        if elements:
            model.array(name, elements, description=text)
    _declare_output_arrays(model, len(speeds))


_INPUT_ARRAY_NAMES = {
    "force": "components of a force on a link",
    "torque": "components of a torque on a link",
    "tau": "efforts along the joints, in the order of the scalars of a unit without arrays",
    "control": "controls of the actuators",
    "desired_acceleration": "accelerations whose efforts are asked for",
    "q": "positions that are prescribed",
    "v": "speeds that are prescribed",
    "acceleration": "accelerations that are prescribed",
}


def _list_input_arrays(model: Model, *, moves: bool) -> Iterator[tuple[str, str]]:
    """Yield (array, input); prescribed motions are inputs where nothing else moves."""
    words = {"effort": "tau", "control": "control", "speed": "v", "acceleration": "acceleration"}
    for item in model.declared:
        if not isinstance(item, Input):
            continue
        word = item.name.split(".")[1]
        if word in {"force", "torque"}:
            yield item.name.rpartition(".")[0], item.name
        elif word.startswith("desired_"):
            yield "desired_acceleration", item.name
        elif word in {"effort", "control"}:
            yield words[word], item.name
        else:
            motion = words.get(word, "q")
            yield f"prescribed.{motion}" if moves else motion, item.name


def _declare_output_arrays(model: Model, speeds: int) -> None:
    """Declare outputs of the equations by kind, of frames by name."""
    groups: dict[str, list[str]] = {}
    for item in [each for each in model.declared if isinstance(each, OutputRequest)]:
        names = list_output_variable_names(item)
        if item.kind in _EQUATION_ARRAY_NAMES:
            groups.setdefault(_EQUATION_ARRAY_NAMES[item.kind], []).extend(names)
        elif item.kind in _JACOBIAN_KINDS:
            groups.setdefault(re.sub(r"\[.*", "", item.name), []).extend(names)
        elif len(names) > 1:
            groups.setdefault(item.name, []).extend(names)
    for name, elements in groups.items():
        rows = len(elements) // speeds if speeds and (name == "mass_matrix" or name.endswith(".jacobian")) else 0
        model.array(name, elements, shape=(rows, speeds) if rows else None)
