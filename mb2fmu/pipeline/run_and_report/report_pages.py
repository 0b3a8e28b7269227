"""Pages of an FMU before and after a run, and the validation that is packed with it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

from mb2fmu.pipeline.derivation.formulation_and_build_options import ExportOptions
from mb2fmu.pipeline.derivation.pipeline_results import FmuBuildResult, StageTime, ValidationOutcome

if TYPE_CHECKING:
    from pathlib import Path

    from mb2fmu.fmu.in_memory_file_tree import InMemoryFileTree
    from mb2fmu.mechanics.equations.equations_of_motion import EquationsOfMotion
    from mb2fmu.mechanics.mechanism import Mechanism
    from mb2fmu.report import ValidationFigures
    from mb2fmu.report.equation_display.theory_quantity_html import TheoryQuantityHtmlWriter
    from mb2fmu.report.pages.report_page_records import TheorySectionContent
    from mb2fmu.visualization import Drawing, PlotSignals, Scene

MAX_PACKED_REPORT_BYTES = 1_000_000
"""Bytes of the page in an FMU."""
KANE_QUANTITY_KINDS = ("partial-velocities", "generalized-active-forces", "generalized-inertia-forces")
MAX_UNFOLDED_GRAPH_BODIES = 8
"""Above, the graph is folded."""
MAX_PARTIAL_VELOCITIES = 25
"""Bodies times speeds up to which a page shows Kane's quantities: for an arm of seven hinges forming and writing some
400 of them takes longer than reading and lowering it, and nobody reads them in a page."""
MAX_QUANTITY_LINES_IN_FMU = 30
"""Lines of each kind of quantity in the page in an FMU."""


def render_fmu_description(built: FmuBuildResult) -> bytes:
    """Return the content of the page of an FMU that was not run."""
    from mb2fmu import visualization
    from mb2fmu.report import ReportProvenance, render_fmu_description_page

    definition, native = built.derivation.definition, built.interface.target.backend == "native"
    source = definition.source
    hashes = {"model file": _hash_file(source)} if source else {}
    provenance = ReportProvenance(hashes=hashes, platforms=built.platforms)
    licences = "licenses/license.txt" if native else ""
    start = visualization.draw_start_position(built.scene) if built.scene else None
    theory = form_graph_and_theory_content(built.derivation.mechanism, limited=True)
    return render_fmu_description_page(
        definition,
        built.derivation.equations,
        built.interface,
        provenance,
        licences=licences,
        start=start,
        theory=theory,
    )


def _make_kane_quantity_writer(mechanism: Mechanism) -> TheoryQuantityHtmlWriter:
    """Return what writes Kane's quantities as they stand in a page."""
    from mb2fmu.mechanics.formulations.kane_tmt_lagrange_theory_quantities import form_theory_quantities
    from mb2fmu.report.equation_display.theory_quantity_html import TheoryQuantityHtmlWriter

    return TheoryQuantityHtmlWriter(form_theory_quantities(mechanism, KANE_QUANTITY_KINDS, contracted=False))


def form_graph_and_theory_content(
    mechanism: Mechanism,
    *,
    limited: bool,
    make_writer: Callable[[Mechanism], TheoryQuantityHtmlWriter] = _make_kane_quantity_writer,
) -> TheorySectionContent:
    """Return graph and Kane's quantities of a mechanism, as a page shows them.

    Args:
        mechanism: As read.
        limited: The page has to be small: long expressions and long lists are counted only.
        make_writer: Forms these quantities, or has them already.
    """
    from mb2fmu.mechanics.mechanism.symbolic.mechanism_graph import build_mechanism_graph
    from mb2fmu.report.equation_display.equation_html import MAX_FOLDED_CHARACTERS
    from mb2fmu.report.equation_display.mechanism_graph_picture import draw_mechanism_graph
    from mb2fmu.report.figures.supplied_model_picture import embed_supplied_model_picture
    from mb2fmu.report.pages.report_page_records import TheorySectionContent

    name, command = mechanism.declared.name, "mb2fmu equations MODEL.py --show " + ",".join(KANE_QUANTITY_KINDS)
    if mechanism.is_lagrangian_only:
        return TheorySectionContent()
    drawn = embed_supplied_model_picture(
        draw_mechanism_graph(build_mechanism_graph(mechanism)), f"Graph of {name}: bodies, joints, loads, constraints"
    )
    many = len(mechanism.bodies) > MAX_UNFOLDED_GRAPH_BODIES
    if len(mechanism.bodies) * len(mechanism.u) > MAX_PARTIAL_VELOCITIES:
        return TheorySectionContent(drawn, many, (), f"They are too many to be read here; {command} writes them.")
    blocks = make_writer(mechanism).form_blocks(
        0 if limited else MAX_FOLDED_CHARACTERS, MAX_QUANTITY_LINES_IN_FMU if limited else None
    )
    text = f"Components are in the inertial frame; F of each load, F* of each body. {command} contracts them, too."
    return TheorySectionContent(drawn, many, tuple(blocks), text)


