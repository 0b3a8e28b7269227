"""``close_loops``: start values that obey the holonomic constraints, fixed ones kept, guesses solved for."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import sympy as sm

from mb2fmu.errors import Fault, MechanismError
from mb2fmu.mechanism.consistency import parameter_values
from mb2fmu.mechanism.numeric import NumericMechanism
from mb2fmu.mechanism.records import Mechanism

Floats = npt.NDArray[np.float64]

_STEPS = 50
_LAST = 1e-12  # a step below it, relative, is the last one
_RANK = 1e-9
_OPEN = 1e-9  # relative; what more is left over is a contradiction

_REMEDY = 'mend lengths and start values, or say kind="guess" for those that may move'


def close_loops(mechanism: Mechanism) -> Mechanism:
    """The mechanism with start values on its constraints; itself if it has no holonomic ones.

    Gauss-Newton steps of least norm from the guesses; then the guessed speeds nearest to theirs with A u + b = 0.

    Raises:
        MechanismError: If the loops do not close near the start values, or fixed speeds contradict them.
    """
    if not mechanism.holonomic:
        return mechanism
    numeric = NumericMechanism(mechanism)
    q = _coordinates(mechanism, numeric.parameters(parameter_values(mechanism)))
    u = _speeds(mechanism, numeric, q)
    definition = mechanism.definition
    coordinates = tuple(
        replace(c, start=_rounded(x) if c.kind == "guess" else c.start)
        for c, x in zip(definition.coordinates, q, strict=True)
    )
    speeds = tuple(
        replace(s, start=_rounded(x) if s.kind == "guess" else s.start)
        for s, x in zip(definition.speeds, u, strict=True)
    )
    return replace(mechanism, definition=replace(definition, coordinates=coordinates, speeds=speeds))


def _coordinates(m: Mechanism, parameters: Floats) -> Floats:
    arguments = [m.t, *m.q, *m.p, *(a.symbol for a in m.calculated_parameters)]
    phi = [row for _, row in m.holonomic]
    places = [(i, j) for i, row in enumerate(phi) for j, q in enumerate(m.q) if q in row.free_symbols]
    values = sm.lambdify(arguments, phi, modules=["scipy", "numpy"])
    slopes = sm.lambdify(arguments, [phi[i].diff(m.q[j]) for i, j in places], modules=["scipy", "numpy"])
    declared = m.definition.coordinates
    q = np.array([c.start for c in declared])
    free = [i for i, c in enumerate(declared) if c.kind == "guess"]
    for _ in range(_STEPS if free else 0):
        residual = np.array(values(0.0, *q, *parameters), dtype=float)
        if not np.isfinite(residual).all():
            break
        G = np.zeros((len(phi), len(q)))
        G[tuple(zip(*places, strict=True))] = slopes(0.0, *q, *parameters)
        step = np.linalg.lstsq(G[:, free], residual, rcond=_RANK)[0]
        q[free] -= step
        if np.max(np.abs(step)) <= _LAST * (1.0 + np.max(np.abs(q))):
            break
    residual = np.array(values(0.0, *q, *parameters), dtype=float)
    left = _left_over([name for name, _ in m.holonomic], residual, 1.0 + float(np.max(np.abs(q))))
    if left:
        kept = ", ".join(c.name for c in declared if c.kind == "fixed")
        what = f"no coordinates near the start values close the loops: {left} from closed"
        what += f", with {kept} kept as they are" if kept else ""
        raise MechanismError("the mechanism cannot be assembled:", [Fault(what, remedy=_REMEDY)])
    return q


def _speeds(m: Mechanism, numeric: NumericMechanism, q: Floats) -> Floats:
    c, d = m.velocity_constraints, m.definition
    assert c is not None
    numeric.set(
        0.0,
        q,
        np.zeros(len(m.u_all)),
        np.array([s.start for s in d.auxiliary_states]),
        np.array([i.start for i in d.inputs]),
        numeric.parameters(parameter_values(m)),
    )
    A, b, _ = numeric.constraints()
    if int(np.linalg.matrix_rank(A, tol=_RANK * max(1.0, float(np.abs(A).max())))) == len(m.u):
        what = f"the {len(c.names)} constraints leave the {len(m.u)} speeds nothing to move"
        raise MechanismError("the mechanism cannot move:", [Fault(what, remedy="take constraints away")])
    u = np.array([s.start for s in d.speeds])
    free = [i for i, s in enumerate(d.speeds) if s.kind == "guess"]
    if free:
        u[free] -= np.linalg.lstsq(A[:, free], A @ u + b, rcond=_RANK)[0]
    left = _left_over(c.names, A @ u + b, 1.0 + float(np.max(np.abs(u))))
    if left:
        kept = ", ".join(s.name for s in d.speeds if s.kind == "fixed")
        what = f"the fixed start values of {kept} contradict the velocity constraints: {left} off"
        raise MechanismError("the mechanism cannot be started:", [Fault(what, remedy=_REMEDY)])
    return u


def _rounded(value: float) -> float:
    """To the digits that do not depend on the machine's linear algebra: the same model gives the same unit."""
    return float(f"{value:.14g}") + 0.0


def _left_over(names: list[str] | tuple[str, ...], residual: Floats, scale: float) -> str:
    """The rows that do not vanish, and by how much."""
    pairs = zip(names, residual, strict=True)
    return ", ".join(f"{name} by {value:.3g}" for name, value in pairs if not abs(value) <= _OPEN * scale)
