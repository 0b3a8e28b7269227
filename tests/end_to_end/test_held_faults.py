"""Faults that a validation by the defaults alone does not see, each in a real FMU; the right one passes.

A cart with a pendulum. By default nothing drives it (the torque is 0), nothing damps it (d = 0), and cart and bob have
the same mass: what is wrong in any of these moves nothing in the default experiment.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest
import sympy as sm
from representatives import by_night
from sympy.physics import mechanics as me
from wrong_units import changed_unit, packed

from mb2fmu import pipeline, validation
from mb2fmu.audit import audit
from mb2fmu.mechanics.equations.equations_of_motion import EquationsOfMotion
from mb2fmu.mechanics.formulations import formulate
from mb2fmu.mechanics.mechanism import read_mechanism, solve_loop_closure_start_values
from mb2fmu.model import Model, check_model
from mb2fmu.pipeline.derivation.pipeline_results import FmuBuildResult
from mb2fmu.validation import ReferenceAndBounds, ValidationResult


def trolley(*, gain: float = 1.0, drag: float = 1.0, weight: str = "m", driven: bool = True) -> Model:
    """The cart and the pendulum; arguments make it another mechanism than it says.

    Args:
        gain: Of the torque.
        drag: Of the damping.
        weight: The parameter that is the bob's mass: ``m``, or ``M``, which has the same value.
        driven: False: the torque does nothing.
    """
    x, theta, v, omega, torque = me.dynamicsymbols("x theta v omega T")
    M, m, length, d, k, g = sm.symbols("M m l d k g", positive=True)
    N = me.ReferenceFrame("N")
    A = N.orientnew("A", "Axis", (theta, N.z))
    A.set_ang_vel(N, omega * N.z)
    origin = me.Point("O")
    origin.set_vel(N, 0)
    pin = origin.locatenew("C", x * N.x)
    pin.set_vel(N, v * N.x)
    end = pin.locatenew("B", -length * A.y)
    end.v2pt_theory(pin, N, A)
    cart, bob = me.Particle("cart", pin, M), me.Particle("bob", end, {"m": m, "M": M}[weight])
    turning = (gain * torque if driven else 0) - drag * d * omega
    loads = [
        (end, -{"m": m, "M": M}[weight] * g * N.y),
        (pin, -k * x * N.x),
        (A, turning * N.z),
    ]
    kane = me.KanesMethod(N, [x, theta], [v, omega], kd_eqs=[x.diff() - v, theta.diff() - omega])
    kane.kanes_equations([cart, bob], loads)
    model = Model("Trolley", kane)
    model.parameter(M, 1.0, "kg", min=1e-6)
    model.parameter(m, 1.0, "kg", min=1e-6)
    model.parameter(length, 1.0, "m", min=1e-6)
    model.parameter(d, 0.0, "N.m.s/rad", min=0.0)
    model.parameter(k, 20.0, "N/m", min=0.0)
    model.parameter(g, 9.81, "m/s2", min=0.0)
    model.input(torque, 0.0, "N.m")
    model.coordinate(x, 0.1, "m")
    model.coordinate(theta, 0.5, "rad")
    model.speed(v, 0.0, "m/s")
    model.speed(omega, 0.0, "rad/s")
    model.output("told", torque + 0 * x + m / M, "1")
    model.experiment(stop=3.0, step=0.02, tolerance=1e-8)
    return model


@dataclass(frozen=True)
class Judge:
    """Judges FMUs by the right mechanism; the reference is made once."""

    build: FmuBuildResult
    yardstick: ReferenceAndBounds
    equations: EquationsOfMotion

    def __call__(self, unit: Path) -> ValidationResult:
        return validation.validate(
            unit,
            self.build.derivation.definition,
            self.equations,
            conformance=False,
            reference_and_bounds=self.yardstick,
        )


@pytest.fixture(scope="module")
def yardstick() -> tuple[ReferenceAndBounds, EquationsOfMotion]:
    mechanism = solve_loop_closure_start_values(read_mechanism(check_model(trolley())))
    equations = formulate(mechanism, "tmt")
    return validation.make_reference_and_bounds(mechanism.declared, equations), equations


@pytest.fixture(scope="module")
def judge(yardstick) -> Judge:
    return Judge(pipeline.build(pipeline.derive(trolley(), method="kane"), fmi="3"), *yardstick)


@pytest.fixture(scope="module")
def build2() -> FmuBuildResult:
    return pipeline.build(pipeline.derive(trolley(), method="kane"), fmi="2")


@pytest.fixture(scope="module")
def judge2(build2, yardstick) -> Judge:
    return Judge(build2, *yardstick)


def short(result: ValidationResult) -> set[str]:
    """What failed in the perturbed experiment and of the calls."""
    assert result.perturbed_experiment is not None
    found = {call.name for call in result.api_checks if call.verdict == "failed"}
    for kind in result.perturbed_experiment.kinds:
        found |= {item.name for item in (*kind.variables, *kind.invariants) if item.verdict != "passed"}
    return found


def by_default(result: ValidationResult) -> bool:
    """What a validation by the defaults alone says."""
    return all(v.verdict == "passed" for v in (*result.variables, *result.invariants)) and all(
        other.passed for other in result.other_interface_types
    )


@pytest.mark.parametrize("which", ["judge", *by_night("judge2")])
def test_the_right_fmu_passes_and_everything_of_it_is_proven(which, request, tmp_path):
    judge = request.getfixturevalue(which)
    result = judge(packed(judge.build, tmp_path / "right.fmu"))
    assert result.passed
    assert result.not_exercised == ()
    assert {item.role for item in result.exercised_quantities} == {"parameter", "start value", "input"}
    assert {call.verdict for call in result.api_checks} == {"passed"}
    names = {call.name for call in result.api_checks}
    assert ("adjoint derivatives" in names) == (which == "judge")
    assert len(names) == 9


@pytest.mark.parametrize(
    "wrong",
    [{"gain": -5.0}, *by_night({"drag": -5.0}), {"weight": "M"}, *by_night({"driven": False})],
    ids=["gain", "drag", "weight", "frozen"],
)
def test_what_the_defaults_do_not_show_fails(judge, wrong, tmp_path):
    """The torque's gain, the damping, a mass wired to another parameter of equal value, an input that does nothing."""
    build = pipeline.build(pipeline.derive(trolley(**wrong), method="kane"), fmi="3")
    result = judge(packed(build, tmp_path / "wrong.fmu"))
    assert by_default(result)
    assert not result.passed
    assert "omega" in short(result)


