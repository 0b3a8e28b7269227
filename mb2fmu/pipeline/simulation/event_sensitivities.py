"""Derivatives of many motions with events: the unit moves each instance, variational equations follow it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from mb2fmu import analysis
from mb2fmu.analysis.studies.ensembles import Ensemble, Motion
from mb2fmu.compiler import events
from mb2fmu.compiler.program.program import Program
from mb2fmu.errors import AnalysisError
from mb2fmu.fmu.toolchain.batch_inputs import Course, Moved
from mb2fmu.pipeline.derivation.pipeline_results import Derivation

Floats = npt.NDArray[np.float64]

_FINEST = 1e-9
"""Tolerance of derivatives, or the run's, whichever is less."""


def why_not(derivation: Derivation) -> str:
    """Return why instances that are run one by one carry no derivatives; empty if they do."""
    program = derivation.program
    if program.layout.memory and events.freeze(program) is program:
        return "its loops remember their branch"
    return ""


def with_derivatives(ensemble: Ensemble, derivation: Derivation, to: tuple[str, ...]) -> Ensemble:
    """Return the same ensemble with ∂x/∂to behind its states and ∂y/∂to behind its outputs.

    Args:
        ensemble: Whose instances are run one by one.
        derivation: Of its model.
        to: FMU names of parameters, and of states for their start values.
    """

    def varied(motion: Motion) -> Motion:
        return lambda x0, p, course, states, outputs: _moved(
            motion, ensemble, derivation, to, (x0, p, course, states, outputs)
        )

    return replace(
        ensemble,
        states=(*ensemble.states, *(f"{name} by {by}" for by in to for name in ensemble.states)),
        scale=np.tile(ensemble.scale, len(to) + 1),
        own=len(ensemble.states),
        motion=varied(ensemble.motion),
        implicit_motion=varied(ensemble.implicit_motion),
    )


def _moved(
    motion: Motion,
    ensemble: Ensemble,
    derivation: Derivation,
    to: tuple[str, ...],
    asked: tuple[Floats, Floats, Course, bool, Sequence[int]],
) -> Moved:
    """Return instances as the unit moves them, with derivatives; NaN, and the reason, where there are none."""
    x0, p, course, states, outputs = asked
    n_x, n_y = len(ensemble.states), len(ensemble.output_names)
    own = [place for place in outputs if place < n_y]
    moved = motion(x0[:, :n_x], p, replace(course, scale=course.scale[:n_x]), states, own)
    slopes = np.full((len(x0), course.points + 1, n_x + n_y, len(to)), np.nan)
    reasons = list(moved.messages)
    for k, parameters in enumerate(np.broadcast_to(p, (len(x0), p.shape[-1]))):
        if not reasons[k]:
            try:
                slopes[k] = _derivatives(ensemble, derivation, to, x0[k, :n_x], parameters, course)
            except AnalysisError as error:
                reasons[k] = "; ".join(fault.what for fault in error.faults)
    of_x, of_y = slopes[:, :, :n_x], slopes[:, :, n_x:]
    return Moved(
        _behind(moved.states, of_x[:, -1]),
        _behind(moved.outputs, of_y[:, -1]),
        _behind(moved.path_states, of_x) if states else np.full((0, course.points + 1, n_x * (1 + len(to))), np.nan),
        _behind(moved.path_outputs, of_y[:, :, own]),
        moved.messages,
        tuple(reasons),
    )


def _behind(values: Floats, slopes: Floats) -> Floats:
    """Return values (…, n) with their derivatives (…, n, k) behind them, (…, n (1 + k))."""
    turned = np.moveaxis(slopes, -1, -2)
    return np.concatenate([values, turned.reshape(*values.shape[:-1], turned.shape[-2] * turned.shape[-1])], axis=-1)


def _derivatives(
    ensemble: Ensemble, derivation: Derivation, to: tuple[str, ...], x: Floats, p: Floats, course: Course
) -> Floats:
    """Return derivatives of states and outputs of one instance at communication points, shape (n_t, n_x + n_y, k)."""
    definition, equations = derivation.definition, derivation.equations
    start = replace(analysis.start_at(definition, equations, {}), x=x, p=p, t=course.start)
    study = analysis.study_of(
        definition,
        equations,
        start,
        (),
        to,
        stop=course.step * course.points,
        step=course.step,
        tolerance=min(course.tolerance, _FINEST),
    )
    study = replace(study, of=(*ensemble.states, *ensemble.output_names))
    return analysis.sensitivities(_with_names(derivation), start, _held(course), study).derivatives


def _held(course: Course) -> analysis.HeldInputs:
    """Return the inputs of a course as the unit receives them: new values after the communication point."""
    rows = np.flatnonzero(course.turns[:-1]) if len(course.inputs) > 1 else np.empty(0, dtype=np.intp)
    rows = np.concatenate([[0], rows]).astype(np.intp)
    points = course.start + np.linspace(0.0, course.step * course.points, course.points + 1)  # to the bit
    return analysis.HeldInputs(points[rows], course.inputs[rows])


def _with_names(derivation: Derivation) -> Program:
    """Return the program, with dependent coordinates and speeds under their FMU names."""
    program, d, e = derivation.program, derivation.definition, derivation.equations
    entries = dict(program.entries)
    if e.q_dependent:
        kept = entries["position"].labels[: -len(e.q_dependent)]
        names = (*kept, *(d.coordinates[i].name for i in e.q_dependent))
        entries["position"] = replace(entries["position"], labels=names)
    if e.u_dependent:
        names = tuple(d.speeds[i].name for i in e.u_dependent)
        entries["dependent_speeds"] = replace(entries["dependent_speeds"], labels=names)
    return replace(program, entries=entries)
