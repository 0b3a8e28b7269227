"""Equations in JAX: derivatives, loops of long chains, what is refused, and the pages that show them."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType

import fmpy
import numpy as np
import pytest
import sympy.physics.mechanics as me
from hinges import BENNETT, linkage
from representatives import by_night
from source_programs import load_jax_module

from mb2fmu import Model, pipeline
from mb2fmu.compiler import derivatives
from mb2fmu.compiler.evaluation import make_evaluator
from mb2fmu.compiler.program.program_builder import ProgramBuilder
from mb2fmu.compiler.program.scalar_program import ProgramVariableLayout, ScalarProgram
from mb2fmu.errors import EmitError
from mb2fmu.fmu.package import write_fmu_archive
from mb2fmu.model.scalar_operation_table import Op
from mb2fmu.pipeline.derivation.right_hand_side import RightHandSide
from mb2fmu.pipeline.fmu_build.target_source_export import print_target_source_files
from mb2fmu.targets.jax import jax_printing, print_jax_module
from mb2fmu.targets.jax.jax_printing import JaxPrinter
from mb2fmu.targets.jax.repeated_statement_loops import find_repeated_statements
from mb2fmu.targets.target_model_description import TargetModelDescription, TargetModelVariable

ROOT = Path(__file__).parents[3]
MODELS = ROOT / "models"

needs_jax = pytest.mark.skipif(importlib.util.find_spec("jax") is None, reason="the extra jax is not installed")


def chain(links: int) -> Model:
    spec = importlib.util.spec_from_file_location("chain", MODELS / "chain.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.chain(links)


def random_states(f: RightHandSide, count: int) -> np.ndarray:
    return f.x0 + 0.05 * np.random.default_rng(3).standard_normal((count, len(f.x0)))


def round_off_of_states(f: RightHandSide, x: np.ndarray) -> np.ndarray:
    """Return by how much of its largest entry x' moves where states and parameters move by their last bit."""
    compiled, rng, size = f.compile(), np.random.default_rng(0), np.finfo(float).eps
    expected, moved = compiled(0.3, x), np.zeros(len(x))
    for _ in range(40):  # the largest of few choices of signs is too small
        p = f.p0 * (1.0 + size * rng.choice((-1, 1), len(f.p0)))
        found = compiled(0.3, x * (1.0 + size * rng.choice((-1, 1), x.shape)), p=p)
        moved = np.fmax(moved, np.abs(found - expected).max(axis=1) / np.abs(expected).max(axis=1))
    return moved


def own_jacobians(f: RightHandSide, x: np.ndarray) -> np.ndarray:
    slopes = derivatives.form_jacobian(f.program, "rhs", ("states",))
    own = np.zeros((len(x), len(f.x0), len(f.x0)))
    found = make_evaluator(slopes.program, slopes.entry)(0.3, x, f.r0, f.p0)
    own[:, np.asarray(slopes.rows), np.asarray(slopes.columns)] = found
    return own


def test_the_module_is_written_without_jax(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "jax", None)
    (path,) = pipeline.export_target_source_code(pipeline.derive(MODELS / "cart_pole.py"), "jax", tmp_path)
    compile(path.read_text(encoding="utf-8"), path.name, "exec")


@needs_jax
@pytest.mark.parametrize("name", ["cart_pole", *by_night("rigid_body", "four_bar")])
def test_values_are_those_of_the_c_code_and_slopes_ours(name):
    """A solution is found wherever the C code finds one; derivatives forward and in reverse."""
    import jax

    jax.config.update("jax_enable_x64", val=True)
    f = pipeline.rhs(MODELS / f"{name}.py")
    compiled, module = f.compile(), f.jax()
    x = random_states(f, 200)
    expected = compiled(0.3, x)
    found = np.asarray(jax.jit(jax.vmap(module.rhs, (None, 0)))(0.3, x))
    np.testing.assert_array_equal(np.isfinite(found).all(axis=1), np.isfinite(expected).all(axis=1))
    assert (np.abs(found - expected) / np.abs(expected).max(axis=1, keepdims=True)).max() <= 1e-13

    some = x[:20]
    own = own_jacobians(f, some)
    for mode in (jax.jacfwd, jax.jacrev):
        matrix = np.asarray(jax.jit(jax.vmap(mode(module.rhs, 1), (None, 0)))(0.3, some))
        assert (np.abs(matrix - own).max(axis=(1, 2)) / np.abs(own).max(axis=(1, 2))).max() <= 1e-11


@needs_jax
@pytest.mark.parametrize("name", by_night("andrews", "steering_linkage"))
def test_values_near_singular_positions_are_those_of_the_c_code(name):
    """At some of these states x' moves by more than 1e-13 where x moves by its last bit; two such bits are left."""
    import jax

    jax.config.update("jax_enable_x64", val=True)
    f = pipeline.rhs(MODELS / f"{name}.py")
    x = random_states(f, 200)
    expected = f.compile()(0.3, x)
    found = np.asarray(jax.jit(jax.vmap(f.jax().rhs, (None, 0)))(0.3, x))
    difference = np.abs(found - expected).max(axis=1) / np.abs(expected).max(axis=1)
    assert (difference <= np.fmax(1e-13, 2 * round_off_of_states(f, x))).all()


