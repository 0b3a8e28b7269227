"""The entry points that a native unit has beyond those of :func:`mb2fmu.lowering.lower`."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mb2fmu.lowering.dependencies import Group
from mb2fmu.lowering.differentiation import differentiate_forward, jacobian
from mb2fmu.lowering.passes.prune import prune
from mb2fmu.lowering.program import Entry, Program
from mb2fmu.lowering.reverse import differentiate_reverse

RESULTS = ("rhs", "position", "velocity", "acceleration", "dependent_speeds", "accelerations", "prepare")
"""Entry points whose results are differentiated, in this order."""

GROUPS: tuple[Group, ...] = ("time", "states", "inputs", "parameters")
"""Variables that they are differentiated by, in this order."""


@dataclass(frozen=True, slots=True)
class NativeProgram:
    """A program with derivatives.

    Attributes:
        program: With the entry points ``tangent`` (seeds: one per variable of :data:`GROUPS`; results: one per result
            of :data:`RESULTS`), ``adjoint`` (seeds: weights of the results; results: one per variable), ``jacobian``
            (the entries of ∂x'/∂x that are not zero, row by row) and ``jacobian_time`` (those of ∂x'/∂t).
        rows: Of each entry of ``jacobian``, shape (n_nonzero,).
        columns: Of each entry of ``jacobian``, shape (n_nonzero,).
        time_rows: Of each entry of ``jacobian_time``.
    """

    program: Program
    rows: npt.NDArray[np.intp]
    columns: npt.NDArray[np.intp]
    time_rows: npt.NDArray[np.intp]


def with_derivatives(program: Program) -> NativeProgram:
    """Adds the derivatives that a native unit offers.

    Args:
        program: As lowered.
    """
    entries = dict(program.entries)
    labels = tuple(f"{name} {label}" for name in RESULTS for label in entries[name].labels)
    results = tuple(node for name in RESULTS for node in entries[name].results)
    entries["results"] = Entry("results", labels, results)
    whole = dataclasses.replace(program, entries=entries)
    tangent = differentiate_forward(whole, "results", GROUPS)
    both = differentiate_reverse(tangent, "results", GROUPS)
    slopes = jacobian(both, "rhs", ("states", "time"))
    n = len(program.layout.states)
    return _finished(slopes.program, slopes.entry, slopes.rows, slopes.columns, n)


def _finished(
    program: Program, name: str, rows: npt.NDArray[np.intp], columns: npt.NDArray[np.intp], n: int
) -> NativeProgram:
    """Entry points by their final names; the Jacobian's last column, that of time, apart."""
    entries = dict(program.entries)
    del entries["results"]
    entries["tangent"] = dataclasses.replace(entries.pop("jvp_results"), name="tangent")
    entries["adjoint"] = dataclasses.replace(entries.pop("vjp_results"), name="adjoint")
    everything = entries.pop(name)
    by_state = columns < n
    for part, mask in (("jacobian", by_state), ("jacobian_time", ~by_state)):
        picked = np.flatnonzero(mask)
        labels = tuple(everything.labels[i] for i in picked)
        entries[part] = Entry(part, labels, tuple(everything.results[i] for i in picked))
    finished = prune(dataclasses.replace(program, entries=entries))
    return NativeProgram(finished, rows[by_state], columns[by_state], rows[~by_state])
