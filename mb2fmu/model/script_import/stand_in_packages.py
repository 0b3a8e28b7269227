"""Stand-ins for packages that only draw, show or solve, where a script imports them and they are not needed.

A stand-in answers every attribute, call, index and arithmetic with another stand-in, so that what a script does with a
figure before it integrates does not end it. As a number it is NaN: no value comes from an absent package.
"""

from __future__ import annotations

import dis
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import ModuleType
from typing import Any, Self

import numpy as np

DRAWING_PACKAGES = frozenset(
    [
        "IPython",
        "line_profiler",
        "memory_profiler",
        "PIL",
        "PyQt5",
        "PyQt6",
        "PySide2",
        "PySide6",
        "altair",
        "assimulo",
        "autograd",
        "bokeh",
        "bpy",
        "bqplot",
        "cairo",
        "casadi",
        "celluloid",
        "colorama",
        "control",
        "cv2",
        "cvxpy",
        "cyipopt",
        "dash",
        "diffrax",
        "dill",
        "do_mpc",
        "gekko",
        "graphviz",
        "gym",
        "gymnasium",
        "h5py",
        "holoviews",
        "hvplot",
        "imageio",
        "ipopt",
        "ipycanvas",
        "ipydex",
        "ipympl",
        "ipywidgets",
        "jax",
        "joblib",
        "jupyterthemes",
        "k3d",
        "manim",
        "manimlib",
        "matplotlib",
        "mayavi",
        "meshcat",
        "moviepy",
        "mpl_toolkits",
        "mpld3",
        "mujoco",
        "nbagg",
        "networkx",
        "nlopt",
        "numba",
        "numbalsoda",
        "numexpr",
        "open3d",
        "openpyxl",
        "optuna",
        "osqp",
        "pandas",
        "panel",
        "plotly",
        "psutil",
        "pybullet",
        "pycvodes",
        "pydot",
        "pygame",
        "pyglet",
        "pyodeint",
        "pyodesys",
        "pyomo",
        "pyqtgraph",
        "pyswarms",
        "pythreejs",
        "pyvista",
        "pyvistaqt",
        "qpsolvers",
        "quadprog",
        "qutip",
        "rerun",
        "rich",
        "scienceplots",
        "scikits",
        "seaborn",
        "sklearn",
        "sksundae",
        "slycot",
        "sounddevice",
        "stable_baselines3",
        "statsmodels",
        "streamlit",
        "sundials",
        "symjit",
        "symmeplot",
        "tabulate",
        "termcolor",
        "theano",
        "tikzplotlib",
        "tkinter",
        "torch",
        "torchdiffeq",
        "tqdm",
        "trimesh",
        "turtle",
        "vedo",
        "visual",
        "vpython",
        "vtk",
        "xlrd",
        "yaml",
    ]
)
"""Packages without which a mechanism can be derived: they draw, show, speed up or optimize."""

OBSERVED_PACKAGES = frozenset({"opty", "pydy", "pydy_code_gen"})
"""Packages whose classes are watched; ``integrator_call_recording.make_package_stand_ins`` fills their stand-ins."""

REPLACED_PACKAGES = OBSERVED_PACKAGES | {"IPython", "matplotlib", "mpl_toolkits", "pylab", "seaborn"}
"""Packages that are stood in for even where they are installed: watched ones, and those that show pictures, which may
lack, or draw in a style that the installed version has no longer."""

_PYPLOT_NAMES = (
    "annotate", "arrow", "axes", "axhline", "axis", "axvline", "bar", "cla", "clf", "close", "colorbar", "contour",
    "contourf", "draw", "errorbar", "figtext", "figure", "fill", "fill_between", "gca", "gcf", "grid", "hist",
    "hlines", "imshow", "ioff", "ion", "legend", "loglog", "pause", "plot", "quiver", "rc", "rcParams", "savefig",
    "scatter", "semilogx", "semilogy", "setp", "show", "step", "stem", "style", "subplot", "subplots",
    "subplots_adjust", "suptitle", "text", "tick_params", "tight_layout", "title", "twinx", "vlines", "xlabel",
    "xlim", "xscale", "xticks", "ylabel", "ylim", "yscale", "yticks",
)  # fmt: skip
"""What scripts use of ``from matplotlib.pyplot import *``."""