@needs_jax
@pytest.mark.repeats
def test_slopes_where_closing_conditions_follow_from_each_other():
    """Bennett's linkage: its slopes have no full rank, the solution lies in a space that turns with the state."""
    import jax

    jax.config.update("jax_enable_x64", val=True)
    f = pipeline.rhs(linkage(*BENNETT))
    module, x = f.jax(), random_states(f, 1)
    expected = f(0.3, x[0])
    assert np.abs(module.rhs(0.3, x[0]) - expected).max() <= 1e-13 * np.abs(expected).max()
    own = own_jacobians(f, x)[0]
    assert np.abs(jax.jacfwd(module.rhs, 1)(0.3, x[0]) - own).max() <= 1e-11 * np.abs(own).max()


@needs_jax
def test_parameters_are_a_tree_and_single_precision_stays():
    import jax

    f = pipeline.rhs(MODELS / "simple_pendulum.py")
    module = f.jax()
    x = module.initial_state().astype(np.float32)
    assert module.rhs(0.0, x).dtype == np.float32
    np.testing.assert_allclose(module.rhs(0.0, x), f(0.0, f.x0), rtol=1e-5)
    assert module.rk4_step(np.float64(0.0), np.float64(0.1), x).dtype == np.float32
    slope = jax.grad(lambda p: module.rhs(0.0, x, None, p).sum())(module.PARAMETERS)
    assert set(slope) == set(f.parameters)
    with pytest.raises(KeyError, match="no parameters"):
        module.rhs(0.0, x, None, {"nothing": 1.0})


@pytest.mark.repeats  # by day: recurrences as a chain has them, below
def test_code_of_a_chain_does_not_grow_with_its_links():
    programs = [pipeline.derive(chain(n), method="recursive-articulated").program for n in (18, 24)]
    texts = [JaxPrinter(program, "_rhs").function(("rhs",)) for program in programs]
    assert texts[1].count("\n") < 1.1 * texts[0].count("\n")
    assert [text.count("scan(") for text in texts] == [6, 7]


@needs_jax
@pytest.mark.repeats
def test_a_chain_in_loops_is_that_of_the_c_code():
    import jax

    jax.config.update("jax_enable_x64", val=True)
    f = pipeline.rhs(chain(18), method="recursive-articulated")
    x = random_states(f, 20)
    expected = f.compile()(0.3, x)
    found = np.asarray(jax.vmap(f.jax().rhs, (None, 0))(0.3, x))
    assert (np.abs(found - expected) / np.abs(expected).max(axis=1, keepdims=True)).max() <= 1e-13


def there_and_back(n: int) -> ScalarProgram:
    """Recurrences forward along x and backward, with a parameter, as a chain has them."""
    b = ProgramBuilder(ProgramVariableLayout(states=tuple(f"x{i}" for i in range(n)), parameters=("c",)))
    c, s, forward = b.parameter(0), b.constant(0.5), []
    for k in range(n):
        s = b.add(b.unary(Op.TANH, b.mul(c, s)), b.state(k))
        forward.append(s)
    back, backward = b.constant(1.0), []
    for k in reversed(range(n)):
        back = b.sub(b.mul(back, b.mul(c, forward[k])), b.state(k))
        backward.append(back)
    b.entry("rhs", b.build().layout.states, backward)
    b.entry("outputs", ("last",), [back])
    return b.build()


@needs_jax
def test_derivatives_go_through_loops_forward_and_in_reverse(monkeypatch):
    import jax

    n = 60
    monkeypatch.setattr(jax_printing, "MIN_STATEMENTS_WITH_LOOPS", 0)
    program, x = there_and_back(n), np.random.default_rng(7).uniform(-0.5, 0.5, n)
    model = TargetModelDescription(
        "There", "", "a test", tuple(TargetModelVariable(f"x{i}", "") for i in range(n)), (),
        (TargetModelVariable("c", "", 0.8),), (TargetModelVariable("last", ""),), 1.0, 0.1, 10, ((),), 1e-6,
    )  # fmt: skip
    text = print_jax_module(program, model)
    assert text.count("scan(repeat_") >= 2
    short, long = (JaxPrinter(there_and_back(size), "_rhs").function(("rhs",)).count("\n") for size in (n, 3 * n))
    assert long == short
    module = load_jax_module(text)
    np.testing.assert_allclose(module.rhs(0.0, x), make_evaluator(program, "rhs")(0.0, x, (), (0.8,)), rtol=1e-13)
    for over in ("states", "parameters"):
        slopes = derivatives.form_jacobian(program, "rhs", (over,))
        own = np.zeros((n, n if over == "states" else 1))
        own[np.asarray(slopes.rows), np.asarray(slopes.columns)] = make_evaluator(slopes.program, slopes.entry)(
            0.0, x, (), (0.8,)
        )
        for mode in (jax.jacfwd, jax.jacrev):
            slope = mode(lambda x, c: module.rhs(0.0, x, None, {"c": c}), 0 if over == "states" else 1)
            found = jax.jit(slope)(x, 0.8)
            np.testing.assert_allclose(np.reshape(found, own.shape), own, rtol=1e-11, atol=1e-13)


