"""The pipeline from Python: three lines, a right-hand side without any FMU, nothing imported before it is needed."""

from __future__ import annotations

import ast
import gc
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import sympy as sm
import sympy.physics.mechanics as me
from scipy.integrate import solve_ivp
from shorter_validations import shorter_validations

import mb2fmu
from mb2fmu import pipeline
from mb2fmu.errors import EmitError, InterfaceError, ModelError, PackageError
from mb2fmu.fmu.interface import FmuTarget
from mb2fmu.pipeline.derivation.formulation_and_build_options import (
    BuildOptions,
    ExportOptions,
    FormulationOptions,
    separate_formulation_and_build_options,
)
from mb2fmu.pipeline.derivation.stage_stopwatch import StageStopwatch
from mb2fmu.pipeline.run_and_report import model_export_and_run, report_pages
from mb2fmu.validation import fmu_validation


def pendulum() -> mb2fmu.Model:
    """A point mass on a rod, handed over as a Lagrangian: q'' = -g/l sin q + F(t)/(m l)."""
    q, F = me.dynamicsymbols("q F")
    u = q.diff()
    m, l, g, weight = sm.symbols("m l g weight", positive=True)
    N = me.ReferenceFrame("N")
    A = N.orientnew("A", "Axis", (q, N.z))
    O = me.Point("O")
    O.set_vel(N, 0)
    P = O.locatenew("P", -l * A.y)
    P.set_vel(N, l * u * A.x)
    particle = me.Particle("P", P, m)
    lagrangian = m * l**2 * u**2 / 2 + weight * l * sm.cos(q)
    method = me.LagrangesMethod(lagrangian, [q], forcelist=[(P, F * A.x)], bodies=[particle], frame=N)
    model = mb2fmu.Model("Swinging", method, description="A point mass on a rod")
    model.parameter(m, 2.0, "kg")
    model.parameter(l, 0.5, "m")
    model.parameter(g, 9.81, "m/s2")
    model.parameter(weight, m * g, "N")
    model.input(F, 0.1, "N")
    model.coordinate(q, 1.0, "rad")
    model.speed(u, -0.2, "rad/s", name="omega")
    model.output("height", -l * sm.cos(q), "m")
    model.experiment(stop=0.5, step=0.05, tolerance=1e-8)
    return model


def test_rhs_needs_no_fmu_and_is_the_pendulum_s() -> None:
    f = pendulum().rhs()
    assert (len(f.states), f.inputs, f.parameters) == (2, ("F",), ("m", "l", "g"))
    np.testing.assert_array_equal(f.x0, [1.0, -0.2])
    np.testing.assert_array_equal(f.r0, [0.1])
    np.testing.assert_array_equal(f.p0, [2.0, 0.5, 9.81])
    rng = np.random.default_rng(0)
    x, F, (m, l, g) = rng.normal(size=2), 0.7, (1.3, 0.8, 1.6)
    np.testing.assert_allclose(f(0.0, x, [F], [m, l, g]), [x[1], -g / l * np.sin(x[0]) + F / (m * l)], rtol=1e-14)
    np.testing.assert_allclose(f.outputs(0.0, x), [-0.5 * np.cos(x[0])], rtol=1e-15)


