"""The element that docs/explanation/extending.md shows is one that works."""

from __future__ import annotations

import re
import sys
import textwrap
import types
from pathlib import Path

import numpy as np
import pytest
import sympy as sm
import sympy.physics.mechanics as me

from mb2fmu import Model, rhs

GUIDE = Path(__file__).parents[4] / "docs" / "explanation" / "extending.md"


def test_the_friction_law_of_the_guide_is_an_element(monkeypatch: pytest.MonkeyPatch) -> None:
    """Dahl's friction holds a block with the force -σ z, and z' = v - σ |v| z / F_c."""
    (code,) = (
        textwrap.dedent(block)
        for block in re.findall(
            r"^ *```python\n(.*?)^ *```", GUIDE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
        )
        if "class DahlFriction" in block
    )
    module = types.ModuleType("dahl_friction")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    exec(compile(code, "dahl_friction.py", "exec"), module.__dict__)
    x, v = me.dynamicsymbols("x v")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    P = O.locatenew("P", x * N.x)
    P.set_vel(N, v * N.x)
    kane = me.KanesMethod(N, [x], [v], [x.diff() - v], bodies=[me.Particle("block", P, sm.Integer(2))], forcelist=[])
    model = Model("Dahl", kane)
    model.coordinate(x, 0.0, "m")
    model.speed(v, 0.0, "m/s")
    model.add(module.DahlFriction("rub", (O, P, N.x), limit=3.0, stiffness=500.0))
    f = rhs(model)
    for speed, z in ((0.4, 0.002), (-0.4, 0.002), (1.0, -0.005)):
        rates = f(0.0, np.array([0.1, speed, z]))
        assert rates == pytest.approx([speed, -500.0 * z / 2.0, speed - 500.0 * abs(speed) * z / 3.0], rel=1e-12)
