"""What only some commands need may be missing: the message says what to install, and everything else works."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from click.testing import CliRunner

from mb2fmu import deferred_imports
from mb2fmu.cli import commands
from mb2fmu.errors import ToolError
from mb2fmu.pipeline.run_and_report.fmu_and_report_publication import refuse_unrunnable_fmu
from mb2fmu.visualization import three_js

ROOT = Path(__file__).parents[2]
PART_OF_EVERY_INSTALLATION = {"audit", "meshes"}


def test_what_is_missing_is_reported_with_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    deferred_imports.require_packages("the audit", *(deferred_imports.PACKAGE_EXTRAS.keys() - {"mcp"}))
    monkeypatch.setattr(deferred_imports, "find_spec", lambda _module: None)
    with pytest.raises(ToolError, match=r"the audit needs what is not installed:(.|\n)*'mb2fmu\[audit,meshes\]'"):
        deferred_imports.require_packages("the audit", "lief", "trimesh")


def test_pages_and_proofs_say_what_they_draw_with(monkeypatch: pytest.MonkeyPatch) -> None:
    """A validation says so before anything is derived, not when its page is due."""
    monkeypatch.setattr(deferred_imports, "find_spec", lambda module: None if module == "trimesh" else module)
    for needy in (three_js.read_three_js_source, lambda: refuse_unrunnable_fmu({})):
        with pytest.raises(ToolError, match=r"trimesh is missing(.|\n)*'mb2fmu\[meshes\]'"):
            needy()


@pytest.mark.parametrize("command", ["simulate", "linearize"])
def test_a_plot_is_refused_before_anything_is_derived(command, tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = tmp_path / "never_read.py"
    model.write_text("raise SystemExit('it was read')\n")
    for name, missing, words in (
        ("swing.svg", "matplotlib", "pip install 'mb2fmu[plot]'"),
        ("swing.bmp", "", "a picture cannot be .bmp"),
    ):
        monkeypatch.setattr(
            deferred_imports, "find_spec", lambda module, gone=missing: None if module == gone else module
        )
        done = CliRunner().invoke(commands, [command, str(model), "--plot", str(tmp_path / name)])
        assert done.exit_code in {2, 3}
        assert words in done.output
        assert not (tmp_path / name).exists()


def test_every_module_is_brought_by_its_extra() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for module, extra in deferred_imports.PACKAGE_EXTRAS.items():
        wanted = [text.partition(">")[0].replace("-", "_") for text in project["optional-dependencies"][extra]]
        assert module in wanted
        basic = [text for text in project["dependencies"] if text.replace("-", "_").startswith(module)]
        assert bool(basic) == (extra in PART_OF_EVERY_INSTALLATION)  # what `run` needs comes without an extra


@pytest.mark.parametrize("command", ["audit", "export"])
def test_commands_without_extras(command, tmp_path) -> None:
    """Export does without, and without the units of SymPy; the audit says what it needs, before it begins."""
    hidden = "; ".join(f"sys.modules[{module!r}] = None" for module in deferred_imports.PACKAGE_EXTRAS)
    code = (
        "import sys, importlib.util as u; find = u.find_spec\n"
        f"hidden = {set(deferred_imports.PACKAGE_EXTRAS)!r}\n"
        "u.find_spec = lambda name, *a: None if name in hidden else find(name, *a)\n"
        "import atexit\n"
        "atexit.register(lambda: print('units' if 'sympy.physics.units' in sys.modules else 'no units'))\n"
        f"{hidden}\nfrom mb2fmu.cli import main\nmain()"
    )
    unit = tmp_path / "unit.fmu"
    unit.write_bytes(b"")
    given = {"audit": [str(unit)], "export": [str(ROOT / "models/simple_pendulum.py"), "-o", str(tmp_path / "out")]}
    done = subprocess.run(
        [sys.executable, "-c", code, command, *given[command]],
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    if command == "export":
        assert done.returncode == 0, done.stderr
        assert done.stdout.splitlines()[-1] == "no units"
    else:
        assert done.returncode == 3
        assert "pip install 'mb2fmu[audit]'" in done.stderr


def test_a_deferred_package_is_complete_once_its_names_are_read() -> None:
    """Modules of ``sympy.physics`` come without its units; whoever asks for a name of the package gets it."""
    code = (
        "import sys\n"
        "from mb2fmu.deferred_imports import DeferredPackageFinder\n"
        "sys.meta_path.insert(0, DeferredPackageFinder('sympy.physics'))\n"
        "import sympy, sympy.physics.mechanics as me\n"
        "from sympy.physics import vector\n"
        "assert sympy.physics.vector is vector\n"
        "assert 'sympy.physics.units' not in sys.modules\n"
        "assert not hasattr(sympy.physics, 'nothing_of_it')\n"
        "from sympy.physics import *\n"
        "assert units is sys.modules['sympy.physics.units']\n"
        "assert msigma(1).shape == (2, 2)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr


def test_scipy_is_imported_without_packages_that_wait() -> None:
    """It reads all names of NumPy, and two packages take half of its time; whoever uses them gets them."""
    code = (
        "import sys\n"
        "from mb2fmu.deferred_imports import DeferredPackageFinder\n"
        "sys.meta_path[:0] = map(DeferredPackageFinder, ('numpy.f2py', 'numpy.testing', 'scipy.spatial'))\n"
        "import numpy, scipy.linalg\n"
        "assert not {'numpy.f2py.crackfortran', 'numpy.testing._private.utils'} & set(sys.modules)\n"
        "numpy.testing.assert_allclose(scipy.linalg.null_space([[1.0, 0.0]]), [[0.0], [1.0]])\n"
        "assert callable(numpy.f2py.run_main)\n"
        "from scipy.spatial.transform import Rotation\n"
        "assert Rotation.identity().magnitude() == 0.0\n"
        "assert 'scipy.spatial._qhull' not in sys.modules\n"
        "from scipy.spatial import ConvexHull\n"
        "assert len(ConvexHull([[0, 0], [1, 0], [0, 1]]).vertices) == 3\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