def add_description_page_to_fmu(built: FmuBuildResult) -> InMemoryFileTree:
    """Return the core FMU with the page that describes it."""
    from mb2fmu.fmu import package

    return package.add_documentation_page(built.core, render_fmu_description(built))


class SharedReportPageContent:
    """What the page in an FMU and the one beside it both show: formed for the first of them.

    Args:
        validated: The verdict.
        built: The FMU; None where only the verdict on it is known.
    """

    def __init__(self, validated: ValidationOutcome, built: FmuBuildResult | None) -> None:
        self._validated, self._built = validated, built

    @cached_property
    def equations(self) -> EquationsOfMotion:
        """The FMU's; of a foreign one the reference's."""
        return self._built.derivation.equations if self._built else _choose_shown_equations(self._validated)

    @cached_property
    def scene(self) -> Scene | None:
        """What the mechanism looks like; None where nothing can be drawn."""
        from mb2fmu.pipeline.fmu_build.model_scene import build_model_scene

        return self._built.scene if self._built else build_model_scene(self._validated.mechanism, self.equations)

    @cached_property
    def motion(self) -> tuple[Drawing, PlotSignals] | None:
        """The FMU's motion, drawn."""
        from mb2fmu.pipeline.display import fmu_motion_drawings

        return fmu_motion_drawings.draw_validated_motion(self.scene, self._validated.result) if self.scene else None

    @cached_property
    def figures(self) -> ValidationFigures:
        """Charts, and the picture of the motion."""
        from mb2fmu.report import ValidationFigures

        validated = self._validated
        return ValidationFigures(validated.definition, self.equations, validated.result, self.motion)

    @cached_property
    def kane_quantity_writer(self) -> TheoryQuantityHtmlWriter:
        """What writes Kane's quantities."""
        return _make_kane_quantity_writer(self._validated.mechanism)


def add_validation_page_to_fmu(
    built: FmuBuildResult, validated: ValidationOutcome, command: str, content: SharedReportPageContent
) -> InMemoryFileTree:
    """Return the core FMU with its report; native FMUs carry the reference too.

    The report has no times, the core FMU's hash, and at most ``MAX_PACKED_REPORT_BYTES`` bytes.
    """
    from mb2fmu.fmu import package

    page = _render_report(validated, built, command, (), MAX_PACKED_REPORT_BYTES, content)
    if built.interface.target.backend == "python":
        return package.add_documentation_page(built.core, page)
    reference = validated.result.reference
    trajectory, run = reference.trajectory, reference.experiment
    table = package.EmbeddedTrajectoryTable(trajectory.names, trajectory.time.tolist(), trajectory.values.tolist())
    stimuli = (
        package.EmbeddedTrajectoryTable(run.input_names, run.time[:-1].tolist(), run.inputs.tolist())
        if run.input_names
        else None
    )
    origin = f"equations of motion by {reference.numeric.formulation}, integrated apart from the FMU"
    files = package.form_embedded_reference_files(built.interface, table, stimuli=stimuli, origin=origin)
    return package.add_validation_report(built.core, page, files)


def format_run_command(built: FmuBuildResult, arguments: Mapping[str, Any], options: ExportOptions) -> str:
    """Return the command that makes the same FMU again; empty where the model came from no file.

    Args:
        built: The FMU, with its target, and with the model's file and the values that were set.
        arguments: Of the model's function.
        options: Of equations and FMU, as requested.
    """
    definition, target = built.derivation.definition, built.interface.target
    if definition.source is None:
        return ""
    words = ["mb2fmu run", definition.source.name]
    words += [f"--set {name}={value}" for name, value in arguments.items()]
    words += [f"--at {name}={value!r}" for name, value in definition.given.items()]
    given = {
        "--method": (options.get("method"), "auto"),
        "--constraints": (options.get("constraints"), "auto"),
        "--baumgarte": (options.get("baumgarte"), None),
        "--independent": (",".join(options.get("independent", ())), ""),
        "--backend": (target.backend, "native"),
        "--fmi": (target.fmi, "2"),
        "--platform": (options.get("platforms"), "host"),
        "--compiler": (target.compiler, "zig"),
        "--solver": (target.solver, None),
    }
    words += [f"{name} {value}" for name, (value, usual) in given.items() if value not in (None, usual)]
    return " ".join([*words, *(["--fast"] if target.fast else [])])


