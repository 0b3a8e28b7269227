"""Stored references read back to the same bits, and tell when they are no longer true."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mb2fmu.errors import ValidationError
from mb2fmu.validation import Trajectory, make_reference
from mb2fmu.validation.reference import reference_files


@settings(max_examples=50, deadline=None)
@given(data=st.data(), rows=st.integers(1, 5), columns=st.integers(1, 3))
def test_they_read_back_to_the_same_bits(tmp_path_factory, data, rows, columns):
    numbers = st.floats(-1e300, 1e300)
    values = np.array(data.draw(st.lists(numbers, min_size=rows * columns, max_size=rows * columns)))
    trajectory = Trajectory(
        names=tuple(f"arm.q[{i},1]" for i in range(columns)),
        time=np.arange(rows) * 0.1,
        values=values.reshape(rows, columns),
        uncertainty=np.tile(np.abs(values[:columns]), (rows, 1)),
        provenance={"model": "Größe", "tolerances": [1e-12]},
    )
    folder = tmp_path_factory.mktemp("stored")
    reference_files.write_reference_trajectory_files(trajectory, folder)
    again = reference_files.read_reference_files(folder)
    assert again.names == trajectory.names
    assert again.values.tobytes() == trajectory.values.tobytes()
    assert again.time.tobytes() == trajectory.time.tobytes()
    assert again.uncertainty.tobytes() == trajectory.uncertainty.tobytes()
    assert reference_files.explain_outdated_reference(again, trajectory) == ()


def test_an_excerpt_is_small_and_ends_where_knowledge_does(cases):
    case = cases["double_pendulum"]((2.5, 1.0), stop=15.0, step=0.02)
    reference = make_reference(case.definition, case.equations)
    made = reference_files.take_reference_excerpt(reference)
    assert 20 <= len(made.time) <= reference_files.MAX_STORED_ROWS + 1
    assert made.time[-1] < reference.trajectory.time[-1]
    largest = np.max(np.abs(reference.trajectory.values), axis=0).reshape(2, 2).max(axis=1).repeat(2)  # angles, rates
    assert np.all(made.uncertainty <= reference_files.KNOWN_UNCERTAINTY * largest)


@pytest.fixture(scope="module")
def made(cases):
    case = cases["pendulum"](stop=1.0)
    return reference_files.take_reference_excerpt(make_reference(case.definition, case.equations))


def test_what_is_no_longer_true_is_named(made):
    other = replace(made, values=made.values + np.array([0, 1e-10, 0]))
    (text,) = reference_files.explain_outdated_reference(made, other)
    assert text.startswith("u differs by 1e-10")
    assert "names" not in reference_files.explain_outdated_reference(
        made, replace(made, provenance={**made.provenance, "versions": {}})
    )
    assert (
        reference_files.explain_outdated_reference(made, replace(made, provenance={**made.provenance, "versions": {}}))
        == ()
    )
    (text,) = reference_files.explain_outdated_reference(
        made, replace(made, provenance={**made.provenance, "formulation": "tmt"})
    )
    assert text == "formulation: 'kane' instead of 'tmt'"
    assert reference_files.explain_outdated_reference(made, replace(made, time=made.time * 1.01)) == (
        "other points in time",
    )
    assert reference_files.explain_outdated_reference(made, replace(made, names=("q", "v", "w")))[0].startswith(
        "variables q, u, acceleration"
    )


@pytest.mark.parametrize("damage", ["", "time,q\n0.0\n", "time,q\n0.0,x\n", "time,other\n0.0,1.0\n"])
def test_damage_is_reported(tmp_path, made, damage):
    reference_files.write_reference_trajectory_files(made, tmp_path)
    (tmp_path / "trajectory.csv").write_text(damage, encoding="utf-8")
    with pytest.raises(ValidationError, match="make it afresh"):
        reference_files.read_reference_files(tmp_path)
    with pytest.raises(ValidationError, match="make it afresh"):
        reference_files.read_reference_files(tmp_path / "nowhere")
