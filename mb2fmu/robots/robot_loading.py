"""``load_robot``: from a robot file and its neighbouring files to a ``Model``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from mb2fmu.errors import Fault, ModelError
from mb2fmu.model.model import Model
from mb2fmu.robots.description.robot_description import RobotDescription
from mb2fmu.robots.file_formats.mjcf_import import read_mjcf
from mb2fmu.robots.file_formats.sdf_import import read_sdf
from mb2fmu.robots.file_formats.urdf_import import read_urdf
from mb2fmu.robots.file_formats.xacro_expansion import expand_xacro_macros
from mb2fmu.robots.model_from_robot import make_model_from_robot
from mb2fmu.robots.robot_file_suffixes import MJCF, ROBOT_FILE_KINDS, SDF, URDF
from mb2fmu.robots.robot_settings import RobotSettings, parse_robot_settings, read_robot_settings_file
from mb2fmu.robots.tree.articulated_tree import SETTINGS_HEADLINE, build_articulated_tree
from mb2fmu.robots.tree.robot_mechanics_records import RobotMechanics

SETTINGS_FILE = "robot.toml"

RobotFileReader = Callable[[bytes, Path, Mapping[str, str]], RobotDescription]
"""Reads a file's content; the last argument says where packages are."""
ModelKind = TypeVar("ModelKind", bound=Model)

_READERS: dict[str, RobotFileReader] = {
    URDF: lambda content, path, _: read_urdf(content, path),
    MJCF: lambda content, path, _: read_mjcf(content, path, read_included_robot_file),
    SDF: lambda content, path, packages: read_sdf(content, path, read_included_robot_file, packages),
}


def load_robot(path: Path | str, arguments: Mapping[str, Any], kind: type[ModelKind]) -> ModelKind:
    """Return the model of a robot file.

    Settings come from ``<file's name>.toml`` beside it, else ``robot.toml``, and then from the arguments; the argument
    ``settings`` names another side file.

    Args:
        path: URDF; xacro (macros take the package ``xacrodoc`` or ``xacro``); MJCF; SDF.
        arguments: Name → value of settings (:class:`RobotSettings`).
        kind: Class of the model.

    Raises:
        ModelError: With every fault of the file, or of the settings.
    """
    path = Path(path)
    if not path.is_file():
        raise ModelError("no model could be loaded:", [Fault("there is no such file", str(path))])
    path = path.absolute()
    arguments = dict(arguments)
    side_file = _find_settings_file(path, arguments.pop("settings", None))
    settings, faults = (
        (RobotSettings(), []) if side_file is None else read_robot_settings_file(side_file.read_bytes(), side_file)
    )
    settings, further = parse_robot_settings(arguments, "argument", settings)
    format_ = ROBOT_FILE_KINDS[path.suffix.lower()]
    if faults or further:
        known = _setting_name_faults(lambda: _read_robot(path, format_, settings), settings)
        raise ModelError("the robot's settings cannot be used:", [*faults, *further, *known])
    model = make_model_from_robot(_read_robot(path, format_, settings), settings, kind, format_)
    assert isinstance(model.mechanics, RobotMechanics)
    model.mechanics.settings_file, model.mechanics.arguments = side_file, frozenset(arguments)
    return model


def _read_robot(path: Path, format_: str, settings: RobotSettings) -> RobotDescription:
    """Return the content of a robot's file."""
    return _READERS[format_](read_robot_file(path, settings.packages), path, settings.packages)


def _setting_name_faults(read: Callable[[], RobotDescription], settings: RobotSettings) -> Sequence[Fault]:
    """Return the faults of a file, or those of the names in its other settings: no faults that follow from others."""
    try:
        description = read()
    except ModelError as error:
        return error.faults
    try:
        build_articulated_tree(description, settings)
    except ModelError as error:
        return error.faults if error.headline == SETTINGS_HEADLINE else ()
    return ()


def read_robot_file(path: Path, packages: Mapping[str, str]) -> bytes:
    """Return the content of a robot's file, with the macros of an xacro file expanded.

    Args:
        path: Of the file.
        packages: Package → folder, as in the settings.

    Raises:
        OSError: If it cannot be read.
        ModelError: If macros cannot be expanded.
    """
    return expand_xacro_macros(path.read_bytes(), path, packages)


def read_included_robot_file(path: Path) -> bytes | None:
    """Return the content of an included file; None if it does not exist or cannot be read."""
    try:
        return path.read_bytes() if path.is_file() else None
    except OSError:  # a name that is too long, a file of somebody else
        return None


def _find_settings_file(path: Path, named: str | None) -> Path | None:
    """Find the file of settings; None if there is none."""
    if named is not None:
        beside = path.parent / named
        if not beside.is_file():
            raise ModelError("the robot's settings cannot be read:", [Fault("there is no such file", named)])
        return beside
    for name in (f"{path.stem}.toml", SETTINGS_FILE):
        beside = path.parent / name
        if beside.is_file():
            return beside
    return None
