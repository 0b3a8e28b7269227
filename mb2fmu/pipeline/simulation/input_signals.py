"""Inputs of a simulation: numbers, formulas of time, functions, or columns of a table."""

from __future__ import annotations

import ast
import difflib
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from mb2fmu.errors import Fault, ValidationError
from mb2fmu.units import display_unit_conversion

if TYPE_CHECKING:
    from mb2fmu.validation.data.validation_data_tables import ValidationDataColumn

Floats = npt.NDArray[np.float64]
InputValue = float | str | Callable[[float], float]

FORMULA_FUNCTIONS: Mapping[str, Callable[..., float]] = {
    **{name: getattr(math, name) for name in ("sin", "cos", "tan", "asin", "acos", "atan", "atan2", "sinh", "cosh")},
    **{name: getattr(math, name) for name in ("tanh", "exp", "log", "sqrt", "floor", "ceil", "hypot")},
    "abs": abs,
    "min": min,
    "max": max,
    "sign": lambda value: float((value > 0) - (value < 0)),
    "step": lambda value: 1.0 if value >= 0 else 0.0,
    "ramp": lambda value: max(value, 0.0),
}
"""What a formula may call; ``step(t - 1)`` is 0 before and 1 from 1 s on, ``ramp`` its integral."""
FORMULA_CONSTANTS: Mapping[str, float] = {"pi": math.pi, "e": math.e}
_SMOOTH_FUNCTIONS = (
    "sin", "cos", "tan", "asin", "acos", "atan", "atan2", "sinh", "cosh", "tanh", "exp", "log", "sqrt",
)  # fmt: skip
_FORMULA_NODES = (
    ast.Expression, ast.BinOp, ast.UnaryOp, ast.Call, ast.Name, ast.Load, ast.Constant, ast.Add, ast.Sub, ast.Mult,
    ast.Div, ast.Pow, ast.Mod, ast.USub, ast.UAdd, ast.IfExp, ast.Compare, ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.BoolOp,
    ast.And, ast.Or,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class InputSignal:
    """One input over time.

    Attributes:
        name: FMU name.
        text: What it is, in words or as a formula.
        at: Time in s → value in the input's unit.
    """

    name: str
    text: str
    at: Callable[[float], float]


def parse_input_formula(text: str) -> Callable[[float], float]:
    """Return a formula of ``t`` as a function: ``5*sin(2*pi*t)``, ``3*step(t - 1)``, ``1 if t < 2 else 0``.

    Raises:
        ValueError: Says what in it is not understood.
    """
    try:
        tree = ast.parse(text.replace("^", "**").strip(), mode="eval")
    except SyntaxError as error:
        raise ValueError(f"{text!r} is no formula: {error.msg}") from None
    known = {"t", "time", *FORMULA_FUNCTIONS, *FORMULA_CONSTANTS}
    for node in ast.walk(tree):
        if not isinstance(node, _FORMULA_NODES) or (isinstance(node, ast.Call) and node.keywords):
            raise ValueError(f"{ast.unparse(node)!r} cannot stand in a formula")
        if isinstance(node, ast.Constant) and type(node.value) not in (int, float):
            raise ValueError(f"{node.value!r} is no number")
        if isinstance(node, ast.Name) and node.id not in known:
            raise ValueError(f"{node.id} is not known; there are t, {', '.join(sorted(known - {'t', 'time'}))}")
        if isinstance(node, ast.Call) and not (isinstance(node.func, ast.Name) and node.func.id in FORMULA_FUNCTIONS):
            raise ValueError(
                f"{ast.unparse(node.func)} is no function; there are {', '.join(sorted(FORMULA_FUNCTIONS))}"
            )
    code = compile(tree, "<formula>", "eval")
    names: dict[str, Any] = {**FORMULA_FUNCTIONS, **FORMULA_CONSTANTS, "__builtins__": {}}

    def value(t: float) -> float:
        return float(eval(code, names, {"t": t, "time": t}))  # noqa: S307 - only what is listed above can stand in it

    value(0.0)
    return value


def differentiate_input_formula(text: str) -> str:
    """Return the derivative by time of a formula of ``t``, as such a formula.

    Raises:
        ValueError: If it has none at some instants, or is not smooth: it jumps, has kinks or cases.
    """
    import sympy as sm

    tree = ast.parse(text.replace("^", "**").strip(), mode="eval")
    if any(isinstance(node, ast.Mod) for node in ast.walk(tree)):
        raise ValueError(f"{text} jumps")
    known = {name: getattr(sm, name) for name in _SMOOTH_FUNCTIONS}
    known |= {"hypot": lambda *sides: sm.sqrt(sum(side**2 for side in sides)), "pi": sm.pi, "e": sm.E}
    t = sm.Symbol("t")
    try:
        names = {**known, "__builtins__": {}, "t": t, "time": t}
        value = eval(compile(tree, "<formula>", "eval"), names)  # noqa: S307 - parsed and checked as a formula before
    except (NameError, TypeError) as error:
        raise ValueError(f"{text} is not smooth: {error}") from None
    return str(sm.pycode(sm.sympify(value).diff(t), fully_qualified_modules=False))


def read_input_signals(
    given: Mapping[str, InputValue],
    tables: tuple[Path, ...],
    units: Mapping[str, str],
    stop: float,
    rates: Mapping[str, str] | None = None,
) -> tuple[InputSignal, ...]:
    """Return every given input, checked.

    Args:
        given: FMU name → number, formula of ``t``, or function of time.
        tables: CSV files with a column ``time`` and columns by FMU name, with a unit if it is another; between two
            rows a line is drawn, before the first and after the last the value stays.
        units: FMU name → unit, of all inputs there are.
        stop: End of the simulation in s; formulas must be finite up to there.
        rates: FMU name of an input → that of the input that is its derivative by time, in the order s, s'. A rate that
            is not given is the derivative of a formula.

    Raises:
        ValidationError: With every fault. A table or function whose rates are not given is one: they would not move.
    """
    signals: list[InputSignal] = []
    faults: list[Fault] = []
    for name, value in given.items():
        if name not in units:
            faults.append(_unknown_input_fault(name, units))
            continue
        try:
            signals.append(_make_signal(name, value, stop))
        except (ValueError, ArithmeticError, TypeError) as error:
            faults.append(Fault(str(error), f"input {name}", "write a formula of t: 5*sin(2*pi*t), 3*step(t - 1)"))
    for path in tables:
        read, more = _read_input_table(path, units)
        signals += read
        faults += more
    names = [signal.name for signal in signals]
    doubles = sorted({name for name in names if names.count(name) > 1})
    faults += [Fault("is given twice", f"input {name}", "leave one out") for name in doubles]
    if not faults:
        faults = _add_rates(signals, given, rates or {}, stop)
    if faults:
        raise ValidationError("the inputs cannot be used:", faults)
    return tuple(signals)


def _add_rates(
    signals: list[InputSignal], given: Mapping[str, InputValue], rates: Mapping[str, str], stop: float
) -> list[Fault]:
    """Append signals of rates, derived from formulas and numbers; return a fault for each input that has none."""
    values, there = dict(given), {signal.name for signal in signals}
    missing: dict[str, list[str]] = {}  # input that moves → its rates that nothing gives
    moves: dict[str, str] = {}  # such a rate → that input
    for name, rate in rates.items():
        if rate in there or name not in {*there, *moves}:
            continue
        try:
            values[rate] = _differentiate_input(values[name])
            signals.append(_make_signal(rate, values[rate], stop))
            there.add(rate)
        except (KeyError, ValueError, ArithmeticError, TypeError):
            moves[rate] = moves.get(name, name)
            missing.setdefault(moves[rate], []).append(rate)
    return [
        Fault(
            f"moves, and its rates are not given: {', '.join(found)}",
            f"input {name}",
            f"give {' and '.join(found)} too, as columns or formulas; only a smooth formula is differentiated",
        )
        for name, found in missing.items()
    ]


def _differentiate_input(value: InputValue) -> InputValue:
    """Return the derivative of a formula or number; TypeError: of a function it is not known."""
    if callable(value):
        raise TypeError(f"{value!r} is no formula")
    return differentiate_input_formula(value) if isinstance(value, str) else 0.0


def _unknown_input_fault(name: str, units: Mapping[str, str], where: str = "") -> Fault:
    """Return the fault of an input that the model does not have; the remedy names what is probably meant."""
    near = [each for each in units if each.endswith(f".{name}")] or difflib.get_close_matches(name, units)
    remedy = f"there are {', '.join(units)}" if units else "there are none; --at sets parameters and start values"
    if near:
        remedy = f"did you mean {' or '.join(near)}?"
    return Fault(f"there is no input {name}", where, remedy)


def _make_signal(name: str, value: InputValue, stop: float) -> InputSignal:
    """Return a number, formula or function as a signal that is finite at some times up to the end."""
    if callable(value):
        function: Callable[[float], float] = value
        text = getattr(value, "__name__", "function")
    elif isinstance(value, str):
        function, text = parse_input_formula(value), value
    else:
        number = float(value)
        function, text = (lambda _t: number), f"{number:g}"
    for t in np.linspace(0.0, stop, 7).tolist():
        if not math.isfinite(function(t)):
            raise ValueError(f"{text} is not finite at t = {t:g} s")
    return InputSignal(name, text, function)


def _read_input_table(path: Path, units: Mapping[str, str]) -> tuple[list[InputSignal], list[Fault]]:
    """Read a table into one signal per input, with all faults: times that fall, unknown names, empty cells."""
    from mb2fmu.validation.data.validation_data_tables import TIME_COLUMN, read_validation_table

    table = read_validation_table(path)
    time = table.column(TIME_COLUMN)
    if time is None:
        there = ", ".join(column.name for column in table.columns)
        return [], [Fault(f"has no column time; there are {there}", path.name, "head one with time, in s")]
    try:
        instants = convert_times_to_seconds(time)
    except ValueError as error:
        return [], [Fault(f"time: {error}", path.name, "head it with time, in s, or with time [ms]")]
    if not np.all(np.isfinite(instants)) or bool(np.any(np.diff(instants) < 0)):
        remedy = "sort the rows by time, none empty; two rows of one time are a jump"
        return [], [Fault("the column time falls, or has empty cells", path.name, remedy)]
    signals, faults = [], []
    if len(table.columns) == 1:
        remedy = f"add a column for {' or '.join(units)}" if units else "leave the table out: there are no inputs"
        faults.append(Fault("has the column time only", path.name, remedy))
    for column in table.columns:
        if column is time:
            continue
        if column.name not in units:
            faults.append(_unknown_input_fault(column.name, units, path.name))
            continue
        try:
            signals.append(_interpolate_column(path, instants, column, units[column.name]))
        except ValueError as error:
            unit = units[column.name]
            remedy = f"give every row a number in {unit}, or head the column with its unit: {column.name} [UNIT]"
            faults.append(Fault(f"{column.name}: {error}", path.name, remedy))
    return signals, faults


def convert_times_to_seconds(column: ValidationDataColumn) -> Floats:
    """Return times of a column in s; its head may give another unit.

    Raises:
        ValueError: If that is none of time.
    """
    return column.values / display_unit_conversion("s", column.unit)[0] if column.unit else column.values


def _interpolate_column(path: Path, time: Floats, column: ValidationDataColumn, unit: str) -> InputSignal:
    """Return a column as an input in the model's unit, linear between rows and constant beyond the ends.

    Where several rows have one time, it jumps there: from then on it has the last row's value.
    """
    values = column.values
    if not np.all(np.isfinite(values)):
        raise ValueError("has empty cells")
    if column.unit:
        factor, offset = display_unit_conversion(unit, column.unit)
        values = (values - offset) / factor

    def interpolate(t: float) -> float:
        """Return the value at t, in s."""
        after = int(np.searchsorted(time, t, side="right"))
        if after in {0, len(time)}:
            return float(values[max(after - 1, 0)])
        share = (t - time[after - 1]) / (time[after] - time[after - 1])
        return float((1.0 - share) * values[after - 1] + share * values[after])

    return InputSignal(column.name, f"column of {path.name}", interpolate)
