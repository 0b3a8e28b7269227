"""Redundant rows of loops of hinges in space: Bennett's linkage and a planar four-bar."""

from dataclasses import replace

import pytest
from hinges import BENNETT, PLANAR, linkage
from scipy.integrate import solve_ivp

from mb2fmu import pipeline
from mb2fmu.compiler.evaluation import make_evaluator
from mb2fmu.compiler.program.program_result_dependencies import find_dependencies_by_modular_arithmetic
from mb2fmu.compiler.program.scalar_program import Op
from mb2fmu.errors import MechanismError
from mb2fmu.mechanics.mechanism.sympy_import.kinematic_consistency_checks import free_parameter_values
from mb2fmu.validation.reference_equations.numeric_equations import NumericEquations


def test_a_body_where_its_frame_is_meant_is_pointed_out():
    model = linkage(*PLANAR)
    link = model.mechanics.bodies[-1]
    at = next(i for i, item in enumerate(model.declared) if getattr(item, "name", "") == "last.tilt_x")
    model.declared[at] = replace(model.declared[at], acts=((link, model.declared[at].acts[0][1]),))
    with pytest.raises(MechanismError, match=r"last\.tilt_x.*\n.*a torque on its frame \(L2 of link2\)"):
        pipeline.derive(model, method="tmt")


@pytest.fixture(scope="module", params=["bennett", pytest.param("planar", marks=pytest.mark.repeats)])
def derivations(request):
    """By both treatments."""
    shape = BENNETT if request.param == "bennett" else PLANAR
    return [pipeline.derive(linkage(*shape), method="tmt", constraints=c) for c in ("attractor", "multipliers")]


def test_three_of_five_conditions_are_named(derivations):
    for derivation in derivations:
        named = derivation.treated.partition("redundant: ")[2].partition(". How")[0]
        assert len(named.split(", ")) == 3


def test_speeds_are_not_said_to_be_held_by_redundant_conditions(derivations):
    """Off the constraints, where dependencies are tried, such conditions leave no motion."""
    for derivation in derivations:
        entry, n = derivation.program.entries["outputs"], len(derivation.definition.speeds)
        energy = entry.results[next(i for i, name in enumerate(entry.labels) if "energy" in name)]
        speeds = [(Op.STATE, n + i) for i in range(n)]
        assert find_dependencies_by_modular_arithmetic(derivation.program, [energy], speeds).all()


def test_motion_forces_of_redundant_rows_and_reactions_are_the_references(derivations):
    """Forces of least norm, by singular values there and by Jacobi's rotations here."""
    for derivation in derivations:
        f, reference = pipeline.right_hand_side(derivation), NumericEquations(derivation.equations)
        p = free_parameter_values(derivation.mechanism)
        at = reference.motion(0.0, f.x0, [], reference.prepare(p))
        assert f(0.0, f.x0) == pytest.approx(at.x_dot, abs=1e-10)
        assert make_evaluator(derivation.program, "outputs")(0.0, f.x0, [], p) == pytest.approx(at.outputs, abs=1e-9)


def test_they_swing_without_fighting_their_conditions(derivations):
    """Energy is kept, both treatments agree, and no steps are lost."""
    ends = []
    for derivation in derivations:
        f, p = pipeline.right_hand_side(derivation), free_parameter_values(derivation.mechanism)
        found = solve_ivp(f, (0, 2), f.x0, "DOP853", rtol=1e-9, atol=1e-9)
        assert found.nfev < 1200
        outputs = make_evaluator(derivation.program, "outputs")
        energies = [outputs(0.0, x, [], p)[-1] for x in (f.x0, found.y[:, -1])]
        assert energies[1] == pytest.approx(energies[0], abs=1e-5)
        ends.append(found.y[:, -1])
    assert ends[0] == pytest.approx(ends[1], abs=1e-5)
