"""Report of a system: picture, settings, errors against the reference, bonds, other masters."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup

from mb2fmu.fmu.packaged_templates import make_template_environment
from mb2fmu.report.figures.svg_chart import Chart, ChartLine, ChartPanel, LineStyle, draw_chart
from mb2fmu.report.pages.page_rendering import render_html_document
from mb2fmu.systems.exports.foreign_masters import ForeignMasterResult
from mb2fmu.systems.monolithic_reference_comparison import SystemVariableDeviation
from mb2fmu.systems.system_block_diagram import draw_system_block_diagram
from mb2fmu.systems.system_simulation import SystemTrajectories
from mb2fmu.systems.wired_system import WiredSystem

_LINE_STYLES: tuple[LineStyle, ...] = ("first", "second", "third", "fourth", "fifth")
_MAX_LINES = 5


@dataclass(frozen=True, slots=True)
class _SystemVerdictNumberTile:
    """One number of the verdict."""

    title: str
    value: str
    note: str
    bad: bool = False


def render_system_page(
    wired_system: WiredSystem,
    motion: SystemTrajectories,
    deviations: Sequence[SystemVariableDeviation],
    foreign_results: Sequence[ForeignMasterResult],
) -> bytes:
    """Return one self-contained HTML document.

    Args:
        wired_system: The system.
        motion: Recorded outputs.
        deviations: Deviations from the reference; may be empty.
        foreign_results: Results of other masters; may be empty.
    """
    environment = make_template_environment("mb2fmu.systems", escape=True)
    title = f"{wired_system.system.name}: FMUs and their connections"
    picture = Markup(draw_system_block_diagram(wired_system.wiring, title))  # noqa: S704  our own SVG
    error_bound = wired_system.system.run_settings.bound
    return render_html_document(
        environment.get_template("system.html.jinja"),
        system=wired_system.system,
        wired_system=wired_system,
        picture=picture,
        passed=error_bound is None or all(deviation.relative_error <= error_bound for deviation in deviations),
        compared=error_bound is not None and bool(deviations),
        headline=_format_headline(deviations, error_bound),
        tiles=list(_list_tiles(motion, deviations, error_bound)),
        links=list(_list_links(wired_system)),
        stepping=list(_list_stepping_settings(wired_system, motion)),
        deviations=deviations,
        bound=error_bound,
        charts=list(_draw_charts(motion, deviations)),
        bonds=list(_list_bond_energies(motion)),
        foreign_results=foreign_results,
        final_values={
            deviation.name: (deviation.reference_values[-1], deviation.system_values[-1]) for deviation in deviations
        },
        shown_variables=[deviation.name for deviation in deviations] or list(motion.names[:_MAX_LINES]),
        number=_format_number,
    )


def _format_number(value: float) -> str:
    """Return a number with nine digits."""
    return f"{value:.9g}"


def _format_headline(deviations: Sequence[SystemVariableDeviation], error_bound: float | None) -> str:
    """Return the first sentence of the report: the largest error, or that there is nothing to compare with."""
    if not deviations:
        return "The system was run; no monolithic model is given to compare it with."
    worst_deviation = max(deviations, key=lambda each: each.relative_error)
    error, name = worst_deviation.relative_error, worst_deviation.name
    sentence = f"Largest deviation from the monolithic model: {error:.2e} of the size of {name}"
    return f"{sentence}." if error_bound is None else f"{sentence}; the bound is {error_bound:.1e}."


def _list_tiles(
    motion: SystemTrajectories, deviations: Sequence[SystemVariableDeviation], error_bound: float | None
) -> Iterator[_SystemVerdictNumberTile]:
    """Yield the figures at the top: error, steps, unsettled steps, stability, energy defect."""
    statistics = motion.statistics
    if deviations:
        worst_error = max(deviation.relative_error for deviation in deviations)
        yield _SystemVerdictNumberTile(
            "Largest error",
            f"{worst_error:.2e}",
            "of a variable's own size",
            error_bound is not None and worst_error > error_bound,
        )
    mean_passes = statistics["total_passes"] / max(statistics["steps"], 1)
    yield _SystemVerdictNumberTile(
        "Steps", str(statistics["steps"]), f"{mean_passes:.2f} passes each, {statistics['rejected_steps']} made again"
    )
    if statistics["unconverged_steps"]:
        note = f"up to {statistics['largest_change']:.1e} of the inputs' size"
        yield _SystemVerdictNumberTile(
            "Not settled", str(statistics["unconverged_steps"]), f"steps whose inputs still changed by {note}", bad=True
        )
    if statistics["forecast"]:
        forecast = statistics["forecast"]
        factor = _format_growth_factor(forecast["log_growth"])
        note = f"errors are forecast to grow over the experiment by a factor of {factor}"
        yield _SystemVerdictNumberTile(
            "Stability", "unstable" if forecast["log_growth"] > math.log(1e3) else "stable", note
        )
    if motion.bonds:
        yield _SystemVerdictNumberTile(
            "Energy defect", f"{np.max(np.abs(motion.energy_defects)):.2e} J", "the largest of all bonds"
        )


def _format_growth_factor(growth: float) -> str:
    """Return e^growth as a number, or as a power where it would overflow."""
    return f"{math.exp(growth):.4g}" if abs(growth) < 700.0 else f"e^{growth:.3g}"


def _list_links(wired_system: WiredSystem) -> Iterator[tuple[str, str, str, bool]]:
    """Yield source, target, conversion, and direct feedthrough of each link."""
    wiring = wired_system.wiring
    feedthrough_outputs = {output for _, output in wiring.feedthrough}
    for link in wiring.links:
        source_unit, target_unit = wiring.outputs[link.source].unit, wiring.inputs[link.target].unit
        conversion = (
            f"{source_unit or 'no unit'} → {target_unit or 'no unit'}" if source_unit != target_unit else source_unit
        )
        if (link.factor, link.offset) != (1.0, 0.0):
            conversion += f", × {link.factor:.9g}" + (f" + {link.offset:.9g}" if link.offset else "")
        yield (
            wiring.output_name(link.source),
            wiring.input_name(link.target),
            conversion,
            link.source in feedthrough_outputs,
        )


def _list_stepping_settings(wired_system: WiredSystem, motion: SystemTrajectories) -> Iterator[tuple[str, str]]:
    """Yield how the system was stepped, as rows of name and value."""
    stepping, run_settings = wired_system.system.run_settings.stepping, wired_system.system.run_settings
    order_names = ("held", "lines", "parabolas")
    yield (
        "Method",
        {"jacobi": "Jacobi: all FMUs with inputs from the past", "gauss-seidel": "Gauss–Seidel"}[stepping.method],
    )
    yield "Inputs", f"{order_names[stepping.order]} (order {stepping.order})"
    yield (
        "Communication step",
        f"{stepping.step:g} s"
        if stepping.accuracy is None
        else (
            f"adapted to an accuracy of {stepping.accuracy:g}, {np.min(np.diff(motion.time)):.3g} to "
            f"{np.max(np.diff(motion.time)):.3g} s"
        ),
    )
    iteration_kind = "Newton steps with the interface Jacobian" if stepping.jacobian else "repeated substitution"
    yield (
        "Passes",
        "one" if stepping.passes == 1 else f"up to {stepping.passes}, {iteration_kind}, until {stepping.converged:g}",
    )
    yield "Tolerance of the FMUs", f"{run_settings.tolerance:g}"
    yield "Time", f"0 to {run_settings.stop:g} s"


def _draw_charts(
    motion: SystemTrajectories, deviations: Sequence[SystemVariableDeviation]
) -> Iterator[tuple[str, Markup, list[tuple[str, str]]]]:
    """Yield title, picture, legend of each chart."""
    for index, deviation in enumerate(deviations):
        error_line = ChartLine(
            "error", "error", deviation.time, np.abs(deviation.system_values - deviation.reference_values)
        )
        lines = (
            ChartLine("whole", "reference", deviation.time, deviation.reference_values),
            ChartLine("system", "fmu", deviation.time, deviation.system_values),
        )
        panels = (
            ChartPanel(deviation.name, deviation.unit or "1", lines),
            ChartPanel("error", deviation.unit or "1", (error_line,), "log"),
        )
        chart = Chart(
            f"variable-{index}", f"{deviation.name} of the system over {deviation.reference_name} of the whole", panels
        )
        yield deviation.name, draw_chart(chart), list(chart.legend)
    if not deviations:
        for index, name in enumerate(motion.names[:_MAX_LINES]):
            panel = ChartPanel(name, motion.units[index] or "1", (ChartLine(name, "fmu", motion.time, motion[name]),))
            chart = Chart(f"variable-{index}", name, (panel,))
            yield name, draw_chart(chart), list(chart.legend)
    shown_bonds = motion.bonds[:_MAX_LINES]
    if shown_bonds:
        defect_lines = tuple(
            ChartLine(name, _LINE_STYLES[index], motion.time, np.abs(motion.energy_defects[:, index]))
            for index, name in enumerate(shown_bonds)
        )
        chart = Chart("bonds", "energy defects of the bonds", (ChartPanel("energy defect", "J", defect_lines, "log"),))
        yield "Energy defects", draw_chart(chart), list(chart.legend)


def _list_bond_energies(motion: SystemTrajectories) -> Iterator[tuple[str, float, float, float]]:
    """Yield name, largest exchanged energy, defect at the end, largest defect, in J."""
    for index, name in enumerate(motion.bonds):
        exchanged_energy, energy_defect = motion.exchanged_energies[:, index], motion.energy_defects[:, index]
        yield (
            name,
            float(np.max(np.abs(exchanged_energy))),
            float(energy_defect[-1]),
            float(np.max(np.abs(energy_defect))),
        )
