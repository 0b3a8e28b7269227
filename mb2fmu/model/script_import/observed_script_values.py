"""Note which numbers a script gives to which symbols: dictionaries, pairs of sequences, arguments of functions."""

from __future__ import annotations

import builtins
import itertools
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import wraps
from typing import Any, Literal, get_args

import numpy as np
import sympy as sm
import sympy.physics.mechanics as me
from sympy.core.function import AppliedUndef

Origin = Literal[
    "integration",
    "package",
    "function call",
    "dictionary",
    "pair of sequences",
    "substitution",
    "zip",
    "same name",
    "bounds",
]
"""Where a number was found, most reliable first; of bounds it is the middle."""

ORIGINS: tuple[Origin, ...] = get_args(Origin)
NOTED_CALLS = 20
"""Calls of one function of a script whose local variables are looked at; an integrator's loop has thousands."""

_SEQUENCES = (list, tuple, np.ndarray, sm.MatrixBase)


@dataclass(frozen=True, slots=True)
class ScriptSymbolValue:
    """One number, or expression of other symbols, that a script gives to a symbol.

    Attributes:
        symbol: A symbol, a function of time, or its derivative.
        value: A number, or an expression.
        origin: Where it was found.
        at_start: Whether it was found while the integrand was evaluated at the start: later it may be another one.
    """

    symbol: sm.Expr
    value: float | sm.Expr
    origin: Origin
    at_start: bool = False


@dataclass
class ScriptSymbolValues:
    """All that was noted, in order.

    Attributes:
        found: The notes.
        origin: Origin of what lambdified functions are called with: changes while the integrand is evaluated.
        namespaces: Local variables of functions that ended, and of modules.
        is_deferred: Whether stand-ins take the place of SymPy's equations of motion.
        stand_in_evaluated: Whether the script evaluated a stand-in before it integrated: numbers that follow from it,
            an equilibrium for example, are wrong.
        samples: What further evaluations of the integrand noted, at other instants and states.
    """

    found: list[ScriptSymbolValue] = field(default_factory=list)
    origin: Origin = "function call"
    namespaces: list[dict[str, Any]] = field(default_factory=list)
    is_deferred: bool = False
    stand_in_evaluated: bool = False
    samples: list[list[ScriptSymbolValue]] = field(default_factory=list)
    _calls: dict[Any, int] = field(default_factory=dict)
    _at_start: bool = False
    _start_namespaces: range = range(0)

    def note(self, symbol: Any, value: Any, origin: Origin) -> None:
        """Note one pair, if it is a symbol and a number or expression."""
        number = read_number_or_expression(value)
        if is_symbolic_quantity(symbol) and number is not None and number != symbol:
            self.found.append(ScriptSymbolValue(symbol, number, origin, self._at_start))

    def note_mapping(self, mapping: Any, origin: Origin) -> None:
        """Note a dictionary, or pairs, from symbols or their names to numbers."""
        if isinstance(mapping, Mapping):
            for symbol, value in list(mapping.items()):
                if isinstance(symbol, str):  # {"m": 2.0}: as a variable of that name, a number for want of a better one
                    self.note(sm.Symbol(symbol), value, "same name")
                else:
                    self.note_structure(symbol, value, origin)
        elif isinstance(mapping, list | tuple):
            for pair in mapping:
                if isinstance(pair, tuple | list) and len(pair) == 2:
                    self.note(pair[0], pair[1], origin)

    def note_structure(self, symbols: Any, values: Any, origin: Origin) -> None:
        """Note numbers by the place of their symbols, at any depth."""
        if is_symbolic_quantity(symbols):
            self.note(symbols, values, origin)
        elif isinstance(symbols, _SEQUENCES) and isinstance(values, _SEQUENCES):
            symbols, values = list(_flat(symbols)), list(_flat(values))
            if len(symbols) == len(values):
                for symbol, value in zip(symbols, values, strict=True):
                    self.note_structure(symbol, value, origin)

    def note_integrand(self, evaluate: Callable[[], Any]) -> None:
        """Note the numbers with which an integrand is evaluated at the start, whatever it raises."""
        first = len(self.namespaces)
        self.origin, self._at_start = "integration", True
        with suppress(Exception), np.errstate(all="ignore"):
            evaluate()
        self._at_start, self._start_namespaces = False, range(first, len(self.namespaces))

    def sample_integrand(self, evaluate: Callable[[], Any]) -> None:
        """Keep the numbers of one further evaluation of an integrand apart, whatever it raises."""
        kept = self.found, self.namespaces, self._calls
        self.found, self.namespaces, self._calls = [], [], {}
        try:
            with suppress(Exception), np.errstate(all="ignore"):
                evaluate()
            self.read_namespaces()
            self.samples.append(self.found)
        finally:
            self.found, self.namespaces, self._calls = kept

    def note_stand_in(self) -> None:
        """Note that the script evaluates a stand-in of equations."""
        self.stand_in_evaluated |= self.origin != "integration"

    def note_locals(self, variables: dict[str, Any]) -> None:
        """Keep the local variables of a function that ends."""
        frame = sys._getframe(1)  # noqa: SLF001 - whose function it is
        count = self._calls[frame.f_code] = self._calls.get(frame.f_code, 0) + 1
        if count <= NOTED_CALLS:
            self.namespaces.append(dict(variables))

    def read_namespaces(self) -> None:
        """Note dictionaries and pairs of sequences in all kept namespaces; those of objects in them, too."""
        for number, variables in enumerate(self.namespaces):
            self._at_start = number in self._start_namespaces
            own = [vars(each) for each in variables.values() if _is_script_object(each)]
            for space in (variables, *own):
                for value in list(space.values()):
                    self._read_container(value)
                self._read_sequence_pairs(space)
                for name, value in list(space.items()):
                    self.note(sm.Symbol(name), value, "same name")
        self._at_start = False

    def _read_container(self, value: Any, depth: int = 0) -> None:
        """Note a dictionary, also one in a list or in another dictionary, and lists of (symbol, number)."""
        if isinstance(value, Mapping) and len(value) < 10_000:
            self.note_mapping(value, "dictionary")
            if depth < 2:
                for inner in list(value.values()):
                    self._read_container(inner, depth + 1)
        elif isinstance(value, list | tuple) and len(value) < 1000:
            if all(isinstance(each, tuple | list) and len(each) == 2 for each in value):
                self.note_mapping(value, "dictionary")
            elif depth < 2:
                for inner in value:
                    self._read_container(inner, depth + 1)

    def _read_sequence_pairs(self, space: Mapping[str, Any]) -> None:
        """Note a list of symbols beside the only list of numbers that is as long and called alike."""
        symbols: dict[str, list[Any]] = {}
        numbers: dict[str, list[Any]] = {}
        for name, value in space.items():
            if (
                isinstance(value, _SEQUENCES)
                and 0 < (value.size if isinstance(value, np.ndarray) else len(value)) < 1000
            ):
                flat = list(_flat(value))
                if all(is_symbolic_quantity(each) for each in flat):
                    symbols[name] = flat
                elif all(isinstance(read_number_or_expression(each), float) for each in flat):
                    numbers[name] = flat
        for name, listed in symbols.items():
            fitting = [other for other, values in numbers.items() if len(values) == len(listed)]
            alike = [other for other in fitting if _stem(other) == _stem(name)] or (
                fitting if len(fitting) == 1 and len(listed) > 1 else []
            )
            if len(alike) == 1:
                for symbol, value in zip(listed, numbers[alike[0]], strict=True):
                    self.note(symbol, value, "pair of sequences")


