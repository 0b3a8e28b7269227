"""Find mesh files of a robot: relative names, ``file://``, and ``package://`` without ROS."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath

MESH_SUFFIXES = {".stl", ".obj", ".dae", ".ply", ".off", ".glb", ".gltf"}


class MeshNotFoundError(Exception):
    """A mesh cannot be found; the text says why."""


def find_mesh_file(name: str, source: Path, packages: Mapping[str, str]) -> Path:
    """Return the file that a robot means.

    Args:
        name: As the robot's file has it.
        source: The robot's file; relative names start at its folder.
        packages: Package → folder, relative ones from there, too. Others are looked for in ROS_PACKAGE_PATH, and among
            the folders above the robot's file and beside these.

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
    for folder in _package_folders(package, source, packages):
        if (folder / inside).is_file():
            return folder / inside
    raise MeshNotFoundError(f"{name} is not there: say where, by --package {package}=DIR")


def _package_folders(package: str, source: Path, packages: Mapping[str, str]) -> Iterator[Path]:
    """Yield the folders that may hold a package, the surest first."""
    if package in packages:
        yield source.parent / packages[package]
        return
    for entry in os.environ.get("ROS_PACKAGE_PATH", "").split(os.pathsep):
        if entry:
            yield Path(entry) if Path(entry).name == package else Path(entry) / package
    for folder in source.parents:
        if folder.name == package:
            yield folder
        yield folder / package
