"""Watch what integrates and optimizes: SciPy's integrators, PyDy's System, opty's Problem.

The first of them that is called to integrate the mechanics is noted, its integrand is evaluated at the start (by which
lambdified functions show the values of all symbols) and at some instants and states more (which show what changes), and
the script ends there.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from math import isfinite
from typing import Any, NoReturn

import numpy as np
import sympy as sm
from sympy.core.function import AppliedUndef
from sympy.physics.vector import dynamicsymbols

from mb2fmu.model.script_import.observed_script_values import ScriptSymbolValues
from mb2fmu.model.script_import.stand_in_packages import PackageStandIn

_SAMPLES = 64
_SAMPLING_S = 0.5
"""How many further evaluations of an integrand there are, and how long they may take together, in s."""
_UNKNOWN_SPAN_S = 10.0
"""Over which instants are spread, in s, where the script names the first one only."""
_STATE_SHIFT = 0.05
"""Standard deviation of what is added to each state at every other sample, in the script's units."""


class ScriptStopSignal(BaseException):
    """Ends a script; ``except Exception`` in it does not catch this."""


@dataclass
class ScriptIntegratorCallRecord:
    """What was requested of the first integration.

    Attributes:
        integrator: Its name; empty if there was none.
        start: The state at the start, in the script's order; empty if it is unknown.
        span: First and last instant in s; None if unknown.
        points: How many instants were requested; 0 if unknown.
        ready: Whether mechanics are known; integrations before that are done as they are.
    """

    integrator: str = ""
    start: tuple[float, ...] = ()
    span: tuple[float, float] | None = None
    points: int = 0
    ready: Callable[[], bool] = lambda: True


def _end(
    notes: ScriptIntegratorCallRecord,
    values: ScriptSymbolValues,
    name: str,
    start: Any,
    times: Any,
    integrand: Callable[[Any, Any], Any],
) -> NoReturn:
    """Note an integration, evaluate its integrand(t, x) at the start and at further instants, and end the script."""
    notes.integrator = name
    with suppress(TypeError, ValueError):
        notes.start = tuple(float(each) for each in np.asarray(start, dtype=float).ravel())
    with suppress(TypeError, ValueError, IndexError):
        instants = np.asarray(times, dtype=float).ravel()
        notes.span, notes.points = (float(instants[0]), float(instants[-1])), len(instants)
    begun = time.monotonic()
    values.note_integrand(lambda: integrand(notes.span[0] if notes.span else 0.0, start))
    if notes.start and notes.span:
        _sample(np.array(notes.start), notes.span, values, integrand, time.monotonic() - begun)
    raise ScriptStopSignal


def _sample(
    start: np.ndarray, span: tuple[float, float], values: ScriptSymbolValues, integrand: Callable[[Any, Any], Any],
    duration: float,
) -> None:  # fmt: skip
    """Evaluate an integrand at instants all over the span, every other time at another state.

    Args:
        start: The state at the start, (n,).
        span: First and last instant, s.
        values: Where the numbers are kept.
        integrand: Of instant and state.
        duration: Of one evaluation, s.
    """
    deadline = time.monotonic() + _SAMPLING_S
    shifts = np.random.default_rng(0).normal(scale=_STATE_SHIFT, size=(_SAMPLES, len(start)))
    for number in range(_SAMPLES):
        if time.monotonic() + duration > deadline:
            return
        fraction = (number + 1) * 0.5 * (5**0.5 - 1.0) % 1.0  # golden ratio: evenly spread after any number of samples
        instant = span[0] + fraction * (span[1] - span[0] or _UNKNOWN_SPAN_S)
        state = start + shifts[number] if number % 2 else start.copy()
        values.sample_integrand(partial(integrand, instant, state))


