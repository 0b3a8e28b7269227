"""Linear equations about an operating point, on the constraint manifold.

With x' = f(x, r), y = h(x, r) and states held on a manifold whose tangent directions δx = N ξ are those with G δx = 0,

    ξ' = A ξ + B δr,  δy = C ξ + D δr,      A = (∂f/∂x N)_i,  B = (∂f/∂r)_i,  C = ∂h/∂x N,  D = ∂h/∂r,

where ξ are the small changes of independent states i (N has the identity in their rows). Derivatives are those of the
program. Of the directions off the manifold nothing is left: neither the poles of an attractor nor zeros.

Source: Meijaard, Papadopoulos, Ruina and Schwab, Proc. R. Soc. A 463 (2007), for the benchmark that it is tested on;
Peterson, Gede and Hubbard, Multibody System Dynamics 33 (2015) 143-161 (linearization of constrained systems).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.linalg import qr

from mb2fmu.analysis.operating_point import OperatingPoint, find_operating_point, project_onto_constraints
from mb2fmu.analysis.operating_point_start import OperatingPointStart
from mb2fmu.analysis.program_derivatives import ProgramDerivatives
from mb2fmu.compiler.program.scalar_program import ScalarProgram
from mb2fmu.errors import AnalysisError, Fault
from mb2fmu.mechanics.equations.equations_of_motion import EquationsOfMotion

Floats = npt.NDArray[np.float64]

_RANK_TOLERANCE = 1e-9


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Linearization:
    """ξ' = A ξ + B δr, δy = C ξ + D δr.

    Attributes:
        point: The operating point.
        names: Of all states of the FMU, as in ``point.x``.
        states: Names of ξ, the independent states.
        inputs: Names of r.
        outputs: Names of y.
        unsteady: Outputs that depend on coordinates that grow, so that their rows of C hold at this instant only.
        A: Shape (n, n).
        B: Shape (n, n_r).
        C: Shape (n_y, n).
        D: Shape (n_y, n_r).
        y: Outputs at the point, shape (n_y,).
        eigenvalues: Of A in 1/s, largest real part first, shape (n,).
        resting_friction: What dry friction acts on and does not slide, as expressions: that friction is left out.
    """

    point: OperatingPoint
    names: tuple[str, ...]
    states: tuple[str, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    unsteady: tuple[str, ...]
    A: Floats
    B: Floats
    C: Floats
    D: Floats
    y: Floats
    eigenvalues: npt.NDArray[np.complex128]
    resting_friction: tuple[str, ...] = ()

    def __repr__(self) -> str:
        """Return a line: about what motion, its states and eigenvalues."""
        found = ", ".join(f"{value:.4g}" for value in self.eigenvalues)
        return f"<Linearization about {self.point.motion}: states {', '.join(self.states)}; eigenvalues {found} in 1/s>"

    def to_json(self) -> str:
        """Return everything as JSON; complex numbers as [re, im]."""
        point = self.point
        content = {
            "motion": point.motion,
            "time": point.t,
            "point": dict(zip(self.names, point.x.tolist(), strict=True)),
            "rates": dict(zip(self.names, point.rates.tolist(), strict=True)),
            "ignored": [self.names[i] for i in point.ignored],
            "states": self.states,
            "inputs": dict(zip(self.inputs, point.r.tolist(), strict=True)),
            "outputs": dict(zip(self.outputs, self.y.tolist(), strict=True)),
            "unsteady_outputs": self.unsteady,
            "resting_friction": self.resting_friction,
            "A": self.A.tolist(),
            "B": self.B.tolist(),
            "C": self.C.tolist(),
            "D": self.D.tolist(),
            "eigenvalues": [[value.real, value.imag] for value in self.eigenvalues.tolist()],
        }
        return json.dumps(content, indent=2) + "\n"


def linearize(
    equations: EquationsOfMotion,
    program: ScalarProgram,
    start: OperatingPointStart,
    *,
    search: bool = True,
    slopes: ProgramDerivatives | None = None,
) -> Linearization:
    """Find the operating point near ``start`` and linearize there.

    Args:
        equations: Of any formulation.
        program: The same lowered.
        start: Where to begin.
        slopes: At the start's time and parameters, if they are there already.
        search: False: linearizes at the start values themselves, moved onto the constraints if need be.

    Raises:
        AnalysisError: If there is no such point, or it is singular, or constraints depend on inputs.
    """
    slopes = slopes or ProgramDerivatives(equations, program, start.t, start.p)
    zero = np.zeros(slopes.n_x)
    begin = OperatingPoint(start.t, start.x, start.r, start.p, zero, "instant", (), 0.0)
    begin = project_onto_constraints(slopes, begin, start.guessed_states, start.held, start.names)
    point = begin
    if search:
        _check_time_independence(program, slopes, begin)
        point = find_operating_point(
            slopes, begin, start.coordinates, names=start.names, held=start.held, trimmed=start.free_inputs
        )
    x, r = point.x, point.r
    if np.any(np.abs(slopes.residual_slopes(x, r)[:, slopes.n_x :]) > 0):
        what = "a constraint depends on an input: its motion is given, and cannot be a small change by itself"
        raise AnalysisError(
            "the equations cannot be linearized:", [Fault(what, remedy="give the motion by parameters")]
        )
    kept = [i for i in range(slopes.n_x) if i not in point.ignored]
    independent, N = _constraint_null_space(
        slopes.constraint_rows(x, r)[:, kept], [kept.index(i) for i in start.dependent if i in kept]
    )
    J, H = slopes.rate_slopes(x, r), slopes.output_slopes(x, r)
    if not (np.isfinite(J).all() and np.isfinite(H).all()):
        what = "a derivative is not finite there"
        raise AnalysisError("the equations cannot be linearized:", [Fault(what, remedy="take another point")])
    rows = [kept[i] for i in independent]
    outputs = program.entries["outputs"].labels
    growing = [bool(np.any(np.abs(row) > 1e-12)) for row in H[:, list(point.ignored)]]
    A = (J[:, kept] @ N)[rows]
    values = np.linalg.eigvals(A) if len(A) else np.zeros(0)
    order = np.lexsort((values.imag, -values.real.round(12)))
    return Linearization(
        point=point,
        names=start.names,
        states=tuple(start.names[i] for i in rows),
        inputs=start.inputs,
        outputs=outputs,
        unsteady=tuple(name for name, grows in zip(outputs, growing, strict=True) if grows),
        A=A,
        B=J[rows][:, slopes.n_x :],
        C=H[:, kept] @ N,
        D=H[:, slopes.n_x :],
        y=slopes.outputs(x, r),
        eigenvalues=values[order].astype(complex),
    )


def _constraint_null_space(G: Floats, dependent: Sequence[int]) -> tuple[list[int], Floats]:
    """Return independent columns of G δx = 0, and N with δx = N δx_i."""
    n = G.shape[1]
    if not len(G):
        return list(range(n)), np.eye(n)
    lengths = np.linalg.norm(G, axis=1)
    G = G[lengths > 0] / lengths[lengths > 0, None]
    values = np.linalg.svd(G, compute_uv=False)
    rank = int(np.count_nonzero(values > _RANK_TOLERANCE * max(values, default=0.0)))
    chosen = list(dependent)
    part = np.linalg.svd(G[:, chosen], compute_uv=False) if len(chosen) == rank else np.zeros(0)
    if not part.size or part[rank - 1] < 1e-6 * part[0]:
        chosen = qr(G, pivoting=True, mode="r")[1][:rank].tolist()
    independent = [i for i in range(n) if i not in chosen]
    N = np.zeros((n, len(independent)))
    N[independent] = np.eye(len(independent))
    N[chosen] = -np.linalg.lstsq(G[:, chosen], G[:, independent], rcond=None)[0]
    return independent, N


def _check_time_independence(program: ScalarProgram, slopes: ProgramDerivatives, point: OperatingPoint) -> None:
    """Refuse motions that depend on time: they are never steady."""
    from mb2fmu.compiler.derivatives import form_jacobian
    from mb2fmu.compiler.evaluation import make_evaluator

    by_time = form_jacobian(program, "rhs", ("time",))
    values = make_evaluator(by_time.program, by_time.entry)(point.t, point.x, point.r, point.p)
    if np.any(np.abs(values) > 1e-12) and slopes.n_x:
        names = ", ".join(f"der({program.layout.states[i]})" for i in dict.fromkeys(by_time.rows.tolist()))
        what = f"time stands in {names}: no motion is steady"
        raise AnalysisError(
            "no equilibrium or steady motion was found:", [Fault(what, remedy="linearize at an instant: --instant")]
        )
