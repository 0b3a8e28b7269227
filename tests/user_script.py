"""A user's script, typed: it is checked by mypy strict and run in tests/unit/test_public_interface.py."""

import sys
from pathlib import Path

import sympy as sm
import sympy.physics.mechanics as me

import mb2fmu
from mb2fmu import CoulombFriction, Model


def slider() -> Model:
    q, u = me.dynamicsymbols("q u")
    m, k = sm.symbols("m k", positive=True)
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    P = O.locatenew("P", q * N.x)
    P.set_vel(N, u * N.x)
    kane = me.KanesMethod(
        N, [q], [u], [q.diff() - u], bodies=[me.Particle("mass", P, m)], forcelist=[(P, -k * q * N.x)]
    )
    model = Model("Slider", kane)
    model.parameter(m, 1.0, "kg")
    model.parameter(k, 20.0, "N/m")
    model.coordinate(q, 0.1, "m")
    model.speed(u, 0.0, "m/s")
    model.experiment(stop=1.0)
    return model


def main(folder: Path) -> bool:
    model: Model = mb2fmu.load(__file__)
    result: mb2fmu.pipeline.RunResult = mb2fmu.run(model, folder)
    worst: float = max(row.ratio for row in result.errors)
    audit = mb2fmu.audit_fmu(result.path, run=False)
    final: float = float(mb2fmu.simulate(model, stop=0.5)["q"][-1])
    locus = mb2fmu.sweep(model, "k", [10.0, 20.0])
    sys.stdout.write(
        f"{result} {result.report.name} {worst} {audit.count('error')} {final} {locus} {CoulombFriction}\n"
    )
    return result.passed


if __name__ == "__main__":
    sys.exit(0 if main(Path(sys.argv[1])) else 1)
