"""Consistent start values of states as nodes: fixed values are kept, guesses are solved for.

Coordinates move from the guesses q̂ along the rows of the constraints' Jacobian there, its columns of fixed ones left
out, q = q̂ − G(q̂)ᵀ λ, until φ(q) = 0: where there are as many guesses as conditions that is all that is possible, where
there are more it is a short way. Then guessed speeds are the nearest to theirs with A u + b = 0.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import sympy as sm

from mb2fmu.compiler.lowering.position_projection import PositionProjection
from mb2fmu.compiler.lowering.sympy_walker import SympyWalker
from mb2fmu.compiler.numerics.constraint_systems import project_speeds
from mb2fmu.mechanics.equations.equations_of_motion import EquationsOfMotion


def start_on_constraints(walker: SympyWalker, equations: EquationsOfMotion) -> list[int]:
    """Return start values of all states; the states' symbols stand for the declared or set values.

    Args:
        walker: Knows the symbols; the builder's states are the start values as set.
        equations: By a treatment by which all coordinates and speeds are states.
    """
    e, b, c = equations, walker.builder, equations.velocity_constraints
    assert c is not None
    n_q, n_u = len(e.q), len(e.u)
    given = [b.state(i) for i in range(len(e.states))]
    q, u = given[:n_q], given[n_q : n_q + n_u]
    if any(symbol in e.solved_start_states for symbol in e.q):
        declared = [sm.Dummy(f"declared_{symbol}") for symbol in e.q]
        walker.define(declared, [], _known(q))
        names, phi = zip(*e.holonomic, strict=True)
        free = [symbol for symbol in e.q if symbol in e.solved_start_states]
        name = f"the start values of {_some(free)} on the holonomic constraints"
        redundant = e.redundant_rows & set(range(len(phi)))
        closing = PositionProjection(b, e.q, phi, names, name, set(free), redundant, e.row_lengths[: len(phi)])
        q = closing.project(walker.lower(closing.needs(declared)))
    closed = [sm.Dummy(f"start_{symbol}") for symbol in e.q]
    walker.define(closed, [], _known(q))
    there = dict(zip(e.q, closed, strict=True))
    m = len(c.names)
    entries = walker.lower([entry.xreplace(there) for entry in (*c.jacobian, *c.offset)])
    A, offset = [entries[i * n_u : i * n_u + n_u] for i in range(m)], entries[m * n_u :]
    if any(symbol in e.solved_start_states for symbol in e.u):
        zero = b.constant(0.0)
        is_free = [symbol in e.solved_start_states for symbol in e.u]
        free = [[entry if f else zero for entry, f in zip(row, is_free, strict=True)] for row in A]
        kept = [[zero if f else entry for entry, f in zip(row, is_free, strict=True)] for row in A]
        given_by = [b.add(o, b.dot(row, u)) for o, row in zip(offset, kept, strict=True)]
        u = project_speeds(b, free, given_by, u, e.redundant_rows, e.row_lengths)
    return [*q, *u, *given[n_q + n_u :]]


def _some(symbols: Sequence[sm.Symbol]) -> str:
    """Return some names for a message."""
    shown = ", ".join(map(str, symbols[:_SHOWN]))
    return f"{shown} and {len(symbols) - _SHOWN} more" if len(symbols) > _SHOWN else shown


_SHOWN = 6


def _known(nodes: Sequence[int]) -> Callable[[Sequence[int]], Sequence[int]]:
    """Return an evaluation that gives the same nodes for any argument."""
    return lambda _: nodes
