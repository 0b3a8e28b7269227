"""x' of an FMU's program compared with SymPy's own equations of the very object that was handed over.

SymPy's ``mass_matrix_full`` and ``forcing_full`` are evaluated as they are, number by number, and solved by NumPy;
nothing of mb2fmu takes part but the names of the states and the program that is judged.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import sympy as sm
from sympy.physics import mechanics as me

from mb2fmu import pipeline
from mb2fmu.compiler.evaluation import make_evaluator
from mb2fmu.compiler.lowering import lower_equations_to_program
from mb2fmu.mechanics import formulations
from mb2fmu.mechanics.equations.equations_of_motion import Method
from mb2fmu.model.model import Model, Parts
from mb2fmu.model.sources import mechanics_source
from mb2fmu.pipeline.derivation.right_hand_side import CompilableProgram

Array = npt.NDArray[np.float64]
_NEWTON = 30


@dataclass(frozen=True)
class Compared:
    """States, x' by the FMU's program and x' by SymPy, shape (n_states, n_x); outputs shape (n_states, n_y).

    ``truth`` is SymPy's equations as functions of numbers, which take longer to form than everything else.
    """

    names: tuple[str, ...]
    states: Array
    ours: Array
    own: Array
    outputs: dict[str, Array]
    values: list[dict[sm.Basic, float]]
    derivation: pipeline.DerivationResult
    truth: _Own

    @property
    def error(self) -> float:
        """The largest difference, relative to the largest rate of the same state."""
        scale = 1e-300 + np.max(np.abs(self.own), axis=0) + 1e-3 * np.max(np.abs(self.own))
        return float(np.max(np.abs(self.ours - self.own) / scale))


def own_method(mechanics: Any) -> Any:
    """SymPy's method object with its equations formed; SymPy warns where a velocity may be had in several ways."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return _formed(mechanics)


def _formed(mechanics: Any) -> Any:
    if isinstance(mechanics, me.System):
        mechanics.form_eoms()
        return mechanics.eom_method
    if isinstance(mechanics, Parts):
        n_phi, n_rows = len(mechanics.holonomic_constraints), len(mechanics.velocity_constraints)
        q_dependent = [*mechanics.q_dependent] or [*mechanics.q][len(mechanics.q) - n_phi :]
        u_dependent = [*mechanics.u_dependent] or [*mechanics.u][len(mechanics.u) - n_phi - n_rows :]
        independent = [u for u in mechanics.u if u not in u_dependent]
        q_independent = [q for q in mechanics.q if q not in q_dependent]
        rows = [sm.diff(phi, me.dynamicsymbols._t) for phi in mechanics.holonomic_constraints]
        if len(u_dependent) == n_rows:  # rates of loops are among the velocity constraints already
            rows = []
        mechanics = me.KanesMethod(
            mechanics.frame,
            q_independent,
            independent,
            kd_eqs=list(mechanics.kinematic_equations),
            q_dependent=q_dependent or None,
            configuration_constraints=list(mechanics.holonomic_constraints) or None,
            u_dependent=u_dependent or None,
            velocity_constraints=[*rows, *mechanics.velocity_constraints] or None,
            u_auxiliary=list(mechanics.u_auxiliary) or None,
            bodies=list(mechanics.bodies),
            forcelist=[*mechanics.loads, *(load for a in mechanics.actuators for load in a.to_loads())],
        )
    if isinstance(mechanics, me.LagrangesMethod):
        mechanics.form_lagranges_equations()
    elif getattr(mechanics, "_fr", None) is None:
        mechanics.kanes_equations()
    return mechanics


class _Numbers:
    """Expressions in functions of time, as functions of numbers."""

    def __init__(self, known: list[sm.Basic], replaced: dict[sm.Basic, sm.Expr]) -> None:
        self.known = known
        self.replaced = replaced
        self.dummies = [sm.Dummy() for _ in known]
        # the highest derivatives first: they contain the functions
        order = sorted(zip(known, self.dummies, strict=True), key=lambda pair: -_order(pair[0]))
        self.stages = [{k: d for k, d in order if _order(k) == n} for n in (2, 1, 0)]

    def __call__(self, expressions: Any) -> Any:
        matrix = sm.ImmutableMatrix(expressions)
        parts: list[sm.Expr] = list(matrix)
        for _ in range(2):
            parts = _exchange(parts, self.replaced)
            parts = _exchange(parts, {each: each.doit() for each in _derivatives(parts) - set(self.known)})
        for stage in self.stages:
            parts = _exchange(parts, stage)
        steps, results = _list_steps(parts)
        plain = sm.ImmutableMatrix(*matrix.shape, results)
        return sm.lambdify(
            self.dummies, plain, modules=["scipy", "numpy"], cse=lambda _: (steps, plain), use_imps=False
        )


def _walk(parts: list[sm.Expr]) -> Iterator[sm.Basic]:
    """Each part of expressions once, operands first: SymPy's own walks visit what is shared once for each use."""
    seen: set[sm.Basic] = set()
    waiting = [(part, False) for part in reversed(parts)]
    while waiting:
        node, is_ready = waiting.pop()
        if is_ready:
            yield node
        elif node not in seen:
            seen.add(node)
            waiting.append((node, True))
            waiting += [(operand, False) for operand in node.args]


