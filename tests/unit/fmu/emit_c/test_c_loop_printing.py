"""Statements that repeat themselves are printed as loops: same bits, little code."""

from __future__ import annotations

import numpy as np
import pytest
from compiled_c import SingularError, bare_interface

from mb2fmu.compiler.derivatives import derivative_entry_points as native
from mb2fmu.compiler.derivatives import form_jacobian
from mb2fmu.compiler.derivatives.derivative_entry_points import DIFFERENTIATED_ENTRIES, add_fmu_derivatives
from mb2fmu.compiler.evaluation import make_evaluator
from mb2fmu.compiler.program.program_builder import ProgramBuilder
from mb2fmu.compiler.program.scalar_program import Op, ProgramVariableLayout, ScalarProgram
from mb2fmu.fmu.emit_c import code_loop_detection, emit_fmu_sources, equations_c_source, list_translation_units
from mb2fmu.fmu.toolchain import compile_entry_point


def row(n: int, *, checked: bool = False) -> ScalarProgram:
    """Pendulums in a row, each on a mass that springs connect: u' by Thomas' algorithm, out and back."""
    b = ProgramBuilder(
        ProgramVariableLayout(
            states=tuple(f"{name}{i}" for name in "qu" for i in range(n)),
            inputs=tuple(f"f{i}" for i in range(n)),
            parameters=("k", *(f"m{i}" for i in range(n))),
        )
    )
    q, u = [b.state(i) for i in range(n)], [b.state(n + i) for i in range(n)]
    k = b.parameter(0)
    m = [b.mul(b.parameter(1 + i), b.constant(1.5)) for i in range(n)]
    sine, cosine = [b.unary(Op.SIN, a) for a in q], [b.unary(Op.COS, a) for a in q]
    diagonal = [b.add(m[i], b.add(k, b.mul(sine[i], sine[i]))) for i in range(n)]
    right = [b.sub(b.input(i), b.mul(b.mul(u[i], u[i]), cosine[i])) for i in range(n)]
    pivots, reduced = [diagonal[0]], [right[0]]
    for i in range(1, n):
        factor = b.div(b.mul(k, cosine[i]), pivots[-1])
        pivots.append(b.sub(diagonal[i], b.mul(factor, b.mul(k, cosine[i]))))
        reduced.append(b.sub(right[i], b.mul(factor, reduced[-1])))
        if checked:
            b.require(pivots[i], f"mass {i}", positive=True)
    u_dot = [b.div(reduced[-1], pivots[-1])]
    for i in range(n - 2, -1, -1):
        u_dot.append(b.div(b.sub(reduced[i], b.mul(b.mul(k, cosine[i + 1]), u_dot[-1])), pivots[i]))
    for name in DIFFERENTIATED_ENTRIES:
        b.entry(name, [], [])
    b.entry("rhs", b.layout.states, [*u, *reversed(u_dot)])
    b.entry("accelerations", b.layout.states[n:], list(reversed(u_dot)))
    b.entry("position", ["end"], [b.mul(sine[-1], cosine[3])])
    return b.build()