def test_the_example_of_a_parameter_study_runs() -> None:
    """docs/how_to/batches.md, of few instances and steps; rows are what NumPy's evaluation gives."""
    page = (Path(__file__).parents[3] / "docs" / "how_to" / "batches.md").read_text(encoding="utf-8")
    study, whole, derivatives, more = (block.partition("```")[0] for block in page.split("```python\n")[1:])
    motions: dict[str, Any] = {}
    exec(whole.replace("n = 1000", "n = 5"), motions)
    assert np.all(np.isfinite(motions["runs"]["highest"]))
    assert len(motions["runs"]["passes"]) == 5
    exec(derivatives, motions)
    assert np.all(np.isfinite(motions["runs"]["highest", "m1"]))
    names: dict[str, Any] = {}
    exec(study.replace("n = 1000", "n = 5").replace("range(2000)", "range(3)"), names)
    f, x, p = names["f"], names["x"], names["p"]
    plain = mb2fmu.rhs("models/double_pendulum.py")
    np.testing.assert_allclose(f(0.3, x, p=p), plain(0.3, x, p=p), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(
        names["highest"], plain.outputs(0.0, x, p=p)[:, f.output_names.index("tip.y")], atol=1e-2
    )
    assert len(set(names["highest"])) == 5
    exec(more, names)
    u_dot = names["accelerations"](0.3, x, f.r0, p)
    np.testing.assert_array_equal(u_dot, f(0.3, x, p=p)[:, 2:])
    slopes = names["tangent"](0.3, x, f.r0, p, s=np.eye(len(f.p0))[0])
    step = 1e-6 * np.eye(len(f.p0))[0]
    np.testing.assert_allclose(slopes, (f(0.3, x, p=p + step) - f(0.3, x, p=p - step)) / 2e-6, atol=1e-6)


def test_rhs_takes_many_states_at_once() -> None:
    f = pendulum().rhs()
    x = np.random.default_rng(1).normal(size=(20, 2))
    np.testing.assert_allclose(f(0.0, x), [f(0.0, row) for row in x], rtol=1e-15)


def test_rhs_goes_into_scipy_as_it_is() -> None:
    """Energy of the free pendulum is kept."""
    f = pendulum().rhs()
    solution = solve_ivp(lambda t, x: f(t, x, [0.0]), (0, 2), f.x0, rtol=1e-10, atol=1e-12)
    m, l, g = f.p0
    energy = m * l**2 * solution.y[1] ** 2 / 2 - m * g * l * np.cos(solution.y[0])
    np.testing.assert_allclose(energy, energy[0], rtol=1e-8)


def test_formulations_that_apply_give_one_motion() -> None:
    x = np.array([0.3, 2.0])
    values = [pendulum().rhs(method)(0.2, x) for method in ("lagrange", "auto")]
    np.testing.assert_allclose(values[0], values[1], rtol=1e-13)


def test_run_returns_every_intermediate(tmp_path: Path) -> None:
    with shorter_validations():
        finished = mb2fmu.run(pendulum(), tmp_path / "made")
    build = finished.exported.build
    assert finished.passed
    assert build.interface.named("height").unit == "m"
    assert "modelDescription.xml" in build.core
    assert build.derivation.program.layout.inputs == ("F",)
    assert sorted(path.name for path in (tmp_path / "made").iterdir()) == ["Swinging.fmu", "Swinging.html"]
    stages = [timing.stage for timing in finished.timings]
    assert stages[:5] == ["load", "check", "read", "formulate", "lower"]
    assert stages[5:9] == ["describe", "emit", "differentiate", "emit the derivatives"]
    assert stages[9:13] == ["draw", "compile", "build", "pack"]
    assert {other.simulation.kind for other in finished.validated.result.other_interface_types} == {"ModelExchange"}
    messages: list[str] = []

    class Listener:
        def started(self, stage: str) -> None: ...

        def finished(self, timing: pipeline.StageTime) -> None: ...

        def report_activity(self, stage: str, part: str) -> None:
            messages.append(f"{stage}: {part}")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fmu_validation, "check_fmu_conformity", lambda *_, **__: ())
        again = mb2fmu.validate(finished.exported.path, pendulum(), observer=Listener())
    assert again.passed
    assert "validate: run the FMU as Co-Simulation" in messages
    assert messages[-1] == "validate: audit the FMU's description"


@pytest.mark.parametrize("function", [mb2fmu.derive, mb2fmu.export, mb2fmu.run, mb2fmu.build])
def test_a_misspelled_option_is_refused(function: Callable[..., Any], tmp_path: Path) -> None:
    """Seen: ``formulation="tmt"`` was taken, and Kane's method used."""
    arguments = [] if function in (mb2fmu.derive, mb2fmu.build) else [tmp_path]
    subject = mb2fmu.derive("simple_pendulum") if function is mb2fmu.build else "simple_pendulum"
    with pytest.raises(TypeError, match="formulation: no such option; there are"):
        function(subject, *arguments, formulation="tmt")
    assert not list(tmp_path.iterdir())


def test_observer_is_reported_each_stage_once_and_in_order() -> None:
    reported: list[tuple[str, str]] = []

    class Listener:
        def started(self, stage: str) -> None:
            reported.append(("start", stage))

        def finished(self, timing: pipeline.StageTime) -> None:
            reported.append(("end", timing.stage))
            assert timing.seconds >= 0.0

    derivation = pipeline.derive(pendulum(), observer=Listener())
    stages = [timing.stage for timing in derivation.timings]
    assert reported == [(event, stage) for stage in stages for event in ("start", "end")]


def test_what_fails_is_started_and_never_finished() -> None:
    messages: list[str] = []

    class Listener:
        def started(self, stage: str) -> None:
            messages.append(stage)

        def finished(self, timing: pipeline.StageTime) -> None:
            messages.remove(timing.stage)

    with pytest.raises(ModelError):
        pipeline.derive("no_such_model.py", observer=Listener())
    assert messages == ["load"]


def test_fmi_3_is_refused_by_the_python_backend() -> None:
    with pytest.raises(InterfaceError, match=r"FMI 2\.0 only"):
        pipeline.build(pipeline.derive(pendulum()), backend="python", fmi="3")


def test_what_is_for_native_fmus_is_refused_by_the_python_backend() -> None:
    with pytest.raises(EmitError) as caught:
        pipeline.build(pipeline.derive(pendulum()), backend="python", platforms="all", fast=True, compiler="cc")
    assert [fault.where for fault in caught.value.faults] == ["--platform", "--compiler", "--fast"]


def test_a_result_that_cannot_be_written_says_where(tmp_path: Path) -> None:
    taken = tmp_path / "taken"
    taken.write_text("a file")
    with pytest.raises(PackageError, match="taken"):
        pipeline.export(pendulum(), taken / "below")
    with pytest.raises(PackageError, match="taken"):
        pipeline.write(taken / "page.html", b"")


