"""Kinds of robot files, recognized by the suffix of their names; light, since every command requests it."""

from __future__ import annotations

from pathlib import Path

URDF, MJCF, SDF = "a URDF file", "an MJCF file", "an SDF file"
ROBOT_FILE_KINDS = {".urdf": URDF, ".xacro": URDF, ".xml": MJCF, ".mjcf": MJCF, ".sdf": SDF}
"""Suffix → kind in words."""


def is_robot_file(path: Path | str) -> bool:
    """Return whether a file is a robot description, by its name."""
    return Path(path).suffix.lower() in ROBOT_FILE_KINDS
