"""Faults where no experiment goes, each in a real FMU: other signs, far states, other solvers, steps and start times.

A trolley on a spring with a hanging bob, none of whose parameters and inputs has bounds.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import sympy as sm
from representatives import by_night, marked
from sympy.physics import mechanics as me
from wrong_units import changed_unit, packed

from mb2fmu import pipeline, validation
from mb2fmu.fmu.in_memory_file_tree import InMemoryFileTree
from mb2fmu.fmu.package import write_fmu_archive
from mb2fmu.mechanics.formulations import formulate
from mb2fmu.mechanics.mechanism import read_mechanism, solve_loop_closure_start_values
from mb2fmu.model import Model, check_model
from mb2fmu.report.verdict_summary import describe_validated_value_ranges
from mb2fmu.validation import ValidationResult
from mb2fmu.validation.reference.experiment_values import form_experiment_values
from mb2fmu.validation.runs.fmu_description_for_runs import read_fmu_description
from mb2fmu.validation.runs.source_binary_comparison import compare_recompiled_sources

Judge = Callable[..., ValidationResult]


def hanging_bob() -> Model:
    """The trolley is pushed by a force, the bob turned by a torque."""
    x, phi, v, omega, force, torque = me.dynamicsymbols("x phi v omega F T")
    m, m_bob, k, c, length, g = sm.symbols("m m_bob k c l g")
    N, A = me.ReferenceFrame("N"), me.ReferenceFrame("A")
    A.orient_axis(N, N.z, phi)
    A.set_ang_vel(N, omega * N.z)
    origin = me.Point("O")
    origin.set_vel(N, 0)
    P = origin.locatenew("P", x * N.x)
    P.set_vel(N, v * N.x)
    B = P.locatenew("B", -length * A.y)
    B.v2pt_theory(P, N, A)
    kane = me.KanesMethod(N, [x, phi], [v, omega], kd_eqs=[x.diff() - v, phi.diff() - omega])
    loads = [(P, (force - k * x - c * v) * N.x), (B, -m_bob * g * N.y), (A, torque * N.z)]
    kane.kanes_equations([me.Particle("trolley", P, m), me.Particle("bob", B, m_bob)], loads)
    model = Model("HangingBob", kane)
    for symbol, value, unit in (
        (m, 2.0, "kg"), (m_bob, 0.7, "kg"), (k, 30.0, "N/m"), (c, 0.4, "N.s/m"), (length, 0.8, "m"), (g, 9.81, "m/s2"),
    ):  # fmt: skip
        model.parameter(symbol, value, unit)
    model.input(force, 0.5, "N", name="force")
    model.input(torque, 0.0, "N.m", name="torque")
    model.coordinate(x, 0.1, "m")
    model.coordinate(phi, 0.3, "rad", min=-8.0, max=8.0)
    model.speed(v, 0.0, "m/s")
    model.speed(omega, 0.2, "rad/s")
    model.output("pull", force - k * x, "N")
    model.experiment(stop=2.0, step=0.01, tolerance=1e-7)
    return model


@pytest.fixture(scope="module")
def judge(tmp_path_factory) -> Judge:
    """Judges the FMU of either version with some of its sources changed."""
    mechanism = solve_loop_closure_start_values(read_mechanism(check_model(hanging_bob())))
    equations = formulate(mechanism, "tmt")
    derivation = pipeline.derive(hanging_bob(), method="kane")
    builds = {fmi: pipeline.build(derivation, fmi=fmi) for fmi in ("2", "3")}
    data = validation.make_reference_and_bounds(mechanism.declared, equations)
    folder = tmp_path_factory.mktemp("units")

    def judged(fmi: str = "2", **edits: tuple[str, str]) -> ValidationResult:
        files = {f"{name}.c": edit for name, edit in edits.items()}
        path = folder / f"unit{len(list(Path(folder).iterdir()))}.fmu"
        unit = changed_unit(builds[fmi], path, files) if files else packed(builds[fmi], path)
        return validation.validate(unit, derivation.definition, equations, conformance=False, reference_and_bounds=data)

    return judged


def failed(result: ValidationResult) -> set[str]:
    return {call.name for call in result.api_checks if call.verdict == "failed"}


EXTREMES, STEPS, SOLVERS = "values beyond the experiments", "other start times and step sizes", "each solver"
RAMPS = "ramps of inputs"


@pytest.mark.parametrize("fmi", ["2", *by_night("3")])
def test_the_right_fmu_passes_all_of_them_and_its_range_stands_beside_wider_ones(judge, fmi):
    result = judge(fmi)
    assert result.passed
    names = {call.name for call in result.api_checks if call.verdict == "passed"}
    assert {EXTREMES, STEPS, SOLVERS} <= names
    assert (RAMPS in names) == (fmi == "2")
    found = {item.name: item for item in result.exercised_quantities}
    assert found["k"].low < -29.0
    assert found["k"].high > 200.0
    assert not found["k"].is_whole_range
    assert not found["phi"].is_whole_range  # within 8 rad, of which it comes to 7.8
    assert describe_validated_value_ranges(result, 1).startswith("tried within m ")
    refused = [text for text in result.not_tried if text.startswith("what the FMU refuses")]
    assert not refused or "m = " in refused[0]


RATES = "        return model_rhs(now->clock.time, now->x, now->r, now->p, instance->w, instance->dx);\n"
LOOP = "    mb2fmu_step_loop loop = {.start = t, .end = t + h, .span = h};\n"
RESTORED = "    memcpy(&instance->now, &state->now, sizeof instance->now);\n"
SLOPES = "    mb2fmu_stream_reals(stream, now->slope, MB2FMU_N_INPUTS);\n"
FLAT = """    {
        double flat[MB2FMU_SIZE(MB2FMU_N_INPUTS)] = {0};
        mb2fmu_stream_reals(stream, flat, MB2FMU_N_INPUTS);
    }