@contextmanager
def record_integrator_calls(notes: ScriptIntegratorCallRecord, values: ScriptSymbolValues) -> Iterator[None]:
    """Watch SciPy's integrators in this context."""
    import scipy.integrate as si

    originals = {name: getattr(si, name) for name in ("solve_ivp", "odeint", "ode", "complex_ode")}

    def solve_ivp(fun: Any, t_span: Any, y0: Any, *arguments: Any, args: Any = (), **keywords: Any) -> Any:
        if not notes.ready():
            return originals["solve_ivp"](fun, t_span, y0, *arguments, args=args or None, **keywords)
        extra = args if isinstance(args, tuple | list) else (args,) if args is not None else ()
        times = keywords.get("t_eval")
        _end(notes, values, "solve_ivp", y0, t_span if times is None else times, lambda t, x: fun(t, x, *extra))

    def odeint(func: Any, y0: Any, t: Any, args: Any = (), *arguments: Any, **keywords: Any) -> Any:
        if not notes.ready():
            return originals["odeint"](func, y0, t, args, *arguments, **keywords)
        extra = args if isinstance(args, tuple) else (args,)
        start = np.array(y0, dtype=float)
        swapped = keywords.get("tfirst", False)
        _end(notes, values, "odeint", start, t, lambda t, x: func(t, x, *extra) if swapped else func(x, t, *extra))

    base: Any = originals["ode"]

    class ObservedScipyOde(base):  # type: ignore[misc]  # a class that is known at run time only
        """``scipy.integrate.ode`` that ends the script at its first step."""

        def integrate(self, t: float, *arguments: Any, **keywords: Any) -> Any:
            if not notes.ready():
                return super().integrate(t, *arguments, **keywords)
            start = np.array(self._y, dtype=float)
            _end(notes, values, "ode", start, (self.t,), lambda t, x: self.f(t, x, *self.f_params))

    for name, watched in (("solve_ivp", solve_ivp), ("odeint", odeint), ("ode", ObservedScipyOde)):
        setattr(si, name, watched)
    try:
        yield
    finally:
        for name, original in originals.items():
            setattr(si, name, original)


def make_package_stand_ins(notes: ScriptIntegratorCallRecord, values: ScriptSymbolValues) -> dict[str, dict[str, Any]]:
    """Return what stands in the modules of PyDy and opty that scripts import."""
    system, problem = _pydy_system(notes, values), _opty_problem(notes, values)
    generator = {"generate_ode_function": _ode_function_generator(values), "CythonODEFunctionGenerator": PackageStandIn}
    generator |= {"LambdifyODEFunctionGenerator": PackageStandIn}
    return {
        "pydy": {"System": system},
        "pydy.system": {"System": system},
        "pydy.codegen.ode_function_generators": generator,
        "pydy.codegen.code": {**generator, "generate_ode_function": _old_ode_function_generator(values)},
        "pydy_code_gen.code": {**generator, "generate_ode_function": _old_ode_function_generator(values)},
        "opty": {"Problem": problem},
        "opty.direct_collocation": {"Problem": problem},
    }


def _pydy_system(notes: ScriptIntegratorCallRecord, values: ScriptSymbolValues) -> type:
    """Return PyDy's ``System`` that notes constants and initial conditions and ends the script when it integrates."""

    class PydySystemStandIn:
        """Stand-in for ``pydy.system.System``."""

        def __init__(
            self, eom_method: Any, constants: Any = None, specifieds: Any = None, ode_solver: Any = None,
            initial_conditions: Any = None, times: Any = None, **_: Any,
        ) -> None:  # fmt: skip
            self.eom_method, self.ode_solver, self.times = eom_method, ode_solver, times
            self.constants, self.specifieds = dict(constants or {}), dict(specifieds or {})
            self.initial_conditions = dict(initial_conditions or {})
            values.namespaces.append(vars(self))

        def __getattr__(self, name: str) -> Any:
            if name in {"states", "coordinates", "speeds"}:
                q, u = list(self.eom_method.q), list(self.eom_method.u)
                return {"states": q + u, "coordinates": q, "speeds": u}[name]
            return PackageStandIn()

        def generate_ode_function(self, **_: Any) -> Any:
            self.note()
            return PackageStandIn()

        def note(self) -> None:
            for mapping in (self.constants, self.initial_conditions):
                values.note_mapping(mapping, "package")
            for symbol, value in dict(self.specifieds).items():
                values.note_structure(symbol, value, "package")

        def integrate(self, *_: Any, **__: Any) -> None:
            _end(notes, values, "System.integrate", (), self.times, lambda *_: self.note())

    return PydySystemStandIn