def is_symbolic_quantity(item: object) -> bool:
    """Return whether an item is a symbol, a function of time, or a derivative of one."""
    return isinstance(item, sm.Symbol | AppliedUndef | sm.Derivative)


def read_number_or_expression(value: Any) -> float | sm.Expr | None:
    """Return a number as a float, an expression as it is; None for everything else."""
    if isinstance(value, bool | str | bytes | complex) or value is None:
        return None
    if isinstance(value, sm.Expr):
        return _evaluate_expression(value)
    if isinstance(value, int | float | np.number) or (isinstance(value, np.ndarray) and value.size == 1):
        try:
            number = float(np.asarray(value).reshape(()))
        except (TypeError, ValueError):
            return None
        return number if np.isfinite(number) else None
    return None


def _evaluate_expression(value: sm.Expr) -> float | sm.Expr | None:
    """Return an expression, or its number if it has one; None where SymPy cannot evaluate it."""
    with suppress(Exception):
        if value.free_symbols:
            return value
        number = value.evalf() if value.is_number else None
        return float(number) if number is not None and number.is_real and number.is_finite else None
    return None


def _flat(sequence: Any) -> Iterator[Any]:
    """Yield the items of a sequence or matrix."""
    return iter(sequence.ravel() if isinstance(sequence, np.ndarray) else sequence)


def _stem(name: str) -> str:
    """Return a variable's name without what says that it holds symbols or numbers."""
    words = re.split("_+", name.lower())
    marks = {
        "vals",
        "val",
        "values",
        "value",
        "num",
        "nums",
        "numeric",
        "numerical",
        "sym",
        "syms",
        "symbols",
        "n",
        "s",
    }
    return "_".join(word.rstrip("s") for word in words if word not in marks)


def _is_script_object(item: object) -> bool:
    """Return whether an object is of a class that the script defines: its attributes hold symbols and numbers."""
    return getattr(type(item), "__module__", "") == "__main__" and hasattr(item, "__dict__")