def render_validation_report(validated: ValidationOutcome) -> bytes:
    """Return the page of an FMU of which only the verdict is known."""
    source = validated.definition.source
    command = f"mb2fmu validate NAME.fmu --model {source.name} --report REPORT.html" if source else ""
    return render_report_beside_fmu(None, validated, command, validated.timings)


def render_report_beside_fmu(
    built: FmuBuildResult | None,
    validated: ValidationOutcome,
    command: str,
    timings: tuple[StageTime, ...],
    archive: bytes | None = None,
    content: SharedReportPageContent | None = None,
) -> bytes:
    """Return the report for a folder, with times.

    Args:
        built: None where only the verdict on an FMU is known.
        validated: The verdict.
        command: What to type to get the same again.
        timings: Of all stages.
        archive: What lies beside it; None: what was judged.
        content: Of the page in the FMU, if one was made.
    """
    validated_hash = str(validated.result.provenance["fmu_sha256"])
    name = validated_hash if archive is None else hashlib.sha256(archive).hexdigest()
    content = content or SharedReportPageContent(validated, built)
    return _render_report(validated, built, command, timings, None, content, name)


def _choose_shown_equations(validated: ValidationOutcome) -> EquationsOfMotion:
    """Return equations for the page of a foreign FMU: the reference's, or new ones where those have no dynamics."""
    from mb2fmu.mechanics import formulations

    equations = validated.reference_equations
    return formulations.formulate(validated.mechanism) if equations.dynamics is None else equations


def _render_report(
    validated: ValidationOutcome,
    built: FmuBuildResult | None,
    command: str,
    timings: tuple[StageTime, ...],
    limit: int | None,
    content: SharedReportPageContent,
    unit: str = "",
) -> bytes:
    """Render a validation as a page (HTML) with the times spent, hashes of its sources, and its motion drawn."""
    from mb2fmu.fmu import package
    from mb2fmu.report import ReportProvenance, render_validation_page

    spent: dict[str, float] = {}
    for timing in timings:
        spent[timing.stage] = spent.get(timing.stage, 0.0) + timing.seconds
    if spent:
        spent |= {f"validate: {activity}": seconds for activity, seconds in validated.result.timings.items()}
    source = validated.definition.source
    hashes = {"model file": _hash_file(source)} if source else {}
    core = package.hash_file_tree(built.core) if built else ""
    return render_validation_page(
        validated.definition,
        content.equations,
        built.interface if built else None,
        validated.result,
        ReportProvenance(
            unit=unit,
            core=core,
            hashes=hashes,
            platforms=built.platforms if built else (),
            commands=(command,) if command else (),
            timings=spent,
        ),
        motion=content.motion,
        live=_format_interactive_fmu(built, content.scene, content.motion),
        limit=limit,
        figures=content.figures,
        theory=form_graph_and_theory_content(
            validated.mechanism, limited=limit is not None, make_writer=lambda _: content.kane_quantity_writer
        ),
    )


def _format_interactive_fmu(
    built: FmuBuildResult | None, scene: Scene | None, motion: tuple[Drawing, PlotSignals] | None
) -> str:
    """Return the FMU as a page runs it; empty where it cannot."""
    from mb2fmu.visualization.interactive_fmu import form_interactive_fmu_record, format_script_safe_json

    if built is None or scene is None or motion is None or built.live is None:
        return ""
    return format_script_safe_json(form_interactive_fmu_record(built.live, scene, motion[0]))


def render_page_that_runs_fmu(built: FmuBuildResult, validated: ValidationOutcome) -> bytes | None:
    """Return the validation's motion as a page that can run the FMU; None where nothing can be drawn."""
    from mb2fmu import visualization
    from mb2fmu.pipeline.display import fmu_motion_drawings

    if built.scene is None:
        return None
    motion = fmu_motion_drawings.draw_validated_motion(built.scene, validated.result)
    if motion is None:
        return None
    live = _format_interactive_fmu(built, built.scene, motion)
    return visualization.render_animation_page(*motion, shown=motion[1].names[:3], live=live)


def _hash_file(path: Path) -> str:
    """Return the SHA-256 of a file's bytes, in hexadecimal."""
    return hashlib.sha256(path.read_bytes()).hexdigest()