def _derivatives(parts: list[sm.Expr]) -> set[sm.Basic]:
    return {node for node in _walk(parts) if isinstance(node, sm.Derivative)}


def _exchange(parts: list[sm.Expr], by: dict[Any, Any]) -> list[sm.Expr]:
    """As ``xreplace``."""
    if not by:
        return parts
    found: dict[sm.Basic, Any] = {}
    for node in _walk(parts):
        operands = [found[each] for each in node.args]
        is_same = all(a is b for a, b in zip(operands, node.args, strict=True))
        found[node] = by[node] if node in by else node if is_same else node.func(*operands)
    return [found[part] for part in parts]


def _list_steps(parts: list[sm.Expr]) -> tuple[list[tuple[sm.Symbol, sm.Basic]], list[sm.Basic]]:
    """Every operation on numbers as a step of its own, and the results."""
    steps: list[tuple[sm.Symbol, sm.Basic]] = []
    found: dict[sm.Basic, sm.Basic] = {}
    for node in _walk(parts):
        found[node] = node.func(*(found[each] for each in node.args)) if node.args else node
        if isinstance(node, sm.Expr) and node.args and not node.is_number:
            steps.append((sm.Symbol(f"step{len(steps)}"), found[node]))
            found[node] = steps[-1][0]
    return steps, [found[part] for part in parts]


def _order(known: sm.Basic) -> int:
    return int(known.derivative_count) if isinstance(known, sm.Derivative) else 0


def compared(
    model: Model, count: int = 5, *, spread: float = 0.3, seed: int = 4, truth: _Own | None = None, **options: Any
) -> Compared:
    """Random states on the constraints, with all inputs and parameters moved, and x' by both.

    Args:
        model: Whose mechanics SymPy's equations are formed of.
        count: Number of states.
        spread: How far from the start values they are.
        seed: Of the random states.
        truth: SymPy's equations, where they were formed of an equal model before.
        options: Of ``pipeline.derive``.
    """
    derivation = pipeline.derive(model, **options)
    return held_against(derivation, truth or _Own(model, derivation, own_method(model.mechanics)), count, spread, seed)


def by_another_method(found: Compared, method: Method, count: int, *, spread: float = 0.3, seed: int = 4) -> Compared:
    """The same mechanism by another formulation; its model is not read once more."""
    mechanism = found.derivation.mechanism
    equations = formulations.plan_constraint_treatment(mechanism).apply(formulations.formulate(mechanism, method))
    program = CompilableProgram.of(lower_equations_to_program(equations))
    return held_against(
        replace(found.derivation, equations=equations, program=program), found.truth, count, spread, seed
    )


def held_against(derivation: pipeline.DerivationResult, own: _Own, count: int, spread: float, seed: int) -> Compared:
    """x' by a derivation's program and by SymPy at random states; see :func:`compared`."""
    order = [derivation.mechanism.dynamic[s] for s in derivation.equations.states]
    rhs = pipeline.right_hand_side(derivation)
    outputs = make_evaluator(derivation.program, "outputs")
    generator = np.random.default_rng(seed)
    found = [own.sample(generator, spread) for _ in range(count)]
    states = np.array([[values[s] for s in order] for values in found])
    ours, theirs, y = [], [], []
    for x, values in zip(states, found, strict=True):
        r, p = [values[s] for s in own.inputs], [values[s] for s in own.parameters]
        ours.append(rhs(values[own.t], x, r, p))
        theirs.append(own.rates(values, order))
        y.append(outputs(values[own.t], x, r, p))
    labels = derivation.program.entries["outputs"].labels
    columns = {name: np.array(y)[:, i] for i, name in enumerate(labels)} if labels else {}
    return Compared(rhs.states, states, np.array(ours), np.array(theirs), columns, found, derivation, own)


