"""Find mesh files of a robot: relative names, ``file://``, and ``package://`` without ROS."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from types import MappingProxyType

MESH_SUFFIXES = {".stl", ".obj", ".dae", ".ply", ".off", ".glb", ".gltf"}
NO_PACKAGES: Mapping[str, str] = MappingProxyType({})
_GAZEBO_VARIABLES = ("GZ_SIM_RESOURCE_PATH", "SDF_PATH")


class MeshNotFoundError(Exception):
    """A mesh cannot be found; the text says why."""


def find_mesh_file(name: str, source: Path, packages: Mapping[str, str]) -> Path:
    """Return the file that a robot means.

    Args:
        name: As the robot's file has it.
        source: The robot's file; relative names start at its folder.
        packages: Package → folder, relative ones from there, too. Others are searched for as
            :func:`iterate_package_folders` says.

    Raises:
        MeshNotFoundError: If it is no mesh's name, leaves its folder, or is nowhere.
    """
    if "\x00" in name or PurePosixPath(name).suffix.lower() not in MESH_SUFFIXES:
        raise MeshNotFoundError(f"{name!r} is no name of a mesh ({', '.join(sorted(MESH_SUFFIXES))})")
    scheme, sign, rest = name.partition("://")
    if sign and scheme not in {"package", "model", "file"}:
        raise MeshNotFoundError(f"{name} is not on this computer, and nothing is fetched")
    rest = rest if sign else name
    if ".." in PurePosixPath(rest).parts:
        raise MeshNotFoundError(f"{name} leaves its folder by ..")
    if not sign or scheme == "file":
        found = source.parent / rest if not rest.startswith("/") else Path(rest)
        if found.is_file():
            return found
        raise MeshNotFoundError(f"{name} is not there")
    package, _, inside = rest.partition("/")
    for folder in iterate_package_folders(package, source, packages):
        if (folder / inside).is_file():
            return folder / inside
    raise MeshNotFoundError(f"{name} is not there: say where, by --package {package}=DIR")


def iterate_package_folders(package: str, source: Path, packages: Mapping[str, str]) -> Iterator[Path]:
    """Yield the folders that may hold a package or a Gazebo model, the surest first.

    That is the one in ``packages``; else those that ``ROS_PACKAGE_PATH``, ``GZ_SIM_RESOURCE_PATH`` and ``SDF_PATH``
    list, and the folders above the file and beside these.
    """
    if package in packages:
        yield source.parent / packages[package]
        return
    for folder in iterate_resource_folders("ROS_PACKAGE_PATH", *_GAZEBO_VARIABLES):
        yield folder if folder.name == package else folder / package
    for folder in source.parents:
        if folder.name == package:
            yield folder
        yield folder / package


def iterate_resource_folders(*variables: str) -> Iterator[Path]:
    """Yield the folders that variables of the environment list; without variables, those of Gazebo."""
    for variable in variables or _GAZEBO_VARIABLES:
        for entry in os.environ.get(variable, "").split(os.pathsep):
            if entry:
                yield Path(entry)
