"""Model files for scripts: values, starts and units wherever scripts keep them, and what is said of bad scripts."""

from __future__ import annotations

import inspect
import math
import os
import sys
import time
from pathlib import Path

import pendulum_script
import pytest
from click.testing import CliRunner
from representatives import by_night, marked

from mb2fmu.cli.cli_application import commands
from mb2fmu.errors import ModelError
from mb2fmu.model import check_model, load
from mb2fmu.pipeline.adoption import script_adoption, script_adoption_process
from mb2fmu.pipeline.adoption.adopted_script_result import AdoptedModelFile
from mb2fmu.pipeline.adoption.script_adoption import adopt
from mb2fmu.pipeline.adoption.script_adoption_process import adopt_script

IMPORTS = "import numpy as np\nfrom scipy.integrate import solve_ivp, odeint, ode\n"
MECHANICS = IMPORTS + pendulum_script.MECHANICS
FORMED = IMPORTS + pendulum_script.FORMED
FUNCTION = FORMED + "f = sm.lambdify([(q, u), (m, g, l)], kane.rhs())\n"

WAYS = {
    "dictionary and solve_ivp": FORMED + (
        "c = {m: 2.0, g: 9.81, l: 0.5}\nf = sm.lambdify([q, u], kane.rhs().subs(c))\n"
        "solve_ivp(lambda t, x: f(*x).ravel(), [0, 3], [0.3, -0.2])\n"
    ),
    "args of odeint": FUNCTION + (
        "odeint(lambda x, t, p: f(x, p).ravel(), [0.3, -0.2], np.linspace(0, 3, 301), args=([2.0, 9.81, 0.5],))\n"
    ),
    "ode": FUNCTION + (
        "r = ode(lambda t, x, p: f(x, p).ravel()).set_initial_value([0.3, -0.2], 0).set_f_params((2.0, 9.81, 0.5))\n"
        "r.integrate(0.1)\n"
    ),
    "zip": FORMED + (
        "rhs = kane.rhs().subs(zip([m, g, l], [2, 9.81, 0.5]))\n"
        "f = sm.lambdify([u, q], rhs)\nsolve_ivp(lambda t, x: f(x[1], x[0]).ravel(), [0, 3], [0.3, -0.2])\n"
    ),
    "pair of lists and an integrator of its own": FORMED + (
        "symbols, symbols_vals = [m, g, l], np.array([2.0, 9.81, 0.5])\n"
        "f = sm.lambdify([q, u] + symbols, kane.rhs())\nx = np.array([0.3, -0.2])\n"
        "for _ in range(30):\n    x = x + 0.01 * f(*x, *symbols_vals).ravel()\n"
    ),
    "a dictionary by name": FUNCTION + (
        "def slope(t, x, p):\n    return f(x, [p['m'], p['g'], p['l'], p['forgotten']]).ravel()\n"
        "solve_ivp(slope, [0, 3], [0.3, -0.2], args=({'m': 2.0, 'g': 9.81, 'l': 0.5},))\n"
    ),
    "dummies": FORMED + (
        "d = {q: sm.Dummy(), u: sm.Dummy()}\nf = sm.lambdify([d[q], d[u], l, g, m], kane.rhs().subs(d))\n"
        "solve_ivp(lambda t, x: f(x[0], x[1], 0.5, 9.81, 2.0).ravel(), [0, 3], [0.3, -0.2])\n"
    ),
    "PyDy's System": FORMED + (
        "from pydy.system import System\nsys = System(kane, times=np.linspace(0, 3, 100))\n"
        "sys.constants = {m: 2.0, g: 9.81, l: 0.5}\nsys.initial_conditions = {q: 0.3, u: -0.2}\nsys.integrate()\n"
    ),
    "PyDy's ode function": FORMED + (
        "from pydy.codegen.ode_function_generators import generate_ode_function\n"
        "f = generate_ode_function(kane.forcing, [q], [u], [m, g, l], mass_matrix=kane.mass_matrix)\n"
        "odeint(f, [0.3, -0.2], np.linspace(0, 3), args=({m: 2.0, g: 9.81, l: 0.5},))\n"
    ),
    "PyDy's older ode function": FORMED + (
        "from pydy_code_gen.code import generate_ode_function\n"
        "f = generate_ode_function(kane.mass_matrix_full, kane.forcing_full, [m, g, l], [q], [u])\n"
        "odeint(f, [0.3, -0.2], np.linspace(0, 3), args=({'constants': [2.0, 9.81, 0.5]},))\n"
    ),
    "opty": FORMED + (
        "from opty import Problem\nProblem(None, None, kane.kanes_equations()[0], (q, u), 101, 0.03,\n"
        "    known_parameter_map={m: 2.0, g: 9.81, l: 0.5},\n"
        "    instance_constraints=(q.func(0.0) - 0.3, u.func(0.0) + 0.2, q.func(3.0) - 1.0))\n"
    ),
    "class with defaults": FORMED + (
        "class Simulation:\n    def __init__(self, mass=2.0):\n"
        "        self.p = [mass, 9.81, 0.5]\n        self.f = sm.lambdify([q, u, m, g, l], kane.rhs())\n"
        "    def rhs(self, t, x):\n        return self.f(*x, *self.p).ravel()\n"
        "    def run(self):\n        return solve_ivp(self.rhs, [0, 3], [0.3, -0.2])\n"
        "Simulation().run()\n"
    ),
    "loads before bodies": MECHANICS + (
        "kane.kanes_equations(loads, [bob])\nvalues = {m: 2.0, g: 9.81, l: 0.5, q: 0.3, u: -0.2}\n"
    ),
    "values that only SymPy's equations give": FORMED + (
        "found = sm.solve([(kane.rhs()[1].subs({q: sm.pi / 2}) + 19.62)], g)\n"
        "gravity = list(found.values() if isinstance(found, dict) else found[0])[0] if found else None\n"
        "c = {m: 2.0, l: 0.5, g: float(gravity.subs(l, 0.5))}\nx = {q: 0.3, u: -0.2}\n"
    ),
}  # fmt: skip