class _Own:
    def __init__(self, model: Model, derivation: pipeline.DerivationResult, method: Any) -> None:
        m, d = derivation.mechanism, derivation.definition
        self.t = me.dynamicsymbols._t
        self.definition, self.method = d, method
        self.quaternions = [[m.dynamic[m.q[k]] for k in group] for group in m.quaternions]
        self.inputs = [i.symbol for i in d.inputs]
        self.parameters = [p.symbol for p in d.parameters if not p.calculated]
        self.calculated = {p.symbol: p.value for p in d.parameters if p.calculated}
        self.q, self.u = list(method.q), list(mechanics_source.speeds(method).all)
        self.z = [m.dynamic[s] for s in derivation.equations.states if m.dynamic[s] not in {*self.q, *self.u}]
        declared = [s.symbol for s in model.declared if type(s).__name__ == "AuxiliaryState"]
        self.z += [s for s in declared if s not in self.z]
        rates = {s.symbol: s.derivative for s in model.declared if type(s).__name__ == "AuxiliaryState"}
        replaced: dict[sm.Basic, sm.Expr] = dict.fromkeys(mechanics_source.speeds(method).auxiliary, sm.S.Zero)
        replaced |= {sm.Derivative(z, self.t): rate for z, rate in rates.items()}
        replaced |= dict.fromkeys((f.symbol for f in derivation.checked.constraint_forces), sm.S.Zero)
        replaced |= self.calculated
        known = [self.t, *self.q, *self.u, *self.z, *self.inputs, *self.parameters]
        self.known = list(dict.fromkeys(known))
        numbers = _Numbers(self.known, replaced)
        self.full = numbers(method.mass_matrix_full.row_join(method.forcing_full))
        self.z_dot = numbers(sm.Matrix([rates[z] for z in self.z])) if self.z else None
        self.phi = sm.Matrix(list(mechanics_source.holonomic_constraints(method)))
        rows = sm.Matrix(list(mechanics_source.velocity_constraints(method)))
        self.n_phi, self.n_rows = len(self.phi), len(rows)
        self.at_phi = numbers(self.phi.row_join(self.phi.jacobian(self.q))) if self.n_phi else None
        if self.n_rows:
            rows = rows.xreplace(getattr(method, "_qdot_u_map", None) or {})
            still = dict.fromkeys(self.u, sm.S.Zero)
            self.at_rows = numbers(rows.jacobian(self.u).row_join(rows.xreplace(still)))

    def sample(self, generator: np.random.Generator, spread: float) -> dict[sm.Basic, float]:
        d = self.definition
        start = {c.symbol: c.start for c in (*d.coordinates, *d.speeds, *d.auxiliary_states, *d.inputs)}
        values: dict[sm.Basic, float] = {self.t: float(generator.uniform(0.1, 1.0))}
        for symbol in (*self.q, *self.u, *self.z, *self.inputs):
            values[symbol] = start.get(symbol, 0.0) + spread * float(generator.uniform(-1, 1))
        for p in d.parameters:
            if not p.calculated:
                values[p.symbol] = float(p.value) * (1 + 0.1 * spread * float(generator.uniform(-1, 1)))
        for group in self.quaternions:
            length = sum(values[symbol] ** 2 for symbol in group) ** 0.5
            values.update((symbol, values[symbol] / length) for symbol in group)
        for _ in range(_NEWTON if self.at_phi else 0):
            block = np.array(self.at_phi(*self._row(values)), dtype=float).reshape(self.n_phi, -1)
            step = np.linalg.pinv(block[:, 1:]) @ block[:, 0]
            for symbol, change in zip(self.q, step, strict=True):
                values[symbol] -= float(change)
        if self.n_rows:
            block = np.array(self.at_rows(*self._row(values)), dtype=float).reshape(self.n_rows, -1)
            u = np.array([values[s] for s in self.u])
            u -= np.linalg.pinv(block[:, :-1]) @ (block[:, :-1] @ u + block[:, -1])
            values.update(zip(self.u, map(float, u), strict=True))
        return values

    def _row(self, values: dict[sm.Basic, float]) -> list[float]:
        return [values[s] for s in self.known]

    def all_rates(self, values: dict[sm.Basic, float]) -> list[float]:
        """q', u', all of them."""
        block = np.array(self.full(*self._row(values)), dtype=float)
        return [float(x) for x in np.linalg.solve(block[:, :-1], block[:, -1])[: len(self.q) + len(self.u)]]

    def rates(self, values: dict[sm.Basic, float], states: list[sm.Basic]) -> list[float]:
        """Rates of the states in their order."""
        rate = dict(zip([*self.q, *self.u], self.all_rates(values), strict=True))
        if self.z_dot is not None:
            rate |= dict(zip(self.z, np.array(self.z_dot(*self._row(values))).ravel(), strict=True))
        return [float(rate[s]) for s in states]


def own_constraint_forces(found: Compared) -> Array:
    """The unknown forces that solve SymPy's auxiliary equations, shape (n_states, n_forces)."""
    d = found.derivation.checked
    own, method = found.truth, found.truth.method
    unknown = [f.symbol for f in d.constraint_forces]
    t = me.dynamicsymbols._t
    still: dict[sm.Basic, sm.Expr] = dict.fromkeys(mechanics_source.speeds(method).auxiliary, sm.S.Zero)
    rates = [sm.Derivative(u, t) for u in method.u]
    known = [t, *method.q, *method.u, *rates, *(p.symbol for p in d.parameters if not p.calculated)]
    matrix = method.auxiliary_eqs.jacobian(unknown)
    rest = method.auxiliary_eqs.xreplace(dict.fromkeys(unknown, sm.S.Zero))
    evaluate = _Numbers(known, still)(matrix.row_join(rest))
    solutions = []
    for values in found.values:
        u_dot = own.all_rates(values)[len(method.q) :]
        point = {**values, **dict(zip(rates, u_dot, strict=True))}
        block = np.array(evaluate(*(point[s] for s in known)), dtype=float)
        solutions.append(-np.linalg.solve(block[:, :-1], block[:, -1]))
    return np.array(solutions)
