"""Calculated parameters: order of evaluation, cycles, and check of their values."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from graphlib import CycleError, TopologicalSorter

import sympy as sm

from mb2fmu.errors import Fault
from mb2fmu.model.checks.expression_symbols import collect_expression_symbols
from mb2fmu.model.quantity_declarations import Parameter


def sort_calculated_parameters(parameters: Sequence[Parameter]) -> tuple[tuple[Parameter, ...], list[Fault]]:
    """Sort calculated parameters so that each follows all that it depends on.

    Args:
        parameters: In order of declaration.

    Returns:
        Free parameters in order of declaration, then the calculated ones in order of evaluation; and the faults:
        cycles, values that are no finite numbers or lie outside of their bounds.
    """
    by_symbol = {parameter.symbol: parameter for parameter in parameters}
    free = [parameter for parameter in parameters if not parameter.calculated]
    # in order of declaration, for TopologicalSorter keeps it where it may
    needs = {
        parameter.symbol: sorted(
            (symbol for symbol in parameter.value.free_symbols if symbol in by_symbol and by_symbol[symbol].calculated),
            key=str,
        )
        for parameter in parameters
        if isinstance(parameter.value, sm.Expr)
    }
    try:
        order = tuple(TopologicalSorter(needs).static_order())
    except CycleError as error:
        cycle = error.args[1][::-1]
        what = f"the values of {', '.join(map(str, cycle[1:]))} go round in a circle: {' needs '.join(map(str, cycle))}"
        return tuple(parameters), [Fault(what, by_symbol[cycle[0]].where, "give one of them a number")]
    calculated = [by_symbol[symbol] for symbol in order]
    return (*free, *calculated), list(_value_faults(free, calculated))


def _value_faults(free: Sequence[Parameter], calculated: Sequence[Parameter]) -> Iterator[Fault]:
    """Evaluate the calculated parameters once; yield those without a finite value."""
    values: dict[sm.Symbol, sm.Expr] = {parameter.symbol: sm.Float(parameter.value, 17) for parameter in free}
    for parameter in calculated:
        expression = sm.sympify(parameter.value)
        if expression.free_symbols - set(values) or not collect_expression_symbols(expression).defined:
            continue  # reported elsewhere: something in it is not declared, or no number
        value = expression.xreplace(values).evalf()
        if not value.is_number or collect_expression_symbols(value).functions_of_time:
            continue
        number = float(value) if value.is_real else math.nan
        values[parameter.symbol] = value
        low, high = parameter.minimum, parameter.maximum
        if not math.isfinite(number):
            what = f"the value of {parameter.name}, {expression}, is {value}"
            yield Fault(what, parameter.where, "change the values it is calculated from")
        elif (low is not None and number < low) or (high is not None and number > high):
            what = f"the value of {parameter.name}, {expression} = {number:g}, lies outside of its bounds"
            yield Fault(what, parameter.where, "change the bounds, or the values it is calculated from")
