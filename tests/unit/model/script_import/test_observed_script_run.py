"""Scripts run unchanged, leave nothing behind, and hand over mechanics that were never formed."""

from __future__ import annotations

import copy
import importlib
import io
from pathlib import Path

import pytest
import scipy.integrate
import sympy as sm
from pendulum_script import FORMED, MECHANICS
from sympy.physics import mechanics as me

from mb2fmu.errors import ModelError
from mb2fmu.model import check_model, load, read_script
from mb2fmu.model.script_import.observed_script_run import run_script


def written(folder: Path, text: str, name: str = "pendulum.py") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def test_forming_is_put_off_and_the_object_is_as_before(tmp_path: Path) -> None:
    text = FORMED + "M, f = kane.mass_matrix_full, kane.forcing_full\nqdd = (fr + frstar)[0]\n"
    run = run_script(written(tmp_path, text))
    kane = run.mechanics["kane"]
    assert run.complete == ("kane",)
    assert run.error is None
    assert kane._frstar is None
    kane.kanes_equations()
    q, u, (g, l) = kane.q[0], kane.u[0], sm.symbols("g l")
    assert sm.simplify(kane.rhs() - sm.Matrix([u, -g / l * sm.sin(q)])) == sm.zeros(2, 1)


def test_derivatives_of_velocity_constraints_are_taken_when_they_are_needed(tmp_path: Path) -> None:
    text = MECHANICS + (
        "y, v = me.dynamicsymbols('y v')\nC = O.locatenew('C', y * N.y)\nC.set_vel(N, v * N.y)\n"
        "def make():\n    return me.KanesMethod(N, [q, y], [u], kd_eqs=[q.diff() - u, y.diff() - v],\n"
        "        u_dependent=[v], velocity_constraints=[v - l * sm.cos(q) * u])\n"
        "free, own = kane, make()\nown.kanes_equations([bob, me.Particle('cart', C, m)], loads)\nmake()\n"
    )
    run = run_script(written(tmp_path, text))
    assert list(run.mechanics) == ["KanesMethod[1]", "KanesMethod[2]", "KanesMethod[3]"]  # one count for all of them
    made = run.mechanics["KanesMethod[2]"]
    assert "_f_dnh" not in vars(made)
    space = run.namespaces[-1]
    q, u, l = space["q"], space["u"], space["l"]
    assert made._f_dnh == sm.Matrix([l * sm.sin(q) * u**2])
    assert isinstance(copy.copy(made), me.KanesMethod)
    formed = run_script(written(tmp_path, text), defer=False).mechanics["KanesMethod[2]"]
    copied = copy.copy(made)
    copied.kanes_equations()
    names = {symbol: sm.Symbol(str(symbol)) for symbol in (*made.u, *made.q, *made._udot)}
    difference = copied.forcing.xreplace(names) - formed.forcing.xreplace(names)
    assert sm.simplify(difference) == sm.zeros(2, 1)


def test_everything_is_as_before_after_a_run(tmp_path: Path) -> None:
    watched = [
        (me.KanesMethod, "kanes_equations"), (me.KanesMethod, "mass_matrix"), (me.System, "form_eoms"),
        (sm.Basic, "subs"), (sm.MatrixBase, "subs"), (sm, "lambdify"), (scipy.integrate, "solve_ivp"),
        (scipy.integrate, "ode"), (io, "open"),
    ]  # fmt: skip
    before = [vars(owner)[name] for owner, name in watched]
    here = Path.cwd()
    run_script(written(tmp_path, FORMED))
    assert [vars(owner)[name] for owner, name in watched] == before
    assert Path.cwd() == here


def test_the_first_integration_ends_the_script(tmp_path: Path) -> None:
    text = FORMED + (
        "from scipy.integrate import solve_ivp\nf = sm.lambdify([q, u, m, g, l], kane.rhs())\n"
        "try:\n    solve_ivp(lambda t, x: f(*x, 1.0, 9.81, 0.5).ravel(), (0, 4), [0.2, 0.3])\n"
        "except Exception:\n    pass\nreached = True\n"
    )
    run = run_script(written(tmp_path, text))
    assert run.integration.integrator == "solve_ivp"
    assert (run.integration.start, run.integration.span) == ((0.2, 0.3), (0.0, 4.0))
    assert not any("reached" in space for space in run.namespaces)


def test_an_integration_before_the_mechanics_is_done(tmp_path: Path) -> None:
    text = "from scipy.integrate import odeint\ny = float(odeint(lambda y, t: -y, 1.0, [0.0, 1.0])[-1, 0])\n" + FORMED
    (space,) = [space for space in run_script(written(tmp_path, text)).namespaces if "y" in space]
    assert space["y"] == pytest.approx(0.36787944, rel=1e-6)


def test_absent_packages_that_draw_are_stood_in_for(tmp_path: Path) -> None:
    text = (
        "import pyvista, k3d.plot as p\nfrom vpython import *\nfrom opty import parse_free\n"
        "fig, (a, b) = pyvista.subplots(1, 2)\nline, = a.plot([1])\nplotter = pyvista.Plotter(off=True)\n"
        "with plotter as inside:\n    inside.add(2 * p.box + 1)\n"
    )
    assert run_script(written(tmp_path, text + FORMED)).error is None
    written(tmp_path, "\nimport absent_mechanics_package\n", "beside.py")
    said = r"beside.py:2: No module named .*\n.*\(import absent_mechanics_package\)"
    with pytest.raises(ModelError, match=said):
        run_script(written(tmp_path, "import beside\n" + FORMED))