class PackageStandIn:
    """An object that takes part in everything and does nothing."""

    def __init__(self, *_: Any, **__: Any) -> None: ...

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        return _make_named_stand_in(name)

    def __call__(self, *arguments: Any, **_: Any) -> Any:
        """Return the decorated function where it stands in for a decorator, else a stand-in."""
        if len(arguments) == 1 and callable(arguments[0]) and hasattr(arguments[0], "__code__"):
            return arguments[0]
        return PackageStandIn()

    def __iter__(self) -> Iterator[Any]:
        """Yield as many as the caller unpacks; none where it loops."""
        return iter([PackageStandIn() for _ in range(_count_unpacked_names(sys._getframe(1)))])  # noqa: SLF001 - no public way

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None: ...

    def __getitem__(self, _: Any) -> PackageStandIn:
        return PackageStandIn()

    def __setitem__(self, _: Any, __: Any) -> None: ...

    def __len__(self) -> int:
        return 0

    def __bool__(self) -> bool:
        return False

    def __float__(self) -> float:
        """Return no number: what a script reads by an absent package is a value that nobody knows."""
        return float("nan")

    def _combine(self, *_: Any) -> Any:
        return PackageStandIn()

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = __pow__ = _combine
    __neg__ = __matmul__ = __or__ = __and__ = _combine

    def _compare(self, _: object) -> bool:
        """Return what NaN answers."""
        return False

    __lt__ = __le__ = __gt__ = __ge__ = _compare


def _make_named_stand_in(name: str) -> Any:
    """Return a class for a name that is written as one, else an object."""
    return type(name, (PackageStandIn,), {}) if name[:1].isupper() else PackageStandIn()


def _count_unpacked_names(frame: Any) -> int:
    """Return to how many names the running line of a frame unpacks; 0 if it unpacks nothing."""
    for instruction in dis.get_instructions(frame.f_code):
        if instruction.offset == frame.f_lasti:
            return int(instruction.arg or 0) if instruction.opname == "UNPACK_SEQUENCE" else 0
    return 0


class _StandInModule(ModuleType):
    """A module of which every name is a stand-in."""

    __path__: list[str] = []  # noqa: RUF012 - what makes it a package

    def __getattr__(self, name: str) -> Any:
        if name == "__all__":
            return []
        if name == "__version__":
            return "999.0"  # SymPy's own plots require a least version
        if name.startswith("__"):
            raise AttributeError(name)
        return _make_named_stand_in(name)


class _StandInFinder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Makes modules of packages that may be absent."""

    def __init__(self, contents: dict[str, dict[str, Any]]) -> None:
        self.contents = contents

    def find_spec(
        self, fullname: str, _path: Sequence[str] | None, _target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Return a spec for a module of a known package."""
        top = fullname.partition(".")[0]
        if top not in DRAWING_PACKAGES | REPLACED_PACKAGES:
            return None
        return importlib.util.spec_from_loader(fullname, self, is_package=True)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        """Return an empty module, filled with what is watched in it."""
        module = _StandInModule(spec.name)
        vars(module).update(self.contents.get(spec.name, {}))
        if spec.name in {"matplotlib.pyplot", "matplotlib.pylab", "pylab"}:
            numeric = {name: vars(np)[name] for name in np.__all__} if spec.name.endswith("pylab") else {}
            vars(module).update(numeric, np=np, __all__=["np", *numeric, *_PYPLOT_NAMES])
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Run nothing."""


@contextmanager
def install_package_stand_ins(contents: dict[str, dict[str, Any]]) -> Iterator[None]:
    """Let imports of absent drawing packages succeed; forget the stand-ins afterwards.

    Args:
        contents: Module → its names that are watched, of ``OBSERVED_PACKAGES``.
    """
    finder = _StandInFinder(contents)
    renamed = _load_renamed_modules()
    hidden = {name: sys.modules.pop(name) for name in list(sys.modules) if name.partition(".")[0] in REPLACED_PACKAGES}
    observed = _PriorityStandInFinder(contents)
    sys.meta_path.insert(0, observed)
    sys.meta_path.append(finder)
    try:
        yield
    finally:
        sys.meta_path.remove(observed)
        sys.meta_path.remove(finder)
        for name in [name for name, module in sys.modules.items() if isinstance(module, _StandInModule)]:
            del sys.modules[name]
        for name in renamed:
            sys.modules.pop(name, None)
        sys.modules.update(hidden)


_RENAMED_MODULES = {"sympy.physics._biomechanics": "sympy.physics.biomechanics"}
"""Modules of SymPy that older scripts import by another name."""


def _load_renamed_modules() -> list[str]:
    """Make renamed modules known by their old names, and return these."""
    added = [old for old in _RENAMED_MODULES if old not in sys.modules and importlib.util.find_spec(old) is None]
    for old in added:
        sys.modules[old] = importlib.import_module(_RENAMED_MODULES[old])
    return added


class _PriorityStandInFinder(_StandInFinder):
    """Stands in for packages before installed ones are found."""

    def find_spec(
        self, fullname: str, _path: Sequence[str] | None, _target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Return a spec for a module of a replaced package alone."""
        if fullname.partition(".")[0] not in REPLACED_PACKAGES:
            return None
        return super().find_spec(fullname, _path, _target)