def point(n: int) -> tuple[float, np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(n)
    return 0.0, rng.normal(size=2 * n), rng.normal(size=n), np.concatenate([[0.7], rng.uniform(2.0, 3.0, n)])


def printed(n: int) -> str:
    sources = emit_fmu_sources(add_fmu_derivatives(row(n)), bare_interface())
    return (sources["sources/equations.c"] + sources["sources/derived.c"]).decode()


@pytest.mark.parametrize("compiler", [pytest.param("gcc", marks=pytest.mark.repeats), "zig"])
def test_loops_give_the_bits_of_straight_code(compile_model, compiler: str, monkeypatch: pytest.MonkeyPatch) -> None:
    n = 24
    monkeypatch.setattr(native, "MAX_JACOBIAN_OPERATIONS", 1_000)  # by columns
    program, (t, x, r, p) = row(n), point(n)
    assert "for (int k = 0;" in printed(n)
    assert "* k] = work[" in printed(n)  # results too
    seeds, weights = np.linspace(-1.0, 1.0, 1 + 4 * n + 1), np.linspace(1.0, -1.0, 3 * n + 1)
    units = [compile_model(program, compiler)]
    monkeypatch.setattr(code_loop_detection, "_MIN_SAVED_STATEMENTS", 10**9)
    units.append(compile_model(program, compiler))
    assert "for (int k = 0;" not in printed(n)
    for entry, more in (("rhs", ()), ("accelerations", ()), ("tangent", (seeds,)), ("adjoint", (weights,))):
        rolled, straight = (unit.call(entry, t, x, r, p, *more) for unit in units)
        assert rolled.tobytes() == straight.tobytes(), entry
    np.testing.assert_allclose(units[0].call("rhs", t, x, r, p), make_evaluator(program, "rhs")(t, x, r, p), rtol=1e-12)
    (rolled, _), (straight, _) = (unit.jacobian(t, x, r, p) for unit in units)
    assert rolled.tobytes() == straight.tobytes()
    exact = form_jacobian(program, "rhs", ("states",))
    expected = np.zeros((2 * n, 2 * n))
    expected[exact.rows, exact.columns] = make_evaluator(exact.program, exact.entry)(t, x, r, p)
    np.testing.assert_allclose(rolled, expected, rtol=1e-10, atol=1e-12)


def test_a_jacobian_by_columns_has_the_derivative_by_time(compile_model, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a large mechanism that is shaken: x' depends on the time itself, of one state it does not."""
    n = 4
    b = ProgramBuilder(ProgramVariableLayout(states=tuple(f"x{i}" for i in range(n))))
    x = [b.state(i) for i in range(n)]
    shaken = b.unary(Op.SIN, b.mul(b.constant(3.0), b.time()))
    for name in DIFFERENTIATED_ENTRIES:
        b.entry(name, [], [])
    b.entry("rhs", b.layout.states, [x[1], *(b.mul(shaken, b.mul(x[i], x[i - 1])) for i in range(1, n))])
    program, t, values = b.build(), 0.7, np.linspace(0.5, 1.5, n)
    written_out = compile_model(program)
    monkeypatch.setattr(native, "MAX_JACOBIAN_OPERATIONS", 0)
    by_columns = compile_model(program)
    (jacobian, slope), (expected, expected_slope) = (
        unit.jacobian(t, values, np.empty(0), np.empty(0)) for unit in (by_columns, written_out)
    )
    np.testing.assert_allclose(jacobian, expected, rtol=1e-14)
    np.testing.assert_allclose(slope, expected_slope, rtol=1e-14)
    assert slope[0] == 0.0
    np.testing.assert_allclose(slope[1:], 3.0 * np.cos(3.0 * t) * values[1:] * values[:-1], rtol=1e-14)


def test_what_is_compiled_once_has_the_bits_of_what_is_compiled_for_each_processor(
    compile_model, monkeypatch: pytest.MonkeyPatch
) -> None:
    n = 4
    program, (t, x, r, p) = row(n), point(n)
    units = [compile_model(program)]
    monkeypatch.setattr(equations_c_source, "MIN_NODES_FOR_QUICK_COMPILATION", 0)
    sources = emit_fmu_sources(add_fmu_derivatives(program), bare_interface())
    assert list_translation_units(sources) == ("unit.c", "model.c", "equations.c", "derived.c", "derived_once.c")
    assert b"SHARED ${equations} unit.c model.c derived.c derived_once.c" in sources["sources/CMakeLists.txt"]
    each, once = (sources[f"sources/{name}.c"].decode() for name in ("equations", "derived_once"))
    assert "static int equations_rhs(" in each
    assert "static int equations_adjoint(" not in each + once
    assert (
        "static int equations_tangent(" in sources["sources/derived.c"].decode()
    )  # beside a Jacobian that is written out
    units.append(compile_model(program))
    for entry, more in (("rhs", ()), ("tangent", (np.ones(4 * n + 2),)), ("adjoint", (np.ones(3 * n + 1),))):
        either, other = (unit.call(entry, t, x, r, p, *more) for unit in units)
        assert either.tobytes() == other.tobytes(), entry


def test_what_is_read_a_part_of_a_turn_further_on_each_time_is_read_in_wider_turns(compile_model) -> None:
    """A recurrence of three different steps, then the square of each value: of three turns of squares one is made."""
    n = 180
    b = ProgramBuilder(ProgramVariableLayout(states=tuple(f"x{i}" for i in range(n))))
    x = [b.state(i) for i in range(n)]
    values = [x[0]]
    for i in range(1, n):
        step = (b.add, b.sub, b.mul)[i % 3]
        values.append(step(x[i], values[-1]))
    squares = [b.mul(value, value) for value in values]
    for name in DIFFERENTIATED_ENTRIES:
        b.entry(name, [], [])
    b.entry("rhs", b.layout.states, squares)
    program = b.build()
    text = emit_fmu_sources(add_fmu_derivatives(program), bare_interface())["sources/equations.c"].decode()
    assert "const double v2 = m2 * m2;" in text
    values_at = np.linspace(0.5, 1.5, n)
    expected = make_evaluator(program, "rhs")(0.0, values_at, np.empty(0), np.empty(0))
    assert compile_model(program).call("rhs", 0.0, values_at, np.empty(0), np.empty(0)).tobytes() == expected.tobytes()


def test_many_at_once_have_the_bits_of_a_fmu(compile_model, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "MAX_JACOBIAN_OPERATIONS", 1_000)
    n = 40
    program, (t, x, r, p) = row(n), point(n)
    batch = np.linspace(-1.0, 1.0, 9)[:, None] * x
    values = compile_entry_point(program)(t, batch, r, p)
    unit = compile_model(program)
    for one, value in zip(batch, values, strict=True):
        assert unit.call("rhs", t, np.ascontiguousarray(one), r, p).tobytes() == value.tobytes()


def test_twice_as_long_a_row_is_no_more_code_to_compile(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of x': what grows is a list of stores."""
    monkeypatch.setattr(equations_c_source, "MIN_NODES_FOR_QUICK_COMPILATION", 10**9)
    monkeypatch.setattr(native, "MAX_JACOBIAN_OPERATIONS", 1_000)
    lengths = []
    for n in (60, 120):
        text = printed(n)
        function = text[text.index("rhs_0)(") : text.index("MB2FMU_VARIANT(tangent_0)(", text.index("static int"))]
        lengths.append(sum(any(sign in line for sign in "*/-") for line in function.splitlines()))
    assert lengths[1] < lengths[0] * 1.2


def test_the_turn_that_fails_is_named(compile_model, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "MAX_JACOBIAN_OPERATIONS", 1_000)
    n, which = 60, 37
    t, x, r, p = point(n)
    p[1 + which] = -5.0
    with pytest.raises(SingularError, match=f"the matrix of mass {which} is singular"):
        compile_model(row(n, checked=True)).call("rhs", t, x, r, p)
