"""External functions for CasADi: values and both derivatives are those that CasADi finds from its own expressions."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import casadi as ca
import numpy as np
import pytest
from casadi_graph import graph_function

from mb2fmu import pipeline
from mb2fmu.fmu.toolchain import compilers, host_platform

MODELS = Path(__file__).parents[3] / "models"

# A chain with inputs, a blade without slip, tables and muscles. Loops by Newton's method take CasADi minutes.
FEW = [("chaplygin_sleigh", "auto"), ("muscle_arm", "auto")]
MANY = [
    ("cart_pole", "auto"),
    *((name, "auto") for name in (
        "andrews", "bicycle", "bowl", "crank_slider", "double_pendulum", "driven_crank",
        "excavator_arm", "four_bar", "governor", "hand", "heavy_top", "n_four_bar", "n_link_pendulum",
        "quadrotor_slung_load", "rigid_body", "robot_arm", "rolling_disc", "rolling_sphere", "simple_pendulum",
        "snakeboard", "three_body_pendulum", "turntable_ball",
    )),
    ("four_bar", "attractor"),
    ("four_bar", "partition"),
]  # fmt: skip


def relative(given: ca.DM, wanted: ca.DM) -> float:
    """Largest difference in parts of the largest entry, at least 1."""
    a, b = np.array(given), np.array(wanted)
    assert a.shape == b.shape
    return float(np.max(np.abs(a - b), initial=0.0) / max(1.0, np.max(np.abs(b), initial=0.0)))


def check(name: str, constraints: str, folder: Path) -> None:
    derivation = pipeline.derive(MODELS / f"{name}.py", constraints=constraints)
    pipeline.export_target_source_code(derivation, "casadi", folder)
    x0, r0, p0 = pipeline.start_values(derivation)
    generator = np.random.default_rng(7)
    for entry in ("rhs", "outputs"):
        title = f"{derivation.definition.name}_{entry}"
        own = ca.external(title, str(folder / f"{title}{host_platform().extension}"))
        theirs = graph_function(derivation.program, entry)
        x = x0 + 1e-3 * generator.uniform(-1.0, 1.0, len(x0))
        at = [0.3, x, r0 + generator.uniform(-1.0, 1.0, len(r0)), p0 * generator.uniform(0.999, 1.001, len(p0))]
        y = theirs(*at)
        weights = generator.uniform(-1.0, 1.0, y.shape)
        assert relative(own(*at), y) < 1e-11
        for ours, reference in zip(own.jacobian()(*at, y), theirs.jacobian()(*at, y), strict=True):
            assert relative(ours, reference) < 1e-9
        adjoint = theirs.reverse(1)
        gradient = adjoint(*at, y, weights)
        direction = [generator.uniform(-1.0, 1.0, theirs.size_in(i)) for i in range(4)]
        assert relative(own.forward(1)(*at, y, *direction), theirs.forward(1)(*at, y, *direction)) < 1e-9
        for ours, reference in zip(own.reverse(1)(*at, y, weights), gradient, strict=True):
            assert relative(ours, reference) < 1e-9
        expected = adjoint.jacobian()(*at, y, weights, *gradient)
        found = own.reverse(1).jacobian()(*at, y, weights, *gradient)
        for ours, reference in zip(found, expected, strict=True):
            assert relative(ours, reference) < 1e-9
        ours, reference = (np.concatenate([np.array(block).ravel() for block in each]) for each in (found, expected))
        assert np.abs(ours - reference).max() <= 1e-9 * np.abs(reference).max()  # of the Hessian's largest entry
        along = [*direction, np.zeros(y.shape), generator.uniform(-1.0, 1.0, y.shape)]
        products = [own.reverse(1).forward(1), adjoint.forward(1)]
        for ours, reference in zip(*(each(*at, y, weights, *gradient, *along) for each in products), strict=True):
            assert relative(ours, reference) < 1e-9


@pytest.mark.parametrize(("name", "constraints"), FEW)
def test_derivatives_are_those_of_casadis_own_expressions(name: str, constraints: str, tmp_path: Path) -> None:
    check(name, constraints, tmp_path)


@pytest.mark.repeats
@pytest.mark.parametrize(("name", "constraints"), MANY)
def test_derivatives_of_further_models(name: str, constraints: str, tmp_path: Path) -> None:
    check(name, constraints, tmp_path)


def test_ipopt_goes_the_way_of_casadis_own_expressions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (MODELS.parent / "docs" / "how_to" / "optimal_control.md").read_text(encoding="utf-8")
    code = page.partition("```python\n")[2].partition("```")[0]
    code = code.replace("models/cart_pole.py", (MODELS / "cart_pole.py").as_posix())
    derivation = pipeline.derive(MODELS / "cart_pole.py")
    pipeline.export_target_source_code(derivation, "casadi", tmp_path / "cart_pole_casadi")
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    exec(compile(code.replace(".so", host_platform().extension), "optimal_control.md", "exec"), names)
    motion, _, effort, iterations = names["swing_up"](graph_function(derivation.program, "rhs"), ca.SX)
    assert iterations == names["iterations"]
    assert abs(effort - names["effort"]) < 1e-10 * effort
    np.testing.assert_allclose(names["motion"], motion, rtol=0.0, atol=1e-9)
    np.testing.assert_allclose(motion[:, -1], 0.0, atol=1e-9)


def test_the_system_s_compiler_is_taken_where_zig_is_not_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def there(name: str, *rest: object) -> object:
        return None if name == "ziglang" else find_spec(name, *rest)

    find_spec = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", there)
    monkeypatch.setattr(compilers, "_find_zig", compilers._find_zig.__wrapped__)
    derivation = pipeline.derive(MODELS / "simple_pendulum.py")
    pipeline.export_target_source_code(derivation, "casadi", tmp_path)
    title = f"{derivation.definition.name}_rhs"
    x, r, p = pipeline.start_values(derivation)
    own = ca.external(title, str(tmp_path / f"{title}{host_platform().extension}"))
    assert relative(own(0.0, x, r, p), graph_function(derivation.program, "rhs")(0.0, x, r, p)) < 1e-12