LATE = """
    {
        static double late[MB2FMU_N_INPUTS], held[MB2FMU_N_INPUTS], since = -1.0;
        if (t <= 0.0) {
            memcpy(held, now->r, sizeof held);
        }
        if (t != since) {
            memcpy(late, held, sizeof late);
            memcpy(held, now->r, sizeof held);
            since = t;
        }
        problem->r0 = late;
    }
"""
EARLY = "(instance->now.mode & (MB2FMU_INSTANTIATED | MB2FMU_INITIALIZATION)) != 0"
CHANGED = "mb2fmu_changed(instance, (enum mb2fmu_source)variable->source);"
TANGENT = (
    "failed = model_tangent(now->clock.time, now->x, now->r, now->p, instance->w, instance->seeds, instance->out);"
)
SCALED = """
    {
        static double first[MB2FMU_N_PARAMETERS];
        static int known = 0;
        int j;
        if (!known) {
            memcpy(first, now->p, sizeof first);
            known = 1;
        }
        for (j = 0; j < MB2FMU_N_OUT && memcmp(first, now->p, sizeof first) != 0; ++j) {
            instance->out[j] *= 1.01;
        }
    }
"""
RESTORED = "memcpy(&instance->now, &state->now, sizeof instance->now);"
FORGETS = f"""
    {{
        const double kept = instance->now.p[0];
        {RESTORED}
        instance->now.p[0] = kept;
        instance->levels = 0;
    }}
"""


