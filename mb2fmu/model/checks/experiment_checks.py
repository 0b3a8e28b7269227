"""Check the default experiment: its numbers and signals."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterator

import sympy as sm

from mb2fmu.errors import Fault
from mb2fmu.model.checks.expression_contents import collect_contents
from mb2fmu.model.checks.mechanics_completeness import format_symbol
from mb2fmu.model.declarations.model_declarations import choose_communication_step
from mb2fmu.model.model import Experiment, Model
from mb2fmu.model.quantity_declarations import Input

MAX_STEPS = 1_000_000
"""Communication steps of a default experiment: the validation keeps what every variable is at each of them."""


def experiment_faults(model: Model) -> Iterator[Fault]:
    """Yield faults of the default experiment."""
    experiment = model.default_experiment
    for holds, what, remedy in _experiment_rules(experiment):
        if not holds:
            yield Fault(what, experiment.where or model.where, remedy)
    inputs = dict.fromkeys(item.symbol for item in model.declared if isinstance(item, Input))
    for symbol, signal in experiment.signals.items():
        if symbol not in inputs:
            near = difflib.get_close_matches(str(symbol), map(str, inputs), n=1) or list(map(str, inputs))
            remedy = (
                f"the inputs are {', '.join(near)}" if near else f'model.input({format_symbol(symbol)}, 0.0, "unit")'
            )
            yield Fault(f"the experiment has a signal for {symbol}, which is no input", experiment.where, remedy)
        yield from _signal_faults(experiment, symbol, sm.sympify(signal))


def _experiment_rules(experiment: Experiment) -> Iterator[tuple[bool, str, str]]:
    """Yield (holds, message if it does not, remedy); comparisons with NaN never hold."""
    stop, step, tolerance = experiment.stop, experiment.step, experiment.tolerance
    yield 0.0 < stop < math.inf, f"the experiment's stop time is {stop}", "the start time is 0: give a stop > 0, in s"
    yield 0.0 < step < math.inf, f"the experiment's step is {step}", "give a communication step > 0, in s"
    if step > 0.0 and stop > 0.0:
        yield (
            step <= stop,
            f"the experiment's step {step} is longer than the experiment ({stop})",
            "take a shorter step",
        )
        what = f"the experiment has {stop / step:.3g} communication steps, more than {MAX_STEPS:,}"
        remedy = f"take step={choose_communication_step(stop):g}, or leave step out; or an earlier stop"
        yield not stop > MAX_STEPS * step, what, remedy
    what = f"the experiment's tolerance is {tolerance}"
    yield 0.0 < tolerance <= 1e-2, what, "give a relative tolerance in (0, 0.01], such as 1e-6"
    what = f"there is no solver {experiment.solver!r}"
    yield experiment.solver in {"adaptive", "fixed"}, what, "take 'adaptive' or 'fixed'"
    internal = experiment.internal_step
    if internal is not None:
        what = f"the internal step is {internal}, the communication step {step}"
        yield 0.0 < internal <= step, what, "give an internal_step in (0, step]"


def _signal_faults(experiment: Experiment, symbol: sm.Expr, signal: sm.Expr) -> Iterator[Fault]:
    """Yield signals of an experiment that are not finite functions of time alone."""
    inside = collect_contents(signal)
    others = sorted(map(str, (*inside.constants, *inside.varying)))
    if others:
        what = f"the signal of {symbol} contains {', '.join(others)}"
        yield Fault(what, experiment.where, "a signal is a number, or an expression of time (dynamicsymbols._t) alone")
    for name in sorted(inside.unsupported):
        yield Fault(f"the signal of {symbol} contains {name}, which is not supported", experiment.where)
    if not inside.defined:
        yield Fault(f"the signal of {symbol} is {signal}", experiment.where, "give a finite signal")