@pytest.fixture(autouse=True)
def in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Adopts here: a process takes a second to start, and says the same. ``monkeypatch.undo()`` goes back to it."""

    def run_here(script: Path, output: Path, label: str | None, limit: float, *, inline: bool) -> AdoptedModelFile:
        place = os.path.relpath(script.resolve(), output.resolve().parent)
        return adopt_script(script, place, script_adoption._model_name(script.stem), label, limit, inline=inline)

    monkeypatch.setattr(script_adoption, "_run_worker", run_here)


def written(folder: Path, text: str, name: str = "pendulum.py") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def adopted_model(folder: Path, text: str) -> tuple[dict[str, tuple[float, str]], str]:
    """Values and units by name, as the model file says them, and its text."""
    script = written(folder, text)
    record = adopt_script(script, "pendulum.py", "Pendulum", None, 30.0)
    definition = check_model(load(written(folder, record.text, "pendulum_model.py")))
    found = {item.name: (item.value, item.unit) for item in definition.parameters if not item.calculated}
    found |= {item.name: (item.start, item.unit) for item in (*definition.coordinates, *definition.speeds)}
    return found, record.text


NIGHTLY = {
    "ode", "zip", "a dictionary by name", "PyDy's ode function", "PyDy's older ode function", "loads before bodies",
    "class with defaults",
}  # fmt: skip
"""Ways that are found by what others show: functions that are called, dictionaries, arguments."""


@pytest.mark.parametrize("way", marked(WAYS, repeating=NIGHTLY))
def test_values_and_starts_are_found_wherever_scripts_keep_them(tmp_path: Path, way: str) -> None:
    found, text = adopted_model(tmp_path, WAYS[way])
    expected = {"m": (2.0, "kg"), "g": (9.81, "m/s2"), "l": (0.5, "m"), "q": (0.3, "rad"), "u": (-0.2, "rad/s")}
    if "zip" in way:  # f's arguments are in another order than the states
        assert "stop=3" in text
    assert {name: value for name, (value, _) in found.items()} == pytest.approx(
        {name: value for name, (value, _) in expected.items()}
    )
    assert {name: unit for name, (_, unit) in found.items()} == {name: unit for name, (_, unit) in expected.items()}
    assert "TODO" not in text


def test_the_middle_of_opty_s_bounds_is_taken_where_nothing_else_is_said(tmp_path: Path) -> None:
    found, text = adopted_model(
        tmp_path,
        FORMED
        + (
            "from opty import Problem\nProblem(None, None, kane.kanes_equations()[0], (q, u), 101, 0.03,\n"
            "    known_parameter_map={m: 2.0, g: 9.81}, instance_constraints=(q.func(0.0) - 0.3,),\n"
            "    bounds={l: (0.2, 0.8), m: (0, 9), q: (-2, 3), u: (1.0, 2.0), g: (0, np.inf)})\n"
        ),
    )
    assert {name: value for name, (value, _) in found.items()} == pytest.approx(
        {"m": 2.0, "g": 9.81, "l": 0.5, "q": 0.3, "u": 1.5}
    )
    assert text.count("the middle of its bounds") == 2


def test_what_cannot_be_evaluated_is_no_value(tmp_path: Path) -> None:
    _, record = adopt(written(tmp_path, "from sympy import *\n" + FORMED + (
        "class Broken(sm.Expr):\n    is_number = True\n    def _eval_evalf(self, prec):\n        raise RuntimeError\n"
        "class Worse(sm.Expr):\n    free_symbols = property(lambda self: 1 / 0)\n"
        "values = {m: Broken(), l: Worse(), g: 9.81}\nm, l = Broken(), Worse()\nq0 = [Broken(), Worse()]\n"
    )))  # fmt: skip
    assert set(record.missing) == {"m", "l"}


@pytest.mark.repeats  # by day the end of its process
def test_debug_shows_where_the_script_s_process_failed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    script = tmp_path / "wrong.py"
    script.write_text("def fall():\n    raise KeyError('pit')\n\nfall()\n")
    assert "in adopt_script" in CliRunner().invoke(commands, ["adopt", str(script), "--debug"]).output


def test_expressions_of_each_other_stay_expressions(tmp_path: Path) -> None:
    _, text = adopted_model(tmp_path, FORMED + "c = {m: 2.0, l: 0.5, g: 2 * m * l**2 * sm.sqrt(3)}\n")
    assert "import sympy as sm" in text
    assert 'model.parameter(script["g"], 2*sm.sqrt(3)*script["l"]**2*script["m"], "m/s2")' in text


def test_what_the_script_does_not_say_is_a_line_to_fill_in(tmp_path: Path) -> None:
    path, record = adopt(written(tmp_path, FORMED + "c = {m: 2.0, l: 0.5}\n"))
    assert (record.missing, record.no_start) == (("g",), ("q", "u"))
    assert 'model.parameter(script["g"], ..., "m/s2")  # TODO: no value found in pendulum.py' in path.read_text()
    with pytest.raises(ModelError, match=r"g has no value\n.*write a number in m/s2 in place of"):
        check_model(load(path))
    assert sorted(each.name for each in tmp_path.iterdir()) == ["pendulum.py", "pendulum_model.py"]


EQUILIBRIUM = MECHANICS + (
    "from scipy.optimize import brentq\nloads += [(A, 3.0 * (1 - q) * N.z)]\nkane.kanes_equations([bob], loads)\n"
    "c = {m: 2.0, g: 9.81, l: 0.5}\ntorque = sm.lambdify([q], kane.forcing[0].subs(c))\n"
    "q0 = brentq(torque, 0.0, 1.0) if torque(0.0) else 0.1\n"
    "f = sm.lambdify([q, u], kane.rhs().subs(c))\nsolve_ivp(lambda t, x: f(*x).ravel(), [0, 3], [q0, 0.0])\n"
)


def test_a_mass_that_no_equation_holds_needs_no_value(tmp_path: Path) -> None:
    hub = "M = sm.Symbol('M')\nhub = me.Particle('hub', O, M)\nkane.kanes_equations([bob, hub], loads)\n"
    found, text = adopted_model(tmp_path, MECHANICS + hub + "kane.rhs().subs({m: 2.0, g: 9.81, l: 0.5})\n")
    assert found["M"] == (1.0, "kg")
    assert "does not enter the equations of motion" in text
    missing = MECHANICS + hub + "kane.rhs().subs({g: 9.81, l: 0.5})\n"
    assert adopt_script(written(tmp_path, missing), "pendulum.py", "Pendulum", None, 30.0).missing == ("m",)


def test_what_is_to_be_mended_names_the_line_of_the_model_file(tmp_path: Path) -> None:
    wrong = MECHANICS + (
        "x, v = me.dynamicsymbols('x v')\nC = O.locatenew('C', x * N.y)\nC.set_vel(N, v * N.y)\n"
        "kane = me.KanesMethod(N, [q, x], [v, u], kd_eqs=[q.diff() - v, x.diff() - v])\n"
        "kane.kanes_equations([bob, me.Particle('cart', C, m)], loads)\n"
    )
    _, record = adopt(written(tmp_path, wrong), tmp_path / "other.py")
    assert record.faults
    assert "other.py:" in record.faults[0]


def test_a_start_that_follows_from_the_equations_is_the_script_s(tmp_path: Path) -> None:
    found, _ = adopted_model(tmp_path, EQUILIBRIUM)
    q = found["q"][0]
    assert 3.0 * (1 - q) == pytest.approx(9.81 * math.sin(q), rel=1e-9)


@pytest.mark.repeats  # as the next one
def test_a_start_that_follows_from_unformed_equations_is_doubted(tmp_path: Path) -> None:
    slow = EQUILIBRIUM.replace("c = {", "if kane.forcing[0]:\n    while True: pass\nc = {")
    record = adopt_script(written(tmp_path, slow), "pendulum.py", "Pendulum", None, 2.5)
    assert any("equations of motion that were not formed" in each for each in record.faults)


def test_a_script_that_catches_the_interrupt_is_interrupted_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(script_adoption_process, "_REPEATED_INTERRUPT_S", 0.1)
    stubborn = "from time import sleep\nif kane.forcing[0]:\n    try:\n        while True: sleep(0.01)\n"
    stubborn += "    except BaseException: pass\n"
    stubborn += "    while True: sleep(0.01)\n"
    record = adopt_script(
        written(tmp_path, EQUILIBRIUM.replace("c = {", stubborn + "c = {")), "pendulum.py", "Pendulum", None, 2.5
    )
    assert any("equations of motion that were not formed" in each for each in record.faults)


def test_what_an_absent_package_reads_is_no_value(tmp_path: Path) -> None:
    text = FORMED + (
        "import tikzplotlib as absent\nmass, swing = float(absent.read('m')), float(absent.read('q'))\n"
        "f = sm.lambdify([q, u], kane.rhs().subs({m: mass, g: 9.81, l: 0.5}))\n"
        "solve_ivp(lambda t, x: f(*x).ravel(), [0, 3], [swing, -0.2])\n"
    )
    path, record = adopt(written(tmp_path, text))
    assert (record.missing, record.no_start) == (("m",), ("q",))
    assert 'model.speed(script["u"], -0.2, "rad/s")' in path.read_text()


def test_inputs_are_functions_that_nothing_determines_and_forces_without_value(tmp_path: Path) -> None:
    extra = "F, s = sm.Symbol('F'), me.dynamicsymbols('s')\nloads += [(P, F * N.y), (A, s * N.z)]\n"
    found, text = adopted_model(
        tmp_path, MECHANICS + extra + "kane.kanes_equations([bob], loads)\nc = {m: 1, g: 9.8, l: 2}\n"
    )
    assert 'model.input(script["F"], 0.0, "N")' in text
    assert 'model.input(script["s"], 0.0, "N.m")' in text
    assert "F" not in found


@pytest.mark.parametrize(("force", "expected"), [
    ("s, F = me.dynamicsymbols('s'), sm.Symbol('F')\n", "F (0 assumed), s (0 assumed; it changes later)"),
    ("s, F = me.dynamicsymbols('s F')\n", "s (0 assumed; it changes later), F (0.5 assumed; it changes later)"),
])  # fmt: skip
def test_a_force_that_is_made_in_the_integrand_is_reported(tmp_path: Path, force: str, expected: str) -> None:
    inside = "s" if "Symbol" in force else "s, F"
    values = "np.sin(t)" if "Symbol" in force else "np.sin(t), 0.5 + t"
    script = written(tmp_path, MECHANICS + force + (
        "loads += [(P, F * N.y), (A, s * N.z)]\nkane.kanes_equations([bob], loads)\nc = {m: 1, g: 9.8, l: 2}\n"
        f"f = sm.lambdify([q, u, {inside}], kane.rhs().subs(c))\n"
        f"solve_ivp(lambda t, x: f(*x, {values}).ravel(), [0, 3], [0.3, -0.2])\n"
    ))  # fmt: skip
    done = CliRunner().invoke(commands, ["adopt", str(script)])
    assert set(expected.split(", ")) == set(done.output.split("no signal found: ")[1].splitlines()[0].split(", "))


@pytest.mark.parametrize(("law", "doubt"), [
    ("10.0 if t < 1 else 0.0", "it changes later"),
    ("10.0 - 3 * x[1]", "it changes later"),
    ("10.0", ""),
])  # fmt: skip
@pytest.mark.parametrize("symbol", ["me.dynamicsymbols('F')", *by_night("sm.Symbol('F')")])
def test_a_force_that_a_variable_of_the_integrand_holds_is_followed(
    tmp_path: Path, symbol: str, law: str, doubt: str
) -> None:
    script = written(tmp_path, MECHANICS + f"F = {symbol}\n" + (
        "loads += [(P, F * N.y)]\nkane.kanes_equations([bob], loads)\nc = {m: 1, g: 9.8, l: 2}\n"
        "f = sm.lambdify([q, u, F], kane.rhs().subs(c))\n"
        f"def rhs(t, x):\n    F = {law}\n    return f(*x, F).ravel()\n"
        "solve_ivp(rhs, [0, 3], [0.3, 0.0])\n"
    ))  # fmt: skip
    path, record = adopt(script)
    assert record.no_signal == ((f"F (10 assumed; {doubt})",) if doubt else ())
    (line,) = (each for each in path.read_text().splitlines() if 'script["F"]' in each)
    assert (doubt in line) if doubt else ("begins" not in line)
    assert ("model.input(" in line) == (bool(doubt) or "dynamic" in symbol)


def test_how_a_force_goes_on_that_the_scripts_own_loop_holds_is_not_known(tmp_path: Path) -> None:
    script = written(tmp_path, MECHANICS + "F = me.dynamicsymbols('F')\n" + (
        "loads += [(P, F * N.y)]\nkane.kanes_equations([bob], loads)\nc = {m: 1, g: 9.8, l: 2}\n"
        "f = sm.lambdify([q, u, F], kane.rhs().subs(c))\n"
        "def rhs(t, x):\n    F = 10.0 if t < 1 else 0.0\n    return f(*x, F).ravel()\n"
        "x = np.array([0.3, 0.0])\nfor k in range(300):\n    x = x + 0.01 * rhs(0.01 * k, x)\n"
    ))  # fmt: skip
    assert adopt(script)[1].no_signal == ("F (10 assumed; how it goes on is not known)",)


def test_a_mass_that_changes_is_to_be_mended(tmp_path: Path) -> None:
    script = written(tmp_path, MECHANICS + (
        "kane.kanes_equations([bob], loads)\nf = sm.lambdify([q, u, m, g, l], kane.rhs())\n"
        "solve_ivp(lambda t, x: f(*x, 2.0 + t, 9.8, 0.5).ravel(), [0, 3], [0.3, -0.2])\n"
    ))  # fmt: skip
    (fault,) = adopt(script)[1].faults
    assert fault.startswith("m is a parameter of 2, but in the script it changes later")


def test_of_many_starts_the_first_are_named(tmp_path: Path) -> None:
    chain = (
        "x = me.dynamicsymbols('x:13')\nfor i in x:\n"
        "    C = O.locatenew('C', i * N.y)\n    C.set_vel(N, i.diff() * N.y)\n"
        "    bodies.append(me.Particle(str(i), C, m))\n"
        "L = me.LagrangesMethod(me.Lagrangian(N, *bodies), x)\nL.form_lagranges_equations()\nm_value = {m: 1.0}\n"
    )
    done = CliRunner().invoke(commands, ["adopt", str(written(tmp_path, MECHANICS + "bodies = []\n" + chain))])
    (line,) = (line for line in done.output.splitlines() if "no start value found" in line)
    assert line.endswith("x0, x1, x2, x3, x4, x5, x6, x7, x8, x9, x10, x11 and 14 more")


def test_what_the_script_integrates_beside_its_speeds_is_reported(tmp_path: Path) -> None:
    text = MECHANICS + (
        "s = me.dynamicsymbols('s')\nloads += [(A, s * N.z)]\nkane.kanes_equations([bob], loads)\n"
        "f = sm.lambdify([q, u, s, m, g, l], kane.rhs())\n"
        "solve_ivp(lambda t, x: [*f(*x, 2.0, 9.81, 0.5).ravel(), -x[2]], [0, 3], [0.3, -0.2, 0.7])\n"
    )
    path, record = adopt(written(tmp_path, text))
    (said,) = record.faults
    assert said.startswith("s(t) is integrated by the script itself")
    (line,) = [each for each in path.read_text().splitlines() if 'script["s"]' in each]
    assert line.strip().startswith("model.input(")
    assert "TODO" in line


def test_a_prescribed_motion_brings_its_rates(tmp_path: Path) -> None:
    text = FORMED.replace("O.set_vel(N, 0)", "a = me.dynamicsymbols('a')\nR = me.Point('R')\nR.set_vel(N, 0)\n"
                          "O.set_pos(R, a * N.y)\nO.set_vel(N, a.diff() * N.y)")  # fmt: skip
    script = written(tmp_path, text + "c = {m: 1, g: 9.8, l: 2}\n")
    path, _ = adopt(script)
    assert 'model.input(script["a"], 0.0, "m", rates=True)' in path.read_text()
    inputs = {item.name: item.unit for item in check_model(load(path)).inputs}
    assert inputs == {"a": "m", "a_dot": "m/s", "a_ddot": "m/s2"}


def test_a_joints_method_is_called_so(tmp_path: Path) -> None:
    text = (
        "import sympy as sm\nimport sympy.physics.mechanics as me\nq, u = me.dynamicsymbols('q u')\n"
        "wall, slide = me.RigidBody('wall'), me.RigidBody('slide', mass=sm.Symbol('m'))\n"
        "joint = me.PrismaticJoint('rail', wall, slide, q, u, joint_axis=wall.x)\n"
        "method = me.JointsMethod(wall, joint)\nmethod.form_eoms()\n"
    )
    _, record = adopt(written(tmp_path, text))
    assert record.kind == "a JointsMethod"


def test_one_of_several_is_chosen_by_name(tmp_path: Path) -> None:
    text = (
        FORMED + "second = me.KanesMethod(N, [q], [u], kd_eqs=[q.diff() - u])\nsecond.kanes_equations([bob], loads)\n"
    )
    script = written(tmp_path, text + "c = {m: 1, g: 9.8, l: 2}\n")
    _, record = adopt(script)
    assert (record.label, record.others) == ("second", ("kane",))
    path, record = adopt(script, label="kane", overwrite=True)
    assert record.label == "kane"
    assert 'read_script("pendulum.py", "kane")' in path.read_text()
    with pytest.raises(ModelError, match=r"no third is made in it\n.*it makes kane, second"):
        adopt(script, tmp_path / "third.py", label="third")


def test_one_file_needs_no_script(tmp_path: Path) -> None:
    text = "import os\nprint(os.name)\n" + FORMED.replace("loads = [", "loads = []\nloads += [")
    script = written(tmp_path, text + "m_value = 2.0\nc = {m: m_value, g: 9.81, l: 0.5}\nprint(kane)\n")
    fetched = check_model(load(adopt(script)[0]))
    path, _ = adopt(script, tmp_path / "one.py", inline=True)
    script.unlink()
    alone = check_model(load(path))
    assert [item.name for item in alone.parameters] == [item.name for item in fetched.parameters] == ["g", "l", "m"]
    assert str(alone.mechanics.forcelist) == str(fetched.mechanics.forcelist)
    assert not {"read_script", "os.name", "m_value", "solve_ivp("} & set(path.read_text().split())


def test_mechanics_of_a_function_cannot_be_written_into_one_file(tmp_path: Path) -> None:
    body = "\n".join(f"    {line}" for line in FORMED.splitlines())
    script = written(tmp_path, f"def derive():\n{body}\n    c = {{m: 1, g: 9.8, l: 2}}\nderive()\n")
    assert adopt(script)[1].label == "kane"
    with pytest.raises(ModelError, match="kane is made inside of a function"):
        adopt(script, tmp_path / "one.py", inline=True)


BODY = "\n".join(f"    {line}" for line in FORMED.replace('m, g, l = sm.symbols("m g l")', "").splitlines())


@pytest.mark.parametrize(
    ("text", "note"),
    [
        (f"def derive(m, g, l=2.0):\n{BODY}\n    return kane\n",
         "nothing calls derive: it was called with symbols for m, g"),
        *by_night((f"import sympy as sm\nm, l = sm.symbols('m l')\ng = 9.8\ndef derive(m, g, *, l):\n{BODY}\n",
         "nothing calls derive: it was called")),
        ((f"class Pendulum:\n  def __init__(self, m):\n    self.m = m\n  def derive(self, g=9.8, l=2.0):\n"
         f"    m = self.m\n{BODY}\n"), "nothing calls Pendulum: it was called with symbols for m"),
        (f"def derive(n):\n    range(n)\n    KanesMethod()\ndef other(g, m, l):\n{BODY}\n",
         "nothing calls other: it was called with symbols for g, m, l"),
    ],
    ids=["function", "variables of the script", "class", "the second one"],
)  # fmt: skip
def test_a_function_that_nothing_calls_is_called_with_symbols(tmp_path: Path, text: str, note: str) -> None:
    path, record = adopt(written(tmp_path, text))
    assert (record.label, record.notes) == ("kane", (note,))
    path.write_text(path.read_text().replace("...", "1.5"))
    model = check_model(load(path))
    assert "m" in {item.name for item in model.parameters}
    assert str(model.mechanics.bodies[0].mass) == "m"


@pytest.mark.parametrize(
    "loop",
    [
        "x = 0\nwhile True:\n    x += 1\n",
        (
            "import time\nwhile True:\n    try:\n        while True:\n            time.sleep(0.01)\n"
            "    except BaseException:\n        pass\n"
        ),
    ],
    ids=["interruptible", "not interruptible"],
)
def test_an_endless_loop_ends_at_its_line_and_leaves_nothing(
    tmp_path: Path, loop: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if "except" in loop:  # only the end of its process ends it
        monkeypatch.undo()
    script = written(tmp_path, loop)
    begun = time.monotonic()
    with pytest.raises(ModelError, match=r"pendulum.py:[2-5]: the time limit (of 0.5 s )?ended it here"):
        adopt(script, time_limit=0.5)
    assert time.monotonic() - begun < 60.0
    assert [each.name for each in tmp_path.iterdir()] == ["pendulum.py"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("import sympy as sm\nx = sm.Symbol('x')\n", "no mechanics are found"),
        (MECHANICS, "kane has no bodies"),
        ("def derive(n):\n    return KanesMethod(n)\n", "derive would, and nothing calls it"),
        (
            f"def derive(q, u, m, g, l):\n{BODY.replace('q, u = me.dynamicsymbols', '_ = me.dynamicsymbols')}\n",
            "derive would, and nothing calls it",
        ),
        (MECHANICS.partition("kane =")[0], r"its bodies \(bob\) are handed to nothing\n.*kane = KanesMethod"),
        (MECHANICS.partition("bob =")[0], r"writes equations by hand for points O, P\n.*Particle or RigidBody"),
    ],
)
def test_scripts_without_mechanics_are_refused(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(ModelError, match=said):
        adopt(written(tmp_path, text))


@pytest.mark.skipif(os.name == "nt", reason="an interpreter that is a program of the shell")
def test_a_script_that_ends_its_process_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    interpreter = written(tmp_path, "#!/bin/sh\nexit 7\n", "interpreter")  # which would take a second to come to it
    interpreter.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(interpreter))
    with pytest.raises(ModelError, match="exit code 7"):
        adopt(written(tmp_path, "import os\nos._exit(7)\n"))


def test_an_edited_model_file_is_kept(tmp_path: Path) -> None:
    script = written(tmp_path, WAYS["dictionary and solve_ivp"])
    model = written(tmp_path, "edited = True\n", "pendulum_model.py")
    with pytest.raises(ModelError, match=r"pendulum_model.py: it is there already\n.*-o.*--force"):
        adopt(script)
    refused = CliRunner().invoke(commands, ["adopt", str(script)])
    assert refused.exit_code == 2
    assert model.read_text() == "edited = True\n"
    with pytest.raises(ModelError, match="it is the script itself"):
        adopt(script, script, overwrite=True)
    assert script.read_text() == WAYS["dictionary and solve_ivp"]
    done = CliRunner().invoke(commands, ["adopt", str(script), "--force"])
    assert done.exit_code == 0, done.output
    assert "def pendulum() -> Model" in model.read_text()


def test_the_command_and_the_function_have_one_time_limit() -> None:
    (option,) = [each for each in commands.commands["adopt"].params if each.name == "time_limit"]
    assert option.default == inspect.signature(adopt).parameters["time_limit"].default


def test_the_command_says_what_to_type_next(tmp_path: Path) -> None:
    script = written(tmp_path, WAYS["dictionary and solve_ivp"])
    done = CliRunner().invoke(commands, ["adopt", str(script)])
    assert done.exit_code == 0, done.output
    assert done.output.splitlines()[-1].endswith(f"mb2fmu run {tmp_path / 'pendulum_model.py'}")
    assert "kane, a KanesMethod, with 3 parameters, 1 coordinate, 1 speed" in done.output