@pytest.mark.parametrize(
    ("file", "edit", "named"),
    [
        ("communication.c", ("    problem->r0 = now->r;", LATE), "omega"),
        (
            "values.c",
            ("*place = values[i];", f"if (variable->source != MB2FMU_SOURCE_INPUT || {EARLY}) *place = values[i];"),
            "omega",
        ),
        (
            "values.c",
            (CHANGED, f"if (variable->source != MB2FMU_SOURCE_PARAMETER || {EARLY}) {CHANGED}"),
            "parameters changed during the run",
        ),
        ("derivatives.c", (TANGENT, TANGENT + SCALED), "directional derivatives"),
    ],
    ids=["late", "frozen", "stale", "tangent"],
)
def test_what_the_runtime_does_wrong_fails(judge, file, edit, named, tmp_path):
    """An input one step late or frozen, x' or a derivative wrong after parameters changed."""
    result = judge(changed_unit(judge.build, tmp_path / "wrong.fmu", {file: edit}))
    assert by_default(result)
    assert not result.passed
    assert named in short(result)


@pytest.mark.repeats  # as computed values that survive
def test_a_restore_that_forgets_is_found_by_the_auditor(judge, tmp_path):
    """An FMU compared with itself needs no reference: the validation leaves saved states to the auditor."""
    wrong = changed_unit(judge.build, tmp_path / "wrong.fmu", {"state.c": (RESTORED, FORGETS)})
    assert "state.roundtrip" in {
        finding.rule for finding in audit(wrong, only=("state.roundtrip",), run_checkers=False).findings
    }


JUMP = "        memcpy(now->x, instance->x_next, sizeof now->x);\n"


@pytest.fixture(scope="module")
def bouncing_ball() -> FmuBuildResult:
    return pipeline.build(pipeline.derive("bouncing_ball"), fmi="3")


@pytest.mark.parametrize("kept", [pytest.param(True, marks=pytest.mark.repeats), False])
def test_a_jump_that_event_mode_of_co_simulation_loses_is_found(bouncing_ball, tmp_path, kept):
    """FMI 3: an importer that handles events itself; all other runs of the validation let the FMU do it."""
    lost = JUMP.replace("memcpy", "if (instance->kind == MB2FMU_MODEL_EXCHANGE || now->clock.steps == 0) memcpy")
    path = tmp_path / "unit.fmu"
    edits = {"instance_events.c": (JUMP, lost)}
    unit = packed(bouncing_ball, path) if kept else changed_unit(bouncing_ball, path, edits)
    found = audit(unit, only=("steps.early",), run_checkers=False)
    assert [each.rule for each in found.findings] == ([] if kept else ["steps.early"])


RESTORED = "    memcpy(&instance->now, &state->now, sizeof instance->now);\n"


OUTDATED = (
    "    instance->levels &= (unsigned)MB2FMU_LEVEL_PREPARED;\n"
    "    mb2fmu_integrator_invalidate(&instance->integrator); /*"
)
PREPARED = """    if (memcmp(instance->now.p, state->now.p, sizeof state->now.p) != 0) {
        instance->levels = 0;
    }
"""


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (OUTDATED, OUTDATED.replace("    instance->levels &= (unsigned)MB2FMU_LEVEL_PREPARED;\n", "")),
        pytest.param(PREPARED, "", marks=pytest.mark.repeats),
    ],
)
def test_computed_values_that_survive_a_restored_state_are_found(build2, tmp_path, old, new):
    """They were read right before the state was set; after a step or a set parameter they are computed anew anyway."""
    unit = changed_unit(build2, tmp_path / "unit.fmu", {"state.c": (old, new)})
    found = audit(unit, only=("state.roundtrip",), run_checkers=False)
    assert {each.rule for each in found.findings} == {"state.roundtrip"}


@pytest.mark.parametrize("kept", [pytest.param(True, marks=pytest.mark.repeats), False])
def test_start_values_that_a_state_of_initialization_mode_loses_are_found(build2, tmp_path, kept):
    """All other states are saved behind the initialization."""
    begun = f"{RESTORED}    if (instance->now.mode == MB2FMU_INITIALIZATION) mb2fmu_set_start_values(&instance->now);\n"
    path = tmp_path / "unit.fmu"
    unit = packed(build2, path) if kept else changed_unit(build2, path, {"state.c": (RESTORED, begun)})
    found = audit(unit, only=("state.roundtrip",), run_checkers=False)
    assert {each.rule for each in found.findings} == (set() if kept else {"state.roundtrip"})
