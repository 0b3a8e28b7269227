"""Equations in JAX: values of the C code, our derivatives, and Newton's method differentiated implicitly."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from mb2fmu import pipeline
from mb2fmu.compiler import derivatives
from mb2fmu.compiler.evaluation import make_evaluator

MODELS = Path(__file__).parents[3] / "models"


def test_the_module_is_written_without_jax(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "jax", None)
    (path,) = pipeline.export_source_code(pipeline.derive(MODELS / "cart_pole.py"), "jax", tmp_path)
    compile(path.read_text(encoding="utf-8"), path.name, "exec")


@pytest.mark.parametrize("name", ["cart_pole", "rigid_body", "four_bar"])
def test_values_and_slopes_are_those_of_the_program(name):
    jax = pytest.importorskip("jax", reason="the extra jax is not installed")
    jax.config.update("jax_enable_x64", val=True)
    f = pipeline.rhs(MODELS / f"{name}.py")
    compiled, module = f.compile(), f.jax()
    start = np.asarray(module.initial_state())
    x = start + 0.05 * np.random.default_rng(3).standard_normal((200, len(start)))
    expected = compiled(0.3, x)
    there = np.isfinite(expected).all(axis=1)
    assert there.sum() > 100
    found = np.asarray(jax.jit(jax.vmap(module.rhs, (None, 0)))(0.3, x))
    size = np.abs(expected[there]).max(axis=1, keepdims=True)
    assert (np.abs(found - expected)[there] / size).max() <= 1e-13

    slopes = derivatives.form_jacobian(f.program, "rhs", ("states",))
    own = np.zeros((len(x), len(start), len(start)))
    own[:, np.asarray(slopes.rows), np.asarray(slopes.columns)] = make_evaluator(slopes.program, slopes.entry)(
        0.3, x, f.r0, f.p0
    )
    for mode in (jax.jacfwd, jax.jacrev):
        matrix = np.asarray(jax.jit(jax.vmap(mode(module.rhs, 1), (None, 0)))(0.3, x))
        difference = np.abs(matrix - own)[there].max(axis=(1, 2)) / np.abs(own[there]).max(axis=(1, 2))
        assert difference.max() <= 1e-11


def test_parameters_are_a_tree_and_float32_stays():
    jax = pytest.importorskip("jax", reason="the extra jax is not installed")
    f = pipeline.rhs(MODELS / "cart_pole.py")
    module = f.jax()
    x = module.initial_state(dtype=np.float32)
    assert module.rhs(0.0, x).dtype == np.float32
    slope = jax.grad(lambda p: module.rhs(0.0, x, None, p).sum())(module.PARAMETERS)
    assert set(slope) == set(f.parameters)
    with pytest.raises(KeyError, match="no parameters"):
        module.rhs(0.0, x, None, {"nothing": 1.0})
