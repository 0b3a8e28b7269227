"""The Modelica target: another compiler reads it and moves as the equations do; what it cannot say is refused."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from mb2fmu import pipeline
from mb2fmu.cli import commands
from mb2fmu.emit.modelica.equation_printing import number
from mb2fmu.emit.modelica.flat_model import identifiers
from mb2fmu.errors import EmitError
from mb2fmu.pipeline.coupled import whole_motion
from mb2fmu.pipeline.language_targets import PRINTERS

MODELS = Path(__file__).parents[3] / "models"
rumoca = pytest.importorskip("rumoca", reason="the compiler of Modelica that judges is not installed")


def errors(name: str, *, planted: tuple[str, str] | None = None) -> dict[str, float]:
    """Largest error of each state over 1 s, of its own size, inputs at their start values."""
    derivation = pipeline.derive(MODELS / f"{name}.py")
    model = derivation.definition.name
    source = PRINTERS["modelica"](derivation)[f"{model}.mo"].decode()
    if planted is not None:
        assert planted[0] in source
        source = source.replace(*planted, 1)
    held = f"model {model}Held" in source
    compiled = rumoca.Session().loads(source, model=f"{model}{'Held' if held else ''}", filename=f"{model}.mo")
    found = compiled.simulate(t=(0.0, 1.0), dt=0.1, config=rumoca.SimConfig(rtol=1e-12, atol=1e-13))
    truth = whole_motion(derivation, np.array(found.time))
    states = re.findall(r"^  Real (\w+)\(.*fixed = true", source, flags=re.MULTILINE)
    assert len(states) == len(derivation.program.layout.states)
    return {
        own: float(
            np.max(np.abs(np.array(found[f"unit.{shown}" if held else shown]) - truth[own]))
            / max(np.max(np.abs(truth[own])), 1e-3)
        )
        for own, shown in zip(list(truth)[: len(states)], states, strict=True)
    }


@pytest.mark.parametrize("name", ["simple_pendulum", "cart_pole", "double_pendulum", "heavy_top", "rigid_body"])
def test_another_compiler_moves_alike(name: str) -> None:
    """rumoca sorts the equations, solves their linear systems and integrates them by a method of its own."""
    assert max(errors(name).values()) <= 1e-8


def test_a_planted_sign_is_seen() -> None:
    assert max(errors("cart_pole", planted=("der(theta) = ", "der(theta) = -")).values()) > 1e-3


def test_what_modelica_cannot_say_is_refused_by_name() -> None:
    with pytest.raises(EmitError, match="Newton's method"):
        PRINTERS["modelica"](pipeline.derive(MODELS / "four_bar.py"))


def test_the_command_writes_the_file(tmp_path: Path) -> None:
    command = ["equations", str(MODELS / "cart_pole.py"), "--format", "modelica", "-o", str(tmp_path)]
    done = CliRunner().invoke(commands, command)
    assert done.exit_code == 0, done.output
    text = (tmp_path / "CartPole.mo").read_text()
    assert 'parameter Real M(unit = "kg", min = 1e-06) = 1.0 "mass of the cart";' in text
    assert 'Real theta(unit = "rad", start = 0.1, fixed = true' in text
    assert "experiment(StartTime = 0.0" in text


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_numbers_read_back_to_the_same_bits(value: float) -> None:
    assert float(number(value).strip("()")).hex() == value.hex()


@given(st.lists(st.text(max_size=8), max_size=8, unique=True))
def test_names_are_identifiers_and_each_stands_once(names: list[str]) -> None:
    found = identifiers(["der", "v12", "bob.x", "bob_x", *names])
    assert len(set(found)) == len(found)
    assert all(re.fullmatch(r"[A-Za-z_]\w*", each, flags=re.ASCII) for each in found)
    assert not {"der", "v12"} & set(found)
