"""Studies: what is computed from a derivation over a whole experiment, without any unit."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path

from mb2fmu import analysis, pipeline
from mb2fmu.model import Model


def sensitivities(
    model: Model | Path | str,
    *,
    of: Collection[str] = (),
    to: Collection[str] = (),
    at: Mapping[str, float] | None = None,
    stop: float | None = None,
    step: float | None = None,
    tolerance: float = 1e-9,
) -> analysis.Sensitivities:
    """Derivatives of the motion over the model's experiment: ``result["tip.x", "m"]`` is ∂(tip.x)/∂m over time.

    Args:
        model: A model, or the file that has its function; inputs follow the signals of its experiment.
        of: FMU names of states and outputs; all of them if none is given.
        to: FMU names of free parameters, and of states for their start values; all parameters if none is given.
        at: FMU name → value in its unit, instead of the model's.
        stop: In s, instead of the experiment's.
        step: In s, instead of the experiment's.
        tolerance: Relative, of the integration.

    Raises:
        Mb2FmuError: The class of the stage that found fault; ``AnalysisError`` for names that have no derivatives.
    """
    derivation = pipeline.derive(model)
    definition, equations = derivation.definition, derivation.equations
    start = analysis.start_at(definition, equations, at or {})
    study = analysis.study_of(definition, equations, start, of, to, stop=stop, step=step, tolerance=tolerance)
    return analysis.sensitivities(derivation.program, start, analysis.signals_of(definition, start), study)
