"""u' of the reference link after link: the same as M u' = f, wherever the mechanism is a tree of rigid links."""

from __future__ import annotations

from dataclasses import replace

import pytest
from compiled_reference import largest_difference
from hypothesis import given, settings
from hypothesis import strategies as st
from mechanisms import closed_mechanism_of, mechanism_of, model_of
from trees import AXES, DEGREES, KINDS, build
from unit.robots.robot_texts import joint, link, robot

from mb2fmu.mechanics.formulations import form_equations_except_dynamics
from mb2fmu.mechanics.mechanism import Mechanism
from mb2fmu.validation.compiled import compiled_check_tables, link_tree
from mb2fmu.validation.compiled.link_tree import SingleSpeedLinkTree
from mb2fmu.validation.reference_equations.newton_euler import NewtonEulerEquations
from models.chain import chain

ROBOT = robot(
    link("base", 3.0),
    link("a"),
    link("b", 0.5),
    link("c", 0.8, 0.03),
    link("d", 0.3),
    joint("swing", "continuous", "base", "a"),
    joint("slide", "prismatic", "a", "b", '<limit lower="-1" upper="1" effort="9" velocity="9"/>', axis="1 2 2"),
    joint("wrist", "continuous", "b", "c", axis="1 0 0"),
    joint("loose", "floating", "a", "d"),
)


def trees_of(monkeypatch: pytest.MonkeyPatch, spoilt=lambda tree: tree) -> list[SingleSpeedLinkTree]:
    """Return the trees that :func:`difference` will use, of few speeds too, after ``spoilt`` has changed them."""
    found: list[SingleSpeedLinkTree] = []

    def kept(*args):
        tree = link_tree.find_articulated_tree(*args)
        if tree is not None:
            found.append(spoilt(tree))
        return found[-1] if found else None

    monkeypatch.setattr(link_tree, "MIN_SPEEDS_FOR_TREE", 1)
    monkeypatch.setattr(compiled_check_tables, "find_articulated_tree", kept)
    return found


def difference(mechanism: Mechanism) -> float:
    """Of x' by C from that by NumPy, over the largest."""
    compiled = NewtonEulerEquations(mechanism, form_equations_except_dynamics(mechanism))
    assert compiled.compile()
    return largest_difference(compiled, mechanism, count=4, seed=5)


@pytest.fixture(scope="module")
def floating(tmp_path_factory: pytest.TempPathFactory) -> Mechanism:
    path = tmp_path_factory.mktemp("robot") / "tree.urdf"
    path.write_text(ROBOT)
    return closed_mechanism_of(path, {"base": "floating"})


def test_a_floating_tree_with_a_free_body_moves_as_its_mass_matrix_says(floating, monkeypatch) -> None:
    found = trees_of(monkeypatch)
    assert difference(floating) < 1e-12
    assert len(found) == 1
    assert found[0].parents.count(-1) == 1
    assert len(found[0].order) == len(floating.u) == 15


TREES = st.lists(
    st.tuples(st.sampled_from(KINDS), st.sampled_from(AXES), st.integers(0, 3)), min_size=1, max_size=4
).filter(lambda kinds: any(DEGREES[kind] for kind, *_ in kinds))


@settings(max_examples=2, deadline=None)
@given(TREES, st.booleans())
def test_trees_of_any_joints_move_as_their_mass_matrices_say(kinds, tilted):
    agree(kinds, tilted)


@pytest.mark.repeats
@settings(max_examples=40, deadline=None)
@given(TREES, st.booleans())
def test_more_trees(kinds, tilted):
    agree(kinds, tilted)


def agree(kinds, tilted):
    system = build(kinds, tilted=tilted)
    mechanism = mechanism_of(model_of("Tree", system, list(system.q), list(system.u), m=1.2, J=0.05, g=9.81, T=0.3))
    with pytest.MonkeyPatch.context() as patch:
        found = trees_of(patch)
        assert difference(mechanism) < 1e-10
        assert found


@pytest.mark.parametrize(
    "fault",
    [
        lambda tree: replace(tree, link_offset_paths=((),) * len(tree.link_offset_paths)),
        pytest.param(lambda tree: replace(tree, signs=tuple(-sign for sign in tree.signs)), marks=pytest.mark.repeats),
        lambda tree: replace(tree, bodies=tuple(replace(place, path=()) for place in tree.bodies)),
        lambda tree: replace(tree, points=tree.points[1:]),
        pytest.param(lambda tree: replace(tree, frames=tree.frames[1:]), marks=pytest.mark.repeats),
    ],
    ids=["no arms", "arms the other way", "bodies at joints", "a force left out", "a torque left out"],
)
def test_a_wrong_tree_is_noticed(floating, monkeypatch, fault) -> None:
    trees_of(monkeypatch, fault)
    assert difference(floating) > 1e-6


def test_long_chains_alone_are_solved_so(monkeypatch) -> None:
    """Below the limit M u' = f is faster; from it on more digits are left of the same numbers."""
    made = []

    def kept(*args):
        made.append(link_tree.find_articulated_tree(*args))
        return made[-1]

    monkeypatch.setattr(compiled_check_tables, "find_articulated_tree", kept)
    monkeypatch.setattr(link_tree, "MIN_SPEEDS_FOR_TREE", 4)
    for n in (3, 4):
        assert difference(mechanism_of(chain(n))) < 1e-11
    assert [tree is None for tree in made] == [True, False]
