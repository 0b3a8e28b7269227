"""Note the mechanics that a script makes, and put off SymPy's forming of their equations.

``kanes_equations`` and its like note bodies and loads and return equations of unit masses that never fall, of the right
shapes: scripts pass them to ``lambdify``, whose arguments show which number belongs to which symbol.
"""
# ruff: noqa: SLF001 - SymPy keeps what its methods were given in private attributes only

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import wraps
from typing import Any

import sympy as sm
from sympy.physics.mechanics import JointsMethod, KanesMethod, LagrangesMethod, System
from sympy.physics.mechanics.functions import msubs
from sympy.physics.vector import Vector, dynamicsymbols

MECHANICS_CLASSES = (KanesMethod, LagrangesMethod, JointsMethod, System)


@dataclass
class CreatedScriptMechanics:
    """Objects that a script made, in order.

    Attributes:
        objects: ``KanesMethod``, ``LagrangesMethod``, ``JointsMethod`` and ``System`` objects.
        complete: Those whose equations the script requested, in this order: bodies and loads are known.
        on_completion: Called with each object as it becomes complete.
        restore: Undo what stand-ins left in the objects.
        wanted: The object at which the script was ended; None if it was not.
    """

    objects: list[Any] = field(default_factory=list)
    complete: list[Any] = field(default_factory=list)
    on_completion: Callable[[Any], None] = lambda _: None
    restore: list[Callable[[], None]] = field(default_factory=list)
    wanted: Any = None

    def note(self, made: Any) -> None:
        """Note an object, unless it is known."""
        if not any(made is known for known in self.objects):
            self.objects.append(made)

    def mark_complete(self, made: Any) -> None:
        """Note that an object's equations were requested; the last one requested comes last."""
        if any(made is known for known in self.objects):
            self.complete[:] = [known for known in self.complete if known is not made] + [made]
            self.on_completion(made)


def make_unnamed_mechanics_label(noted: CreatedScriptMechanics, made: Any) -> str:
    """Return a label for an object without a variable: ``KanesMethod[2]`` for the second one."""
    same = [each for each in noted.objects if type(each).__name__ == type(made).__name__]
    return f"{type(made).__name__}[{next(i for i, each in enumerate(same, 1) if each is made)}]"


@contextmanager
def record_created_mechanics(noted: CreatedScriptMechanics, *, defer: bool) -> Iterator[None]:
    """Note the mechanics that are made in this context.

    Args:
        noted: Where they are kept.
        defer: Whether forming is put off; it is done as SymPy does it otherwise.
    """
    replaced: list[tuple[type, str, Any]] = []

    def replace(owner: type, name: str, value: Any) -> None:
        replaced.append((owner, name, vars(owner)[name]))
        setattr(owner, name, value)

    for owner in MECHANICS_CLASSES:
        replace(owner, "__init__", _noting_initializer(noted, owner.__init__))
    replace(KanesMethod, "kanes_equations", _kanes_equations(noted, KanesMethod.kanes_equations, defer=defer))
    form = LagrangesMethod.form_lagranges_equations
    replace(LagrangesMethod, "form_lagranges_equations", _lagranges_equations(noted, form, defer=defer))
    for holder, attribute in ((System, "_eom_method"), (JointsMethod, "_method")):
        replace(holder, "form_eoms", _joined_equations(noted, holder.form_eoms, attribute, defer=defer))
    if defer:
        replace(
            KanesMethod,
            "_initialize_constraint_matrices",
            _velocity_constraints_alone(KanesMethod._initialize_constraint_matrices),
        )
        for owner, names in _STAND_IN_RESULTS.items():
            for name, make in names.items():
                original = vars(owner)[name]
                is_property = isinstance(original, property)
                replace(owner, name, property(make) if is_property else _as_method(make))
    try:
        yield
    finally:
        for owner, name, value in reversed(replaced):
            setattr(owner, name, value)
        for restore in reversed(noted.restore):
            restore()


