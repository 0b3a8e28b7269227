"""Structure of a model and its theory, for people; neither a program nor an FMU is made."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mb2fmu.mechanics.equations.theory_quantities import TheoryQuantities
from mb2fmu.mechanics.formulations.kane_tmt_lagrange_theory_quantities import form_theory_quantities
from mb2fmu.pipeline.derivation.model_derivation import AnyModel, load_model_and_mechanism
from mb2fmu.pipeline.derivation.pipeline_results import StageObserver
from mb2fmu.pipeline.derivation.stage_stopwatch import StageStopwatch


def draw_model_graph(
    model: AnyModel, *, arguments: Mapping[str, Any] | None = None, observer: StageObserver | None = None
) -> str:
    """Return the picture of a model's graph as SVG: bodies, joints, loads, constraints, sensors.

    Args:
        model: A model, or the file that has its function.
        arguments: Of that function, by name.
        observer: Is notified of each stage.

    Raises:
        Mb2FmuError: The class of the stage that found fault.
    """
    from mb2fmu.mechanics.mechanism.symbolic.mechanism_graph import build_mechanism_graph
    from mb2fmu.report.equation_display.mechanism_graph_picture import draw_mechanism_graph

    _, read = load_model_and_mechanism(model, arguments, StageStopwatch(observer))
    return draw_mechanism_graph(build_mechanism_graph(read))


def quantities(
    model: AnyModel, *kinds: str, arguments: Mapping[str, Any] | None = None, observer: StageObserver | None = None
) -> TheoryQuantities:
    """Return Kane's partial velocities and generalized forces, the parts of TMT, Lagrange's energies and terms.

    Args:
        model: A model, or the file that has its function.
        kinds: Some of ``partial-velocities``, ``generalized-active-forces``, ``generalized-inertia-forces``,
            ``transformation``, ``lagrange``, ``momenta``, ``integrals``.
        arguments: Of that function, by name.
        observer: Is notified of each stage.

    Returns:
        A section per kind; in a notebook it shows itself as formulas.

    Raises:
        Mb2FmuError: The class of the stage that found fault; ``FormulationError`` with every kind that there is not,
            or that this mechanism does not have.

    Example:
        >>> import mb2fmu
        >>> found = mb2fmu.quantities("simple_pendulum", "momenta")
        >>> len(found.sections)
        1
    """
    from mb2fmu.report.equation_display import theory_quantity_html, theory_quantity_text  # noqa: F401  register their displays

    stage = StageStopwatch(observer)
    _, read = load_model_and_mechanism(model, arguments, stage)
    with stage("form quantities"):
        return form_theory_quantities(read, kinds)
