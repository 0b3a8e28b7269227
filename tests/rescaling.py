"""The same model in other units of length, mass and time: what was 1 m, 1 kg and 1 s is now any number of them."""

from __future__ import annotations

from dataclasses import replace

import sympy as sm
from sympy.physics.mechanics import dynamicsymbols

from mb2fmu.model.model import Model, OutputRequest
from mb2fmu.model.quantity_declarations import AuxiliaryState, Coordinate, Input, Parameter, Speed
from mb2fmu.units import BASE_UNITS, parse_unit


def factor(unit: str, *, length: float, mass: float, time: float) -> float:
    """What a value in ``unit`` is multiplied by."""
    powers = dict(zip(BASE_UNITS, parse_unit(unit).exponents, strict=True))
    return float(length ** powers["m"] * mass ** powers["kg"] * time ** powers["s"])


def rescale(model: Model, *, length: float = 1.0, mass: float = 1.0, time: float = 1.0) -> Model:
    """Changes parameters, start values, bounds, nominals, inputs and experiment of a model, which is handed back.

    Numbers in its expressions stay: they must be pure.
    """

    def by(unit: str) -> float:
        return factor(unit, length=length, mass=mass, time=time)

    declared = []
    for item in model.declared:
        if isinstance(item, OutputRequest):
            declared.append(item)
            continue
        size = by(item.unit)
        bounds = {
            key: value if (value := getattr(item, key)) is None else value * size
            for key in ("minimum", "maximum", "nominal")
        }
        changed = replace(item, **bounds)
        if isinstance(changed, Parameter) and not changed.calculated:
            changed = replace(changed, value=changed.value * size)
        elif isinstance(changed, Input | Coordinate | Speed | AuxiliaryState):
            changed = replace(changed, start=changed.start * size)
        declared.append(changed)
    units = {str(item.symbol): item.unit for item in declared if isinstance(item, Input)}
    t, run = dynamicsymbols._t, model.default_experiment
    signals = {
        symbol: sm.sympify(signal).subs(t, t / time) * by(units[str(symbol)]) for symbol, signal in run.signals.items()
    }
    model.declared = declared
    model.default_experiment = replace(run, stop=run.stop * time, step=run.step * time, signals=signals)
    return model