def test_installed_packages_that_draw_are_stood_in_for_whatever_their_version(tmp_path: Path) -> None:
    text = (
        "from matplotlib.pyplot import *\nfrom pylab import *\nimport seaborn.objects\n"
        "style.use('a style that is gone')\nfigure(), plot(linspace(0, 1), ones(50)), show()\n"
        "from IPython.display import SVG, display\ndisplay(SVG(filename='a picture that is elsewhere.svg'))\n"
        "import sympy.plotting\nsympy.plotting.plot(sympy.Symbol('x'), show=False).show()\n"
    )
    assert run_script(written(tmp_path, text + FORMED)).error is None
    assert importlib.import_module("matplotlib").__file__  # the installed one is there again


def test_files_are_read_beside_the_script_and_written_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "numbers.txt").write_text("3.5")
    text = FORMED + (
        "import numpy as np, os\nfrom pathlib import Path\nvalue = float(open('numbers.txt').read())\n"
        "np.savetxt('out.csv', np.eye(2))\nos.makedirs('figures')\n"
        "Path(__file__).with_name('beside.txt').write_text('x')\n"
        "os.makedirs(os.path.join(os.path.dirname(__file__), 'made'), exist_ok=True)\n"
    )
    run = run_script(written(tmp_path, text))
    assert run.error is None
    assert any(space.get("value") == 3.5 for space in run.namespaces)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["numbers.txt", "pendulum.py"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x = input('mass? ')\n", r"pendulum.py:1: KeyboardInputRequested: it asks for input: mass\?"),
        ("import sympy\n\nraise ValueError('\\n  no')\n", "pendulum.py:3: ValueError: no"),
        ("print 'old'\n", "pendulum.py:1: .*\n.*Python 2"),
        ("def f():\n    return 1 / 0\nf()\n", "pendulum.py:2: ZeroDivisionError"),
        (MECHANICS + "kane.kanes_equations([bob], [*loads, (P, 0 * N.x, 'drag')])\n", "load 2 has 3 parts"),
    ],
)
def test_a_script_that_ends_early_is_reported_with_its_line(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(ModelError, match=said):
        run_script(written(tmp_path, text))


def test_an_error_after_the_mechanics_is_kept(tmp_path: Path) -> None:
    run = run_script(written(tmp_path, FORMED + "raise RuntimeError('late')\n"))
    assert "late" in str(run.error)
    assert run.complete == ("kane",)


def test_notebooks_run_without_their_magics(tmp_path: Path) -> None:
    import json

    cells = [
        {"cell_type": "markdown", "source": ["# title"]},
        {"cell_type": "code", "source": ["%matplotlib inline\n", "!pip list\n", FORMED]},
        {"cell_type": "code", "source": ["%%bash\n", "exit 1"]},
        {"cell_type": "code", "source": ["display(kane)\n", "kane.rhs?\n", "raise ValueError('here')"]},
    ]
    path = written(tmp_path, json.dumps({"cells": cells}), "notebook.ipynb")
    run = run_script(path)
    assert list(run.mechanics) == ["kane"]
    assert run.error is not None
    assert run.error.where == "notebook.ipynb, cell 3:3"


def test_functions_that_nobody_calls_are_called(tmp_path: Path) -> None:
    body = "\n".join(f"    {line}" for line in FORMED.splitlines())
    run = run_script(written(tmp_path, f"def derive(long=False):\n{body}\n    return kane\n"))
    assert run.complete == ("kane",)


def test_a_model_file_fetches_the_mechanics(tmp_path: Path) -> None:
    written(tmp_path, FORMED + "raise RuntimeError('never reached')\n")
    model = load(
        written(
            tmp_path,
            "from mb2fmu import Model, read_script\n\ndef pendulum() -> Model:\n"
            "    script = read_script('pendulum.py', 'kane')\n    model = Model('Pendulum', script.mechanics)\n"
            "    for name, value in (('m', 1), ('g', 9.81), ('l', 0.5)):\n"
            "        model.parameter(script[name], value)\n"
            "    model.coordinate(script['q'], 0.1)\n    model.speed(script['u'], 0.0)\n"
            "    model.output_position('bob', script.body('bob').masscenter)\n    return model\n",
            "model.py",
        )
    )
    assert [item.name for item in check_model(model).parameters] == ["m", "g", "l"]
    with pytest.raises(ModelError, match=r"no symbol 'mass'.*\n.*it has"):
        read_script(tmp_path / "pendulum.py", "kane")["mass"]
    with pytest.raises(ModelError, match="no mechanics called method"):
        read_script(tmp_path / "pendulum.py", "method")


def test_a_script_is_no_model_file(tmp_path: Path) -> None:
    path = written(tmp_path, FORMED + "raise RuntimeError('it ran')\n")
    with pytest.raises(ModelError, match="mb2fmu adopt"):
        load(path)


def test_a_variable_that_holds_several_mechanics_one_after_the_other_tells_none_of_them(tmp_path: Path) -> None:
    text = FORMED + (
        "kane = me.KanesMethod(N, [q], [u], kd_eqs=[q.diff() - u])\n"
        "kane.kanes_equations([bob], [(P, 2 * m * g * N.x)])\n"
    )
    script = written(tmp_path, text)
    assert list(run_script(script).mechanics) == ["KanesMethod[1]", "KanesMethod[2]"]
    for label, times in (("KanesMethod[1]", 1), ("KanesMethod[2]", 2)):
        kane = read_script(script, label).mechanics
        weight = kane.forcelist[0][1].args[0][0][0]
        assert weight == times * sm.Symbol("m") * sm.Symbol("g")
