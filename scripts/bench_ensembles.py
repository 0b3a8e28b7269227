"""Double pendulums over 4 s, thousands of them on one core: seconds of pendulums per minute, and the error at the end.

All start at rest with elbows from 10 to 60 degrees, without a motor. Contenders take turns; times are of the processor,
the best of some rounds. Errors are those of the states, against this program's own motion at the tolerance 1e-12.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import fmpy
import numpy as np
import numpy.typing as npt

from mb2fmu import pipeline
from mb2fmu.fmu import package
from mb2fmu.fmu.toolchain.compilers import find_compiler
from mb2fmu.pipeline.simulation.model_ensemble_compilation import compile_model_ensemble

ROOT = Path(__file__).parents[1]
MODEL = ROOT / "models" / "double_pendulum.py"
STOP, STEP, ROUNDS = 4.0, 0.01, 3
LOW, HIGH = np.radians(10.0), np.radians(60.0)

Floats = npt.NDArray[np.float64]
Contender = Callable[[], tuple[float, Floats | None]]
"""Gives seconds of the processor, and states at the end (n, 4), if it can tell."""

MJCF = """<mujoco><option gravity="0 0 -9.81" integrator="RK4" timestep="{h}"><flag contact="disable"/></option>
<worldbody><body><joint type="hinge" axis="0 -1 0"/>
<inertial pos="0 0 -.5" mass="1" diaginertia="{i} {i} 1e-12"/>
<body pos="0 0 -1"><joint type="hinge" axis="0 -1 0"/>
<inertial pos="0 0 -.5" mass="1" diaginertia="{i} {i} 1e-12"/></body></body></worldbody></mujoco>"""


def ours(n: int) -> tuple[dict[str, Contender], Floats]:
    """Many at once, at two tolerances, by fixed steps and by implicit ones; and what is true."""
    ensemble = compile_model_ensemble(MODEL)
    ensemble = replace(ensemble, inputs=np.zeros((1, ensemble.inputs.shape[1])))
    elbows: dict[str, npt.ArrayLike] = {"elbow.angle": np.linspace(LOW, HIGH, n), "shoulder.angle": 0.0}

    def contender(**how: object) -> Contender:
        def run() -> tuple[float, Floats | None]:
            begin = time.process_time()
            found = ensemble.simulate(n, elbows, stop=STOP, step=STEP, **how)  # type: ignore[arg-type]
            return time.process_time() - begin, found.states

        run()
        return run

    exact = ensemble.simulate(n, elbows, stop=STOP, step=STEP, tolerance=1e-12).states
    return {
        "many at once, 1e-8": contender(tolerance=1e-8),
        "many at once, 1e-5": contender(tolerance=1e-5),
        "many at once, rk4 of 10 ms": contender(solver="rk4"),
        "many at once, implicit, 1e-8": contender(solver="implicit", tolerance=1e-8),
        "many at once, implicit, 1e-5": contender(solver="implicit", tolerance=1e-5),
    }, exact


def unit(n: int, folder: Path, tolerance: float) -> Contender:
    """The FMU in a warm loop of C."""
    built = pipeline.build(pipeline.derive(MODEL), fmi="2")
    package.write_file_tree(built.core, folder)
    library = next((folder / "binaries").rglob("*.so"))
    headers = Path(fmpy.__file__).parent / "c-code"
    program = folder / "bench"
    command = [*find_compiler("zig").command, "-O2", f"-I{headers}", str(ROOT / "scripts/bench_ensembles.c"), "-ldl"]
    subprocess.run([*command, "-o", str(program)], check=True, capture_output=True, timeout=300)
    reference = {v.name: v.value_reference for v in built.interface.variables}
    token = f"{{{built.interface.token}}}"
    given = (
        library,
        token,
        n,
        round(STOP / STEP),
        STEP,
        tolerance,
        reference["elbow.angle"],
        reference["tip.x"],
        LOW,
        HIGH,
    )

    def run() -> tuple[float, Floats | None]:
        said = subprocess.run([program, *map(str, given)], check=True, capture_output=True, text=True, timeout=600)
        return float(said.stdout.split()[0]), None

    return run


def mujoco(n: int, h: float) -> Contender:
    """MuJoCo's rollout on one thread, by its Runge and Kutta's method."""
    import mujoco as mj  # type: ignore[import-untyped]
    from mujoco import rollout

    model = mj.MjModel.from_xml_string(MJCF.format(h=h, i=1 / 12))
    data = mj.MjData(model)
    states = np.zeros((n, mj.mj_stateSize(model, mj.mjtState.mjSTATE_FULLPHYSICS)))
    states[:, 2] = np.linspace(LOW, HIGH, n)

    def run() -> tuple[float, Floats | None]:
        begin = time.process_time()
        found, _ = rollout.rollout(model, data, states, nstep=round(STOP / h))
        return time.process_time() - begin, found[:, -1, 1:5]

    return run


def casadi(n: int, tolerance: float) -> Contender:
    """CasADi's mapped integrator (CVODES) of the same equations, written by hand."""
    import casadi as ca

    x = ca.SX.sym("x", 4)
    c, s = ca.cos(x[1]), ca.sin(x[1])
    mass = ca.vertcat(ca.horzcat(5 / 3 + c, 1 / 3 + c / 2), ca.horzcat(1 / 3 + c / 2, 1 / 3))
    weight = 0.5 * 9.81 * ca.sin(x[0] + x[1])
    first = -1.5 * 9.81 * ca.sin(x[0]) - weight + 0.5 * s * x[3] * (2 * x[2] + x[3])
    second = -weight - 0.5 * s * x[2] ** 2
    slope = ca.vertcat(x[2:], ca.inv(mass) @ ca.vertcat(first, second))
    options: Any = {"reltol": tolerance, "abstol": 0.01 * tolerance, "linear_multistep_method": "adams",
               "max_num_steps": 100_000, "nonlinear_solver_iteration": "functional"}  # fmt: skip
    one = ca.integrator("one", "cvodes", {"x": x, "ode": slope}, 0.0, STOP, options)
    many = one.map(n, "serial")
    start = np.zeros((4, n))
    start[1] = np.linspace(LOW, HIGH, n)

    def run() -> tuple[float, Floats | None]:
        begin = time.process_time()
        found = many(x0=start)["xf"]
        return time.process_time() - begin, np.array(found).T

    return run


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-n", type=int, default=4096, help="instances")
    n = parser.parse_args().n
    os.environ["OMP_NUM_THREADS"] = "1"
    contenders, exact = ours(n)
    exact_few = ours(max(n // 16, 1))[1]
    few = max(n // 16, 1)  # the others take long
    print(f"{n} double pendulums over {STOP:g} s (others: {few}), on one core: seconds of pendulums per minute, error")
    with tempfile.TemporaryDirectory() as name:
        contenders |= {f"the FMU in a loop of C, {t:g}": unit(n, Path(name) / f"{t:g}", t) for t in (1e-8, 1e-5)}
        others = {f"MuJoCo's rollout, RK4 of {1e3 * h:g} ms": mujoco(few, h) for h in (0.01, 0.001)}
        others["CasADi's mapped CVODES, 1e-8"] = casadi(few, 1e-8)
        best = dict.fromkeys((*contenders, *others), float("inf"))
        errors: dict[str, float] = {}
        for _ in range(ROUNDS):
            for label, run in (contenders | others).items():
                seconds, states = run()
                best[label] = min(best[label], seconds)
                if states is not None:
                    errors[label] = float(np.abs(states - (exact_few if label in others else exact)).max())
    for label, seconds in best.items():
        rate = (few if label in others else n) * STOP / seconds * 60.0
        error = f"{errors[label]:.1e}" if label in errors else ""
        print(f"| {label:36} | {rate:10.3g} | {error:8} |")


if __name__ == "__main__":
    main()