def test_public_names_are_there_and_others_are_not() -> None:
    for name in mb2fmu.__all__:
        assert getattr(mb2fmu, name) is not None
    assert set(mb2fmu.__all__) <= set(dir(mb2fmu))
    with pytest.raises(AttributeError, match="no attribute 'simulate_everything'"):
        _ = mb2fmu.simulate_everything


LATE_IMPORTS = (
    *("concurrent.futures", "fmpy", "importlib.metadata", "jinja2", "matplotlib", "numpy.ma", "numpy.polynomial"),
    *("numpy.random", "rich", "scipy", "trimesh", "xmlschema", "mb2fmu.audit", "mb2fmu.pipeline.study_runs.study_run"),
    *(
        "mb2fmu.fmu.emit_c",
        "mb2fmu.fmu.emit_python",
        "mb2fmu.fmu.emit_xml",
        "mb2fmu.fmu.runner",
        "mb2fmu.fmu.toolchain",
    ),
    *("mb2fmu.report.pages", "mb2fmu.systems", "mb2fmu.validation"),
)
"""What ``run`` does not bring before it is called: it is imported when it is used."""


def test_import_costs_nothing_until_a_name_is_used() -> None:
    code = (
        "import sys, mb2fmu, mb2fmu.pipeline, mb2fmu.report\n"
        "heavy = {'sympy', 'numpy', 'scipy', 'fmpy', 'lxml', 'click', 'rich'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
        "mb2fmu.Mb2FmuError\n"
        "assert 'sympy' not in sys.modules\n"
        "mb2fmu.Model\n"
        "assert 'sympy' in sys.modules and 'fmpy' not in sys.modules and 'matplotlib' not in sys.modules\n"
        "mb2fmu.pipeline.run\n"
        f"early = set({LATE_IMPORTS!r}) & set(sys.modules)\n"
        "assert not early, early\n"
        "mb2fmu.report.render_fmu_description_page, mb2fmu.export\n"  # what an export needs is none of the validation's
        "validation = {'mb2fmu.validation', 'mb2fmu.audit', 'fmpy', 'rich'} & set(sys.modules)\n"
        "assert not validation, validation\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_a_study_of_an_fmu_needs_neither_sympy_nor_pandas_nor_all_of_scipy() -> None:
    code = (
        "import sys\n"
        "from mb2fmu.analysis.studies.resolved_study_plan import VariedQuantityValues, sample_study_cases\n"
        "from mb2fmu.analysis.studies.trajectory_files import make_arrow_array\n"
        "from mb2fmu.pipeline.study_runs import study_run, study_summary\n"
        "cases = sample_study_cases('latin-hypercube', [VariedQuantityValues('uniform', (0.0, 1.0))], 5, 0)\n"
        "assert make_arrow_array(cases[:, 0]).to_pylist() == cases[:, 0].tolist()\n"
        "assert make_arrow_array(['', 'ä']).to_pylist() == ['', 'ä']\n"
        "needless = {'sympy', 'pandas', 'scipy.stats', 'mb2fmu.compiler.lowering'} & set(sys.modules)\n"
        "assert not needless, needless\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_what_to_type_for_the_same_fmu_has_the_treatment_of_its_loops():
    asked: ExportOptions = {"method": "tmt", "constraints": "partition", "independent": ("q1", "q2"), "fmi": "3"}
    definition = SimpleNamespace(source=Path("models/andrews.py"), given={"m1": 0.5})
    target = FmuTarget("3", "native")
    built = SimpleNamespace(derivation=SimpleNamespace(definition=definition), interface=SimpleNamespace(target=target))
    typed = report_pages.format_run_command(built, {"n": 2}, asked)
    words = (
        "mb2fmu run andrews.py --set n=2 --at m1=0.5 --method tmt --constraints partition --independent q1,q2 --fmi 3"
    )
    assert typed == words


def test_options_fall_into_those_of_equations_and_those_of_the_fmu():
    asked: ExportOptions = {"method": "tmt", "baumgarte": 1.0, "fmi": "3", "fast": True}
    assert separate_formulation_and_build_options(asked) == (
        {"method": "tmt", "baumgarte": 1.0},
        {"fmi": "3", "fast": True},
    )
    assert set(ExportOptions.__annotations__) == {*FormulationOptions.__annotations__, *BuildOptions.__annotations__}


def test_a_stage_leaves_the_garbage_collector_alone():
    """Its thresholds belong to the program that calls."""
    before = gc.get_threshold()
    with StageStopwatch(None)("stage"):
        assert gc.get_threshold() == before


def test_the_pipeline_reads_as_one_page():
    """What follows the imports, but for docstrings."""
    text = Path(model_export_and_run.__file__).read_text(encoding="utf-8")
    functions = [node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)]
    documented = sum((first := node.body[0]).end_lineno - first.lineno + 1 for node in functions)
    assert len(text.splitlines()) - functions[0].lineno - documented <= 60