"""
CHANGED = "if (memcmp(place, &values[i], sizeof values[i]) != 0) {\n"


def wrong_where(condition: str) -> tuple[str, str, str]:
    """x' of the last state 5 % larger where a condition holds, wherever it is asked for."""
    rates = RATES.replace("return", "const int failed =")
    return (
        "values",
        RATES,
        f"{{\n{rates}        instance->dx[3] *= {condition} ? 1.05 : 1.0;\n        return failed;\n}}\n",
    )


FAULTS = {
    "a negative stiffness": (EXTREMES, *wrong_where("now->p[2] < 0.0")),
    "a damping of zero": (EXTREMES, *wrong_where("now->p[3] == 0.0")),
    "a large force": (EXTREMES, *wrong_where("now->r[0] > 3.0")),
    "an angle beyond a turn": (EXTREMES, *wrong_where("now->x[1] > 6.3")),
    "far to the right and turned back": (EXTREMES, *wrong_where("now->x[0] > 0.15 && now->x[1] < -0.5")),
    "a late time": (EXTREMES, *wrong_where("now->clock.time > 50.0")),
    "a time before zero": (EXTREMES, *wrong_where("now->clock.time < 0.0")),
    "a start value of zero is not taken": (
        EXTREMES,
        "values",
        CHANGED,
        CHANGED.replace("!= 0)", "!= 0 && (variable->source != MB2FMU_SOURCE_STATE || values[i] != 0.0))"),
    ),
    "rk4 with h / 6.1": (SOLVERS, "solver_rk4", "+ h / 6.0 *", "+ h / 6.1 *"),
    "Euler's coordinates 1 % too fast": (SOLVERS, "solver_euler", "h * work->k[1][i]", "1.01 * h * work->k[1][i]"),
    "a long step too long": (STEPS, "cosimulation", LOOP, f"    if (h > 0.05) h *= 1.0001;\n{LOOP}"),
    "a tiny step too long": (STEPS, "cosimulation", LOOP, f"    if (h < 1e-4) h *= 1.01;\n{LOOP}"),
    "a ramp 2 % too steep": (RAMPS, "cosimulation", "problem->r1[i] * (t", "1.02 * problem->r1[i] * (t"),
    "a restored state forgets ramps": (
        RAMPS,
        "state",
        RESTORED,
        f"{RESTORED}    memset(instance->now.slope, 0, sizeof instance->now.slope);\n",
    ),
    "nominal values ten times as large": (
        "every variable read and set",
        "vectors",
        "] = model_variables[i].nominal;",
        "] = 10.0 * model_variables[i].nominal;",
    ),
    "bytes forget ramps": (RAMPS, "state", SLOPES, FLAT),
}


NIGHTLY = {
    "a damping of zero": "as a negative stiffness and a start value of zero",
    "far to the right and turned back": "as an angle beyond a turn",
    "a time before zero": "as a late time",
    "Euler's coordinates 1 % too fast": "as rk4",
    "a tiny step too long": "as a long step",
    "bytes forget ramps": "as a restored state",
}


@pytest.mark.parametrize("fault", marked(FAULTS, repeating=NIGHTLY))
def test_a_fault_where_no_experiment_goes_is_found(judge, fault):
    check, file, old, new = FAULTS[fault]
    assert check in failed(judge(**{file: (old, new)}))


def test_sources_that_are_not_those_of_the_binary_are_found(tmp_path):
    derivation = pipeline.derive(hanging_bob(), method="kane")
    core = pipeline.build(derivation).core
    definition, description = derivation.definition, read_fmu_description(core)
    experiment = form_experiment_values(definition)
    equations = core["sources/equations.c"]
    for wrong in (False, True):
        text = equations.replace(b"dx[3] = ", b"dx[3] = 1.001 * ") if wrong else equations
        tree = InMemoryFileTree({**core.files, "sources/equations.c": text})
        path = tmp_path / f"{wrong}.fmu"
        write_fmu_archive(tree, path)
        (finding,) = compare_recompiled_sources(path, tree, description, experiment)
        assert finding.severity == ("error" if wrong else "note"), finding.message