def _called_by_sympy(depth: int = 2) -> bool:
    """Return whether the caller of the calling function is SymPy itself."""
    return str(sys._getframe(depth).f_globals.get("__name__", "")).startswith("sympy.")


def _noting_initializer(noted: CreatedScriptMechanics, original: Callable[..., None]) -> Callable[..., None]:
    """Return an initializer that notes the object once it is made; objects that SymPy makes for itself are not."""

    @wraps(original)
    def initialize(self: Any, *arguments: Any, **keywords: Any) -> None:
        original(self, *arguments, **keywords)
        if isinstance(self, System) or not _called_by_sympy():  # from_newtonian is SymPy's, its System the script's
            noted.note(self)

    return initialize


class _KaneWithDeferredConstraintRates(KanesMethod):  # type: ignore[misc]  # SymPy has no types
    """A ``KanesMethod`` that differentiates its velocity constraints when its equations are formed."""

    _late_time: sm.Symbol

    def __getattr__(self, name: str) -> Any:
        if name != "_f_dnh":
            raise AttributeError(f"'KanesMethod' object has no attribute '{name}'")
        rates = self._k_nh.diff(self._late_time) * self.u + self._f_nh.diff(self._late_time)
        self._f_dnh = rates if self._qdot_u_map is None else msubs(rates, self._qdot_u_map)
        return self._f_dnh


_KaneWithDeferredConstraintRates.__name__ = KanesMethod.__name__


def _velocity_constraints_alone(original: Callable[..., None]) -> Callable[..., None]:
    """Return a reader of constraints that leaves their derivatives for later: of long ones they take minutes."""

    @wraps(original)
    def initialize(self: KanesMethod, config: Any, vel: Any, acc: Any, *further: Any, **keywords: Any) -> None:
        if acc or not vel or type(self) is not KanesMethod:
            original(self, config, vel, acc, *further, **keywords)
            return
        original(self, config, vel, [sm.S.Zero] * len(vel), *further, **keywords)
        self._k_dnh, self._late_time = self._k_nh, _time()
        del self._f_dnh
        self.__class__ = _KaneWithDeferredConstraintRates

    return initialize


def _kanes_equations(noted: CreatedScriptMechanics, original: Callable[..., Any], *, defer: bool) -> Callable[..., Any]:
    """Return ``kanes_equations`` that notes bodies and loads; in old scripts the loads come first."""

    @wraps(original)
    def form(self: KanesMethod, bodies: Any = None, loads: Any = None, **old: Any) -> Any:
        bodies, loads = old.get("BL", bodies), old.get("FL", loads)
        bodies, loads = (loads, bodies) if _are_loads(bodies) or _are_bodies(loads) else (bodies, loads)
        loads = [_as_load(load) for load in loads] if loads else loads
        if not defer:
            formed = original(self, bodies, loads)
        else:
            self._bodylist = self._bodylist if bodies is None else list(bodies)
            self._forcelist = self._forcelist if loads is None else list(loads)
            _refuse_wrong_loads(noted, self)
            formed = _kane_sums(self)
        noted.mark_complete(self)
        return formed

    return form


def _as_load(load: Any) -> Any:
    """Return a load whose zero vector may be written 0."""
    if isinstance(load, tuple | list) and len(load) == 2 and load[1] == 0:
        return (load[0], Vector(0))
    return tuple(load) if isinstance(load, list) else load


def _refuse_wrong_loads(noted: CreatedScriptMechanics, method: KanesMethod) -> None:
    """Raise at the script's line what SymPy's forming would raise, were it not put off; forget the object."""
    for number, load in enumerate(method._forcelist or (), 1):
        if isinstance(load, tuple) and len(load) != 2:
            noted.objects.remove(method)
            raise ValueError(f"load {number} has {len(load)} parts: a load is (point or frame, vector)")


def _are_loads(items: Any) -> bool:
    """Return whether a list holds (point or frame, vector) pairs."""
    return isinstance(items, list | tuple) and bool(items) and isinstance(items[0], list | tuple)


