"""Rigid contacts and latches of a robot, in coordinates of its joints and by where its links are."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import sympy as sm

from mb2fmu.mechanics.mechanism.records.mechanism_records import Mechanism
from mb2fmu.mechanics.mechanism.records.symbol_replacement_and_derivatives import DynamicsymbolMap, coordinate_rates
from mb2fmu.mechanics.mechanism.sympy_import.contact_and_latch_import import read_contacts_and_latches
from mb2fmu.model.checked_model import CheckedModel
from mb2fmu.robots.tree.link_motion_expressions import write_out_link_motion


def add_contacts_and_latches(records: Mechanism, definition: CheckedModel, plain: DynamicsymbolMap) -> Mechanism:
    """Return the records with rigid contacts and latches.

    Args:
        records: Of the tree, with its loops.
        definition: The checked model.
        plain: Translates the user's symbols.
    """
    d, m = definition, records
    if not (d.contacts or d.latches):
        return m
    rates = m.rates(coordinate_rates(m.kinematics, m.u))
    moving = (tuple(s for s in rates if s != m.t), tuple(rate for s, rate in rates.items() if s != m.t), m.t)
    start: dict[sm.Symbol, Any] = dict(zip(m.q, (float(c.start) for c in d.coordinates), strict=True))
    start |= {m.t: 0.0, **dict(zip(m.r, (float(item.start) for item in d.inputs), strict=True))}
    for p in d.parameters:
        start[p.symbol] = float(sm.sympify(p.value).subs(start))
    taken = {str(symbol) for symbol in (*plain.to_plain.values(), *start)}
    written = write_out_link_motion(m.motion_vectors, m.frames, m.points, rates)
    contacts, latches = read_contacts_and_latches(d, plain, moving, m.u, taken, m.velocity_constraints, start, written)
    return replace(m, contacts=contacts, latches=latches)