def _opty_problem(notes: ScriptIntegratorCallRecord, values: ScriptSymbolValues) -> type:
    """Return opty's ``Problem`` that notes known parameters and ends the script."""

    def problem(*arguments: Any, **keywords: Any) -> None:
        maps = [each for each in (*arguments, *keywords.values()) if isinstance(each, Mapping)]
        interval = keywords.get("node_time_interval", arguments[5] if len(arguments) > 5 else None)
        nodes = keywords.get("num_collocation_nodes", arguments[4] if len(arguments) > 4 else 0)
        try:
            times: Any = (0.0, float(interval or 0.0) * (int(nodes) - 1))
        except (TypeError, ValueError):
            times = None
        instants = keywords.get("instance_constraints", arguments[8] if len(arguments) > 8 else ())

        def note() -> None:
            for mapping in maps:
                values.note_mapping(mapping, "package")
                _note_bounds(values, mapping)
            _note_instance_constraints(values, list(instants or ()))

        _end(notes, values, "opty.Problem", (), times, lambda *_: note())

    class OptyProblemStandIn:
        """Stand-in for ``opty.Problem``."""

        def __new__(cls, *arguments: Any, **keywords: Any) -> Any:
            problem(*arguments, **keywords)

    return OptyProblemStandIn


def _note_bounds(values: ScriptSymbolValues, bounds: Mapping[Any, Any]) -> None:
    """Note the middle between finite bounds: an optimization finds the value between them."""
    for symbol, pair in bounds.items():
        with suppress(TypeError, ValueError):
            low, high = (float(each) for each in pair)
            if isfinite(low + high):
                values.note(symbol, 0.5 * (low + high), "bounds")


def _note_instance_constraints(values: ScriptSymbolValues, rows: list[Any]) -> None:
    """Note start values from opty's constraints at instants: ``q.func(0) - 0.5`` says q = 0.5 at the start."""
    places = {each for row in rows if isinstance(row, sm.Expr) for each in row.atoms(AppliedUndef)}
    known = [each.args[0] for each in places if len(each.args) == 1 and each.args[0].is_number]
    first = min(known, default=sm.S.Zero)
    for row in rows:
        inside = row.atoms(AppliedUndef) if isinstance(row, sm.Expr) else set()
        if len(inside) != 1:
            continue
        (place,) = inside
        if place.args == (first,) and row.diff(place).is_number and row.diff(place) != 0:
            value = -(row.xreplace({place: sm.S.Zero})) / row.diff(place)
            values.note(place.func(dynamicsymbols._t), value, "package")  # noqa: SLF001 - SymPy's symbol of time


def _ode_function_generator(values: ScriptSymbolValues) -> Callable[..., Any]:
    """Return PyDy's ``generate_ode_function(forcing, q, u, constants, mass_matrix=…, specifieds=…)``."""

    def generate(_forcing: Any, coordinates: Any, speeds: Any, constants: Any = (), **keywords: Any) -> Any:
        specifieds = list(keywords.get("specifieds") or ())
        return _right_hand_side(values, [*coordinates, *speeds], list(constants or ()), specifieds)

    return generate


def _old_ode_function_generator(values: ScriptSymbolValues) -> Callable[..., Any]:
    """Return the older ``generate_ode_function(mass_matrix, forcing, constants, q, u, specifieds)``."""

    def generate(
        _mass: Any, _forcing: Any, constants: Any, coordinates: Any, speeds: Any, specifieds: Any = (), **_: Any
    ) -> Any:
        return _right_hand_side(values, [*coordinates, *speeds], list(constants or ()), list(specifieds or ()))

    return generate


def _right_hand_side(values: ScriptSymbolValues, states: list[Any], constants: list[Any], specifieds: list[Any]) -> Any:
    """Return f(x, t, …) that notes what it is called with."""

    def right_hand_side(x: Any, _t: Any, *arguments: Any) -> Any:
        values.note_stand_in()
        values.note_structure(states, np.asarray(x), values.origin)
        if (
            len(arguments) == 1 and isinstance(arguments[0], Mapping) and "constants" in arguments[0]
        ):  # the older PyDy's dictionary
            given = arguments[0]
            values.note_structure(constants, np.asarray(given.get("constants", ())), values.origin)
        else:
            names = [specifieds, constants] if specifieds else [constants]
            for symbols, numbers in zip(names, arguments, strict=False):
                if isinstance(numbers, Mapping):
                    values.note_mapping(numbers, values.origin)
                else:
                    values.note_structure(symbols, np.asarray(numbers), values.origin)
        return np.zeros(len(states))

    return right_hand_side