def _are_bodies(items: Any) -> bool:
    """Return whether a list holds bodies."""
    return isinstance(items, list | tuple) and bool(items) and hasattr(items[0], "masscenter")


def _lagranges_equations(
    noted: CreatedScriptMechanics, original: Callable[..., Any], *, defer: bool
) -> Callable[..., Any]:
    """Return ``form_lagranges_equations`` that only says which mechanics are meant."""

    @wraps(original)
    def form(self: LagrangesMethod) -> Any:
        if defer:
            before = self.eom
            noted.restore.append(lambda: setattr(self, "eom", before))
            self.eom = sm.Matrix([coordinate.diff(_time(), 2) for coordinate in self.q])
        else:
            original(self)
        noted.mark_complete(self)
        return self.eom

    return form


def _joined_equations(
    noted: CreatedScriptMechanics, original: Callable[..., Any], attribute: str, *, defer: bool
) -> Callable[..., Any]:
    """Return ``form_eoms`` of a ``System`` or ``JointsMethod``; the method in it is forgotten again."""

    @wraps(original)
    def form(self: Any, *arguments: Any, **keywords: Any) -> Any:
        if defer:
            noted.restore.append(lambda: setattr(self, attribute, None))
        formed = original(self, *arguments, **keywords)
        noted.mark_complete(self)
        return formed

    return form


def _time() -> sm.Symbol:
    """Return SymPy's symbol of time."""
    return dynamicsymbols._t


def _kane_sums(method: KanesMethod) -> tuple[sm.Matrix, sm.Matrix]:
    """Return Fr and Fr* of unit masses: Fr + Fr* = −u'."""
    independent = len(method.u) - len(method._udep)
    rates = [speed.diff(_time()) for speed in list(method.u)[:independent]]
    rows = rates + [sm.S.Zero] * len(method._uaux)
    return sm.zeros(len(rows), 1), -sm.Matrix(rows)


def _eye(size: Callable[[Any], int]) -> Callable[[Any], Any]:
    return lambda method: sm.eye(size(method))


def _zeros(size: Callable[[Any], int]) -> Callable[[Any], Any]:
    return lambda method: sm.zeros(size(method), 1)


def _as_method(make: Callable[[Any], Any]) -> Callable[..., Any]:
    """Return a method from a function of the object alone; arguments of the call do not matter."""
    return lambda self, *_, **__: make(self)


def _states(method: Any) -> int:
    return len(method.q) + len(method.u)


def _multipliers(method: LagrangesMethod) -> int:
    return len(method.coneqs)


def _linear_system(method: Any) -> tuple[sm.Matrix, sm.Matrix, sm.Matrix]:
    """Return A, B and inputs of a linearization, all zero."""
    n = _states(method)
    return sm.zeros(n, n), sm.zeros(n, 1), sm.Matrix([])


_STAND_IN_RESULTS: dict[type, dict[str, Callable[[Any], Any]]] = {
    KanesMethod: {
        "mass_matrix": _eye(lambda m: len(m.u)),
        "mass_matrix_full": _eye(_states),
        "forcing": _zeros(lambda m: len(m.u)),
        "forcing_full": _zeros(_states),
        "rhs": _zeros(_states),
        "auxiliary_eqs": _zeros(lambda m: len(m._uaux)),
        "linearize": _linear_system,
    },
    LagrangesMethod: {
        "mass_matrix": lambda m: sm.eye(len(m.q)).row_join(sm.zeros(len(m.q), _multipliers(m))),
        "mass_matrix_full": _eye(lambda m: _states(m) + _multipliers(m)),
        "forcing": _zeros(lambda m: len(m.q)),
        "forcing_full": _zeros(lambda m: _states(m) + _multipliers(m)),
        "rhs": _zeros(lambda m: _states(m) + _multipliers(m)),
        "solve_multipliers": lambda m: {sm.Symbol(f"lam{i + 1}"): 0 for i in range(_multipliers(m))},
        "linearize": _linear_system,
    },
}
"""Results of forming → stand-ins of the same shape."""
