"""Expand the macros of xacro files by the package ``xacrodoc`` or ``xacro``, whichever is installed.

Both evaluate expressions of the file, and neither needs ROS. The independent import reads the expanded text, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from mb2fmu.errors import Fault, ModelError

_MARKS = (b"<xacro:", b"${", b"$(")


def expand_xacro_macros(content: bytes, path: Path, packages: Mapping[str, str]) -> bytes:
    """Return the content of a robot's file, of an xacro file with macros the expanded text.

    Where neither package is installed, it is returned as it is: reading it says what to do.

    Args:
        content: Of the file.
        path: Of the file, which the package reads itself, with the files that it includes.
        packages: ROS package → folder, relative ones from the file's, for ``$(find …)``; others are found by their
            ``package.xml`` above the file. The package ``xacro`` asks ROS instead.

    Raises:
        ModelError: If the package finds a fault.
    """
    if path.suffix.lower() != ".xacro" or not any(mark in content for mark in _MARKS):
        return content
    package = next((name for name in ("xacrodoc", "xacro") if find_spec(name) is not None), None)
    if package is None:
        return content
    try:
        module: Any = import_module(package)
        if package == "xacrodoc":
            folders = {name: str(path.absolute().parent / folder) for name, folder in packages.items()}
            module.packages.update_package_cache(folders)
            # Names of meshes stay as they are: one that is not there is no fault, and no folder gets into an FMU.
            text = str(module.XacroDoc.from_file(str(path), resolve_packages=False).dom.toxml())
        else:
            text = str(module.process_file(str(path)).toxml())
    except Exception as error:
        fault = Fault(" ".join(f"{type(error).__name__}: {error}".split()), path.name, f"{package} expands the macros")
        raise ModelError("the macros of the robot's file cannot be expanded:", [fault]) from error
    return text.encode()
