"""Name discontinuous forces when an integrator fails: dry friction by sign(v), a switch, a step in a table."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import sympy as sm

from mb2fmu.errors import Fault, Mb2FmuError
from mb2fmu.mechanics.mechanism.records.mechanism_records import ForceLoad, Load, Mechanism, PathwayLoad, TorqueLoad
from mb2fmu.mechanics.mechanism.records.output_and_joint_records import ExpressionOutput
from mb2fmu.model.supported_functions import StickingSign

_SWITCHING_FUNCTIONS = (
    sm.sign, sm.Abs, sm.Min, sm.Max, sm.Heaviside, sm.Piecewise, sm.floor, sm.ceiling, sm.Mod, sm.frac, StickingSign,
)  # fmt: skip
_JUMPING_FUNCTIONS = (sm.sign, sm.Heaviside, sm.floor, sm.ceiling, sm.Piecewise)


def _find_discontinuous_terms(m: Mechanism) -> dict[str, str]:
    """Return each place with a term that jumps during the motion → that term as written."""
    moving = {*m.q, *m.u, *m.z, *(symbol for load in m.loads for symbol in _pathway_symbols(load))}
    moving |= {symbol for motion_vector in m.motion_vectors for symbol in motion_vector.symbols}
    named_expressions = [(load.name, expression) for load in m.loads for expression in _load_expressions(load)]
    states = m.declared.auxiliary_states
    named_expressions += [
        (f"the derivative of {state.name}", rate) for state, rate in zip(states, m.z_dot, strict=True)
    ]
    jumping_terms: dict[str, str] = {}
    for name, expression in named_expressions:
        terms = sorted(
            (term for term in expression.atoms(*_JUMPING_FUNCTIONS) if term.free_symbols & moving),
            key=sm.default_sort_key,
        )
        if terms:
            jumping_terms.setdefault(name, str(terms[0])[:60])
    return jumping_terms


def has_events(m: Mechanism) -> bool:
    """Return whether the motion or an output may have events: own ones, or functions that jump or have a kink."""
    output_expressions = [item.expression for item in m.outputs if isinstance(item, ExpressionOutput)]
    expressions = [
        *output_expressions,
        *m.z_dot,
        *(expression for load in m.loads for expression in _load_expressions(load)),
    ]
    expressions += [m.lagrangian.expression, *m.lagrangian.forces] if m.lagrangian else []
    return m.has_event_sources or any(expression.has(*_SWITCHING_FUNCTIONS) for expression in expressions)


@contextmanager
def add_discontinuity_note(m: Mechanism) -> Iterator[None]:
    """Add a note on discontinuous forces to errors raised inside whose cause is not known: no step can cross them.

    Raises:
        Mb2FmuError: The same class, with one more fault.
    """
    try:
        yield
    except Mb2FmuError as error:
        jumps = {} if error.is_explained else _find_discontinuous_terms(m)
        if not jumps:
            raise
        jump_list = "; ".join(f"{name}: {term}" for name, term in jumps.items())
        problem = f"forces or rates jump during the motion ({jump_list}): where they jump to and fro, as in sticking "
        problem += "friction, no integrator can continue"
        remedy = (
            "let a jump depend on one sliding speed or gap, so that its event is found (docs/explanation/events.md), "
            "or write a steep and smooth function instead, such as tanh(v/v_s) for sign(v)"
        )
        raise type(error)(error.headline, [*error.faults, Fault(problem, remedy=remedy)]) from error


def _load_expressions(load: Load) -> list[sm.Expr]:
    """Return a load's expressions, in which jumps are looked for: components, or an actuator's force or torque."""
    if isinstance(load, (ForceLoad, TorqueLoad)):
        terms = load.force if isinstance(load, ForceLoad) else load.torque
        return [sm.sympify(component) for _, components in terms for component in components]
    return [sm.sympify(load.force if isinstance(load, PathwayLoad) else load.torque)]


def _pathway_symbols(load: Load) -> tuple[sm.Symbol, ...]:
    """Return the symbols of a pathway's length and rate; none for other loads."""
    return (load.length, load.rate) if isinstance(load, PathwayLoad) else ()