@contextmanager
def record_script_values(notes: ScriptSymbolValues, script_files: tuple[str, ...]) -> Iterator[None]:
    """Watch substitutions, lambdified functions and ``zip``.

    Args:
        notes: Where pairs are kept.
        script_files: Prefixes of the file names of the script's code: what SymPy calls for itself is not noted.
    """
    replaced: list[tuple[Any, str, Any]] = []

    def replace(owner: Any, name: str, make: Callable[[Any], Any]) -> None:
        original = vars(owner)[name]
        replaced.append((owner, name, original))
        setattr(owner, name, make(original))

    def watched_substitution(original: Callable[..., Any]) -> Callable[..., Any]:
        return _noting_substitution(notes, original, script_files)

    for owner in (sm.Basic, sm.MatrixBase, me.Vector, me.Dyadic):
        for name in ("subs", "xreplace"):
            if name in vars(owner):
                replace(owner, name, watched_substitution)
    for module in (me, me.functions):
        replace(module, "msubs", watched_substitution)
    for name in ("sympy", "sympy.utilities", "sympy.utilities.lambdify"):
        if callable(vars(sys.modules[name]).get("lambdify")):
            replace(sys.modules[name], "lambdify", lambda original: _noting_lambdify(notes, original))
    try:
        yield
    finally:
        for owner, name, original in reversed(replaced):
            setattr(owner, name, original)


def _noting_substitution(
    notes: ScriptSymbolValues, original: Callable[..., Any], script_files: tuple[str, ...]
) -> Callable[..., Any]:
    """Return ``subs`` and the like that note what the script substitutes."""

    @wraps(original)
    def substitute(self: Any, *arguments: Any, **keywords: Any) -> Any:
        if sys._getframe(1).f_code.co_filename.startswith(script_files):  # noqa: SLF001 - the caller's file
            arguments = _note_substitution(notes, arguments)
        return original(self, *arguments, **keywords)

    return substitute


def _note_substitution(notes: ScriptSymbolValues, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """Note what is substituted; iterators are made lists, so that SymPy still finds them full."""
    kept = tuple(list(each) if isinstance(each, zip | map | filter) else each for each in arguments)
    if len(kept) == 1:
        notes.note_mapping(kept[0], "substitution")
    elif len(kept) == 2 and not isinstance(kept[0], Mapping):
        notes.note(kept[0], kept[1], "substitution")
    return kept


def _noting_lambdify(notes: ScriptSymbolValues, original: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``lambdify`` whose functions note which numbers they are called with."""

    @wraps(original)
    def noting_lambdify(args: Any, expr: Any, *further: Any, **keywords: Any) -> Any:
        args = list(args) if isinstance(args, zip | map | filter | set) else args
        keywords.pop("backend", None)  # of packages that speed up, which are stood in for
        function = original(args, expr, *further, **keywords)
        is_stand_in = notes.is_deferred and _is_constant(expr)  # a script's own equations have symbols
        symbols = list(_flat(args)) if isinstance(args, _SEQUENCES) else [args]
        counter = itertools.count()

        @wraps(function)
        def evaluate(*values: Any, **named: Any) -> Any:
            if notes.origin == "integration" or next(counter) < NOTED_CALLS:
                for symbol, value in zip(symbols, values, strict=False):
                    notes.note_structure(symbol, value, notes.origin)
            if is_stand_in:
                notes.note_stand_in()
            return function(*values, **named)

        return evaluate

    return noting_lambdify


def _is_constant(expression: Any) -> bool:
    """Return whether an expression, or each of a sequence, has no symbols but in derivatives."""
    if isinstance(expression, _SEQUENCES):
        return all(_is_constant(each) for each in _flat(expression))
    if not isinstance(expression, sm.Expr):
        return True
    return not expression.xreplace(dict.fromkeys(expression.atoms(sm.Derivative), sm.S.Zero)).free_symbols


def make_recording_builtin_zip(notes: ScriptSymbolValues) -> Callable[..., Iterable[Any]]:
    """Return ``zip`` for the script's own code: pairs of symbols and numbers are noted, also if nobody keeps them."""

    def noting_zip(*sequences: Any, **keywords: Any) -> Iterable[Any]:
        if len(sequences) == 2 and all(isinstance(each, _SEQUENCES) for each in sequences):
            pairs = list(builtins.zip(*sequences, **keywords))  # noqa: B905 - the script's own call
            for symbol, value in pairs:
                notes.note(symbol, value, "zip")
            return iter(pairs)
        return builtins.zip(*sequences, **keywords)  # noqa: B905 - the script's own call

    return noting_zip


def list_module_variables(variables: Mapping[str, Any]) -> dict[str, Any]:
    """Return a module's variables without what Python put there."""
    return {name: value for name, value in variables.items() if not (name.startswith("__") and name.endswith("__"))}
