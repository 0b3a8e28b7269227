"""Large units: a sample of their variables is tried, with all states in it, and what is left out is said."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import ball
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mb2fmu.audit import audit
from mb2fmu.audit.behaviour.fixture.trial_fixture import MAX_VARIABLES, MIN_VARIABLES_OF_A_KIND, TrialFixture
from mb2fmu.audit.description.description_import import parse_model_description


def described(states: int, parameters: int, outputs: int) -> TrialFixture:
    """Of an FMU with so many variables."""
    head = '<ScalarVariable name="{}" valueReference="{}" causality="{}" variability="{}">'
    kinds = [*["state"] * states, *["slope"] * states, *["parameter"] * parameters, *["output"] * outputs]
    lines = []
    for k, kind in enumerate(kinds, 1):
        causality = {"parameter": "parameter", "output": "output"}.get(kind, "local")
        fixed = "fixed" if kind == "parameter" else "continuous"
        real = f'<Real derivative="{k - states}"/>' if kind == "slope" else '<Real start="1"/>'
        lines.append(f"{head.format(f'{kind}{k}', k, causality, fixed)}{real}</ScalarVariable>")
    slopes = "".join(f'<Unknown index="{states + k + 1}"/>' for k in range(states))
    text = (
        '<fmiModelDescription fmiVersion="2.0" modelName="large" guid="g"><ModelExchange modelIdentifier="large"/>'
        f"<ModelVariables>{''.join(lines)}</ModelVariables><ModelStructure><Derivatives>{slopes}</Derivatives>"
        "</ModelStructure></fmiModelDescription>"
    )
    library = SimpleNamespace(description=parse_model_description(text.encode()))
    return TrialFixture(library, "ModelExchange", Path())  # type: ignore[arg-type]


@settings(max_examples=12)
@given(st.integers(0, 40), st.integers(0, 1500), st.integers(0, 1500))
def test_a_sample_has_all_states_and_some_of_each_kind(states: int, parameters: int, outputs: int) -> None:
    stage = described(states, parameters, outputs)
    total = 2 * states + parameters + outputs
    found = stage.variables_to_try
    names = [each.name for each in found]
    assert len(set(found)) == len(found) <= max(MAX_VARIABLES, 2 * states) + 2 * states + 2 * MIN_VARIABLES_OF_A_KIND
    assert [each.index for each in found] == sorted(each.index for each in found)
    for kind, count in {"state": states, "slope": states}.items():
        assert sum(name.startswith(kind) for name in names) == count
    for kind, count in {"parameter": parameters, "output": outputs}.items():
        assert sum(name.startswith(kind) for name in names) >= min(count, MIN_VARIABLES_OF_A_KIND)
    said = [text for text in stage.skipped if "variables" in text]
    assert len(said) == (len(found) < total)
    assert len(found) == total or total > MAX_VARIABLES


@pytest.mark.parametrize("wrong", [(), (700, 701, 702)])
def test_what_a_sample_leaves_out_is_read_at_its_start(wrong: tuple[int, ...], tmp_path: Path) -> None:
    """Three wrong start values in a row: fewer than every third variable is in the sample."""
    members = ball.contents(2, ("ModelExchange",))
    text = members["modelDescription.xml"].decode()
    line = (
        '<ScalarVariable name="height{}" valueReference="{}" variability="continuous" initial="exact">'
        '<Real start="{}"/></ScalarVariable>'
    )
    lines = [line.format(k, ball.REFERENCE["h"], 1 + (k in wrong)) for k in range(1, 2001)]
    many = text.replace("</ModelVariables>", "\n".join(lines) + "</ModelVariables>")
    members["modelDescription.xml"] = many.encode()
    found = audit(ball.pack(members, tmp_path / "unit.fmu"), only=("value.start",), run_checkers=False)
    assert found.faults == ()
    assert [each.where for each in found.findings] == [f'ModelExchange, "height{k}"' for k in wrong]
