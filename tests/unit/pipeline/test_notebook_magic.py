"""``%%mb2fmu`` in IPython's shell: a model is validated and shown, a wrong one is a message."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from shorter_validations import shorten_validations

import mb2fmu

MECHANICS = """
import sympy as sm
import sympy.physics.mechanics as me
from mb2fmu import Model
q, u = me.dynamicsymbols("q u")
m, k = sm.symbols("m k")
N, O = me.ReferenceFrame("N"), me.Point("O")
O.set_vel(N, 0)
P = O.locatenew("P", q * N.x)
P.set_vel(N, u * N.x)
kane = me.KanesMethod(N, [q], [u], [q.diff() - u], bodies=[me.Particle("block", P, m)], forcelist=[(P, -k * q * N.x)])
def declared(model):
    model.parameter(m, 1.5, "kg", min=0.1)
    model.parameter(k, 20.0, "N/m")
    model.coordinate(q, 0.2, "m")
    model.speed(u, 0.0, "m/s")
    model.output_position("block", P)
    return model
"""
FUNCTION = 'def slider() -> Model:\n    return declared(Model("Slider", kane))\n'


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    shells = pytest.importorskip("IPython.core.interactiveshell", reason="a cell magic needs IPython")
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    monkeypatch.chdir(tmp_path)
    made = shells.InteractiveShell()
    made.history_manager.enabled = False
    made.run_cell("%load_ext mb2fmu")
    made.run_cell(MECHANICS)
    yield made
    made.history_manager.end_session()


def test_a_cell_is_validated_and_shows_verdict_and_motion(
    shell: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shorten_validations(monkeypatch)
    done = shell.run_cell(f"%%mb2fmu -o results --fmi 3\n{FUNCTION}")
    assert done.success
    assert done.result.passed
    assert done.result.path.resolve() == (tmp_path / "results" / "Slider.fmu").resolve()
    assert done.result.report.is_file()
    shown = done.result._repr_html_()
    assert "passed" in shown
    assert shown.count("<iframe") == 2  # the motion, and the report
    assert shell.run_cell("_.passed, slider().name").result == (True, "Slider")  # what the cell defines stays


@pytest.mark.parametrize(
    "cell",
    [FUNCTION, 'first = declared(Model("Slider", kane))', 'declared(Model("Slider", kane))',
     f'other = declared(Model("Other", kane))\n{FUNCTION}'],
)  # fmt: skip
def test_the_model_of_a_cell_is_found(cell: str, shell: Any, tmp_path: Path) -> None:
    done = shell.run_cell(f"%%mb2fmu --no-validate\n{cell}")
    assert done.success
    assert done.result.name == "Slider"
    assert done.result["q"][0] == pytest.approx(0.2)
    assert "<iframe" in done.result._repr_html_()
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("line", "cell", "words"),
    [
        ("", "x = 1", "the cell makes no model"),
        ("", 'Model("Bare", kane)', "m"),
        ("--fmi 4", FUNCTION, "invalid choice"),
        ("--wrong", FUNCTION, "unrecognized arguments"),
    ],
)
def test_what_is_wrong_is_a_message_and_the_cell_fails(
    line: str, cell: str, words: str, shell: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    done = shell.run_cell(f"%%mb2fmu {line}\n{cell}")
    assert isinstance(done.error_in_exec, mb2fmu.Mb2FmuError), done
    assert words in str(done.error_in_exec)
    printed = capsys.readouterr().out
    assert words in printed
    assert "Traceback" not in printed


def test_a_cell_that_raises_is_shown_as_any_other(shell: Any, capsys: pytest.CaptureFixture[str]) -> None:
    done = shell.run_cell("%%mb2fmu\na = 0\n1 / a")
    assert isinstance(done.error_in_exec, ZeroDivisionError)
    printed = capsys.readouterr().out
    assert "ZeroDivisionError" in printed
    assert "2 1 / a" in re.sub(r"\x1b\[[0-9;]*m", "", printed)  # the line of the cell


def test_the_extension_is_found_and_no_public_name() -> None:
    assert callable(mb2fmu.load_ipython_extension)
    assert "load_ipython_extension" not in mb2fmu.__all__
