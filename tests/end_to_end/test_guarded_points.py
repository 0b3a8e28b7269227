"""An FMU's adjoint derivatives of each output, at a point where branches that are not taken have poles."""

from __future__ import annotations

import itertools
from pathlib import Path

import fmpy
import numpy as np
import pytest
import sympy as sm
from fmpy.fmi3 import FMU3Model, FMU3Slave
from sympy.physics import mechanics as me

from mb2fmu import Model, pipeline

q, u = me.dynamicsymbols("q u")
m, k = sm.symbols("m k", positive=True)

OUTPUTS = {
    "sinc": sm.sinc(q) * k,
    "piecewise": sm.Piecewise((m * q, q <= 0), (k * sm.log(q) * u, True)),
    "step": sm.Heaviside(q, sm.Rational(1, 2)) * u,
    "root": sm.sqrt(sm.Abs(q)) + u,
    "magnitude": sm.Abs(q) * u + k,
}


def _model() -> Model:
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    P = O.locatenew("P", q * N.x)
    P.set_vel(N, u * N.x)
    particle = me.Particle("particle", P, m)
    force = -k * sm.sinc(q) * u - sm.Piecewise((k * q, sm.Eq(q, 0)), (k * sm.sin(q) ** 2 / q, True))
    kane = me.KanesMethod(N, [q], [u], [q.diff() - u])
    kane.kanes_equations([particle], [(P, force * N.x)])
    model = Model("GuardedPoint", kane)
    model.parameter(m, 1.5)
    model.parameter(k, 0.75)
    model.coordinate(q, 0.0)
    model.speed(u, 0.5)
    for name, expression in OUTPUTS.items():
        model.output(name, expression)
    return model


@pytest.fixture(scope="module")
def unit(tmp_path_factory) -> tuple[fmpy.model_description.ModelDescription, Path]:
    folder = tmp_path_factory.mktemp("guarded")
    path = pipeline.export(_model(), folder, fmi="3").path
    return fmpy.read_model_description(str(path)), Path(fmpy.extract(str(path), str(folder / "unpacked")))


@pytest.mark.parametrize("kind", [FMU3Model, FMU3Slave])
def test_every_adjoint_is_the_directional_derivative(unit, kind):
    description, folder = unit
    names = description.modelExchange if kind is FMU3Model else description.coSimulation
    made = kind(
        guid=description.guid, unzipDirectory=str(folder), modelIdentifier=names.modelIdentifier, instanceName="one"
    )
    made.instantiate()
    made.enterInitializationMode(startTime=0.0)
    made.exitInitializationMode()
    reference = {variable.name: variable.valueReference for variable in description.modelVariables}
    knowns = ["time", "q", "u"]
    unknowns = ["der(q)", "der(u)", *OUTPUTS]
    table = {}
    for unknown, known in itertools.product(unknowns, knowns):
        undefined = (unknown, known) == ("root", "q")
        if undefined:
            continue
        forward = made.getDirectionalDerivative([reference[unknown]], [reference[known]], [1.0], 1)
        backward = made.getAdjointDerivative([reference[unknown]], [reference[known]], [1.0], 1)
        table[unknown, known] = forward[0]
        assert backward[0] == pytest.approx(forward[0], rel=1e-15), (unknown, known)
    for known in knowns:  # all at once but the one without a slope
        several = [name for name in unknowns if name != "root"]
        found = made.getAdjointDerivative(
            [reference[name] for name in several], [reference[known]], [1.0] * len(several), 1
        )
        assert found[0] == pytest.approx(sum(table[name, known] for name in several), rel=1e-14)
    made.terminate()
    made.freeInstance()
    assert table["sinc", "q"] == 0.0
    assert table["piecewise", "q"] == 1.5
    assert table["step", "u"] == 0.5
    assert table["root", "u"] == 1.0
    assert np.isclose(table["der(u)", "u"], -0.5)
