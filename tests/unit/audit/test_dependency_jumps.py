"""A jump to another solution of the start is no dependency; a jump of an output alone is one."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from mb2fmu.audit.behaviour.fixture.spurious_effects import drop_effects_of_solution_jumps


@pytest.mark.parametrize(
    ("nearby", "other", "kept"),
    [
        (
            [0.5, 1.0, 2.0],
            [2.6, 1.0, 7.0],
            [0.5, 1.0, 2.0],
        ),  # the loop is assembled the other way
        ([0.5, 1.0, 2.0], [0.5, 1.0, 7.0], [0.5, 1.0, 7.0]),  # a threshold in the output: a dependency that is not told
        ([0.5001, 1.0, 2.01], [0.6, 1.0, 7.0], [0.6, 1.0, 7.0]),  # what moves at once depends
    ],
)
def test_only_jumps_of_solved_states_lead_to_another_branch(nearby, other, kept):
    solved, fixed = SimpleNamespace(initial="approx"), SimpleNamespace(initial="exact")
    output, known = SimpleNamespace(initial="calculated"), SimpleNamespace()
    entries = [SimpleNamespace(variable=each, targets=()) for each in (solved, fixed, output)]
    stage = SimpleNamespace(description=SimpleNamespace(state_set=[solved, fixed]))
    assert drop_effects_of_solution_jumps(stage, entries, known, ([0.5, 1.0, 2.0], nearby, other)) == kept
    declared = [SimpleNamespace(variable=each, targets=(known,)) for each in (solved, fixed, output)]
    assert drop_effects_of_solution_jumps(stage, declared, known, ([0.5, 1.0, 2.0], nearby, other)) == other