def test_loops_are_found_with_what_each_repetition_reads():
    """A recurrence s = c s + a[k] between other statements; values 0 to 99 are leaves, c is 99."""
    keys, reads, defined = [0], [(0, 1)], {100: 0}
    last = 100
    for k in range(60):
        keys += [1, 2]
        reads += [(99, last), (last + 1, k)]
        defined |= {last + 1: len(keys) - 2, last + 2: len(keys) - 1}
        last += 2
    keys.append(3)
    reads.append((last, 5))
    (loop,) = find_repeated_statements(keys, reads, defined)
    assert (loop.start, loop.period, loop.count, loop.end) == (1, 2, 60, 121)
    (constant, before), (product, element) = loop.operands
    assert constant.is_shared
    assert (before.is_carried, before.source, before.values[0]) == (True, 1, 100)
    assert (product.is_carried, product.source) == (False, 0)
    assert (element.source, element.values) == (-1, tuple(range(60)))


def test_what_reads_two_repetitions_back_is_no_loop():
    """Fibonacci's numbers, of period 1; with two in a repetition each reads the one before at most."""
    keys, reads = [1] * 300, [(k, k + 1) for k in range(300)]
    loops = find_repeated_statements(keys, reads, {k + 2: k for k in range(300)})
    assert all(loop.period % 2 == 0 for loop in loops)
    assert all(
        not operand.is_carried or operand.source >= 0 for loop in loops for row in loop.operands for operand in row
    )


@pytest.mark.parametrize("name", ["jax", "platform"])
def test_a_name_that_jax_imports_is_refused(tmp_path, name):
    x, v = me.dynamicsymbols("x v")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    P = O.locatenew("P", x * N.x)
    P.set_vel(N, v * N.x)
    model = Model(name, me.KanesMethod(N, [x], [v], [x.diff() - v], bodies=[me.Particle("mass", P, 2)]))
    model.coordinate(x, 0.0, "m")
    model.speed(v, 1.0, "m/s")
    with pytest.raises(EmitError, match="give the model another name"):
        pipeline.export_target_source_code(pipeline.derive(model), "jax", tmp_path / "new")
    assert not (tmp_path / "new").exists()


def run_block(number: int, monkeypatch: pytest.MonkeyPatch, *names: str) -> dict[str, object]:
    """What a block of Python of the page leaves behind; names: files of models."""
    for name in names:
        derivation = pipeline.derive(MODELS / f"{name}.py")
        (source,) = print_target_source_files(derivation, "jax").files.values()
        module: ModuleType = load_jax_module(source.decode())
        monkeypatch.setitem(sys.modules, derivation.definition.name, module)
    page = (ROOT / "docs" / "tutorials" / "learning.md").read_text(encoding="utf-8")
    code = re.findall(r"^```python\n(.*?)^```$", page, flags=re.MULTILINE | re.DOTALL)[number]
    found: dict[str, object] = {}
    exec(compile(code, "learning.md", "exec"), found)
    return found


@needs_jax
def test_the_damping_of_the_page_is_found(monkeypatch):
    page = run_block(0, monkeypatch, "msl_pendulum")
    assert abs(page["damping"] - 0.1) < 0.002
    assert 0.009 < float(page["value"]) ** 0.5 < 0.011
    error, logarithm = page["error"], -3.0
    slope = float(page["slope"](logarithm)[1])
    difference = float(error(logarithm + 1e-5) - error(logarithm - 1e-5)) / 2e-5
    assert abs(slope - difference) < 1e-7 * abs(slope)


@needs_jax
@pytest.mark.repeats
def test_the_environment_of_the_page_moves_as_the_fmu(monkeypatch, tmp_path):
    page = run_block(1, monkeypatch, "cart_pole")
    assert page["states"].shape == (4096, 4)
    assert not np.asarray(page["fallen"]).any()
    import jax

    start, step = page["reset"](jax.random.key(2)), jax.jit(page["step"])
    forces = np.random.default_rng(6).uniform(-8.0, 8.0, 100)
    states = [np.asarray(start)]
    for force in forces:
        states.append(np.asarray(step(states[-1], force)[0]))
    path = tmp_path / "CartPole.fmu"
    write_fmu_archive(pipeline.build(pipeline.derive(MODELS / "cart_pole.py"), fmi="3").core, path)
    names = ["x", "theta", "v", "omega"]
    held = np.array([(0.02 * k, force) for k, force in enumerate(forces)], [("time", float), ("force", float)])
    moved = fmpy.simulate_fmu(
        str(path), stop_time=2.0, output_interval=0.02, input=held, relative_tolerance=1e-12, output=names,
        start_values=dict(zip(names, states[0].tolist(), strict=True)), fmi_type="CoSimulation",
    )  # fmt: skip
    assert np.abs(np.array(states) - np.column_stack([moved[name] for name in names])).max() < 1e-9
