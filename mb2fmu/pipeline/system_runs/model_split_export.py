"""``split_model``: turn one model into several FMUs, and the file that couples them.

Path → Derivation (the whole) → Cut → Parts → FMUs, system file
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from mb2fmu.fmu import package
from mb2fmu.fmu.in_memory_file_tree import InMemoryFileTree
from mb2fmu.pipeline.derivation.model_derivation import AnyModel, derive
from mb2fmu.pipeline.derivation.pipeline_results import DerivationResult, StageObserver
from mb2fmu.pipeline.derivation.right_hand_side import RightHandSide
from mb2fmu.pipeline.fmu_build.fmu_assembly import build
from mb2fmu.pipeline.run_and_report import report_pages
from mb2fmu.systems.splitting import (
    CutMechanismPart,
    CutMethod,
    MechanismCut,
    SplittingSettings,
    choose_mechanism_cut_method,
    cut_mechanism,
    make_cut_mechanism_parts,
    select_joints_to_cut,
)
from mb2fmu.systems.splitting.exchanged_part_forces import make_variable_identifier
from mb2fmu.systems.splitting.splitting_settings import choose_bushing_stiffness
from mb2fmu.systems.splitting.system_script_writing import SystemRunSettings, form_coupled_system_script

MAX_SYSTEM_TOLERANCE = 1e-11


@dataclass(frozen=True)
class ModelSplitResult:
    """A model cut into FMUs.

    Attributes:
        settings: The numbers of what it was cut by.
        cut: Where.
        parts: One per FMU.
        fmus: Their archives.
        system: The file that couples them.
    """

    settings: SplittingSettings
    cut: MechanismCut
    parts: tuple[CutMechanismPart, ...]
    fmus: tuple[Path, ...]
    system: Path


def split_model(
    model: AnyModel,
    at: Sequence[str],
    folder: Path | str,
    *,
    way: CutMethod | None = None,
    arguments: Mapping[str, Any] | None = None,
    settings: SplittingSettings | None = None,
    step: float = 0.001,
    observer: StageObserver | None = None,
) -> ModelSplitResult:
    """Cut a model into FMUs and write them with the file that couples them.

    Args:
        model: A model's file, if the whole model is to be the reference.
        at: Names of joints or points, of loads, or of constraints.
        folder: Where to write ``<Model>_<part>.fmu`` and ``system.py``.
        way: See :class:`~mb2fmu.systems.splitting.MechanismCut`; None: the usual one.
        arguments: Of the model file's function.
        settings: Numbers of filters, bushings and lines.
        step: Communication step in s of the system file.
        observer: Is notified of each stage.

    Raises:
        CouplingError: If the model cannot be cut so.
    """
    whole = derive(model, arguments=arguments, observer=observer)
    known = complete_split_settings(whole, at, way, settings or SplittingSettings(), step)
    made = cut_mechanism(whole.mechanism, at, way, known)
    finished = make_cut_mechanism_parts(made, known)
    files = {f"{part.definition.name}.fmu": _build_part_fmu(part, observer) for part in finished}
    experiment = whole.definition.experiment
    loop = made.kind == "joint" and made.method == "force"
    delay = known.delay if made.method == "line" else 0.0
    run = SystemRunSettings(
        experiment.stop, step, min(experiment.tolerance, MAX_SYSTEM_TOLERANCE), loop, delay, _list_power_bonds(made)
    )
    files["system.py"] = form_coupled_system_script(
        f"{whole.definition.name}Cut",
        f"{whole.definition.name}, cut at {', '.join(at)}",
        finished,
        _relative_model_path(whole, Path(folder)),
        arguments or {},
        run,
    ).encode()
    package.write_file_tree(InMemoryFileTree(files), Path(folder))
    fmus = tuple(Path(folder) / f"{part.definition.name}.fmu" for part in finished)
    return ModelSplitResult(known, made, finished, fmus, Path(folder) / "system.py")


def _build_part_fmu(part: CutMechanismPart, observer: StageObserver | None) -> bytes:
    """Build the FMU of a part, like ``pipeline.export``; nothing is written before all parts exist."""
    built = build(derive(part.definition, observer=observer), observer=observer)
    return package.make_fmu_archive(report_pages.add_description_page_to_fmu(built))


def complete_split_settings(
    whole: DerivationResult, at: Sequence[str], way: CutMethod | None, settings: SplittingSettings, step: float = 0.001
) -> SplittingSettings:
    """Return the settings with start values of the whole, and with choices for unspecified elements."""
    rates, starts = _compute_start_derivatives(whole)
    known = replace(settings, initial_accelerations=rates, state_starts=starts)
    method = way or choose_mechanism_cut_method(whole.mechanism, at)
    if method not in {"bushing", "line"}:
        return known
    period = known.delay if method == "line" else step
    known = choose_bushing_stiffness(known, whole.mechanism, _number_body_parts(whole, at), period, method)
    return replace(known, initial_reactions=_compute_joint_reactions(whole, at, known))


def _number_body_parts(whole: DerivationResult, at: Sequence[str]) -> list[int]:
    """Return the number of the part of each body, joints cut."""
    joints = select_joints_to_cut(whole.mechanism, at)
    cuts = [cut_mechanism(whole.mechanism, [name]).part_of_body for name in joints] or [
        cut_mechanism(whole.mechanism, at, "bushing").part_of_body
    ]
    numbers: dict[tuple[int, ...], int] = {}
    return [numbers.setdefault(sides, len(numbers)) for sides in zip(*cuts, strict=True)]


def _list_power_bonds(made: MechanismCut) -> tuple[tuple[str, str, str], ...]:
    """Return powers over opened joints, by the names of parts and outputs."""
    part = {output: made.part_names[made.part_of_state[state]] for output, state in made.output_states.items()}
    return tuple(
        (name, f"{part[f1]}.{f1} * {part[v1]}.{v1}", f"{part[f2]}.{f2} * {part[v2]}.{v2}")
        for name, f1, v1, f2, v2 in made.joint_powers
    )


def _compute_joint_reactions(
    whole: DerivationResult, at: Sequence[str], known: SplittingSettings
) -> dict[str, tuple[float, ...]]:
    """Compute the force and torque that each joint transmits to its outer side at the start, by joint."""
    from mb2fmu.pipeline.derivation.right_hand_side_of_derivation import right_hand_side

    found = {}
    for name in select_joints_to_cut(whole.mechanism, at):
        behind = make_cut_mechanism_parts(cut_mechanism(whole.mechanism, [name]), known)[1]
        f: RightHandSide = right_hand_side(derive(behind.definition))
        y = dict(zip(f.output_names, f.outputs(0.0, f.x0, f.r0).ravel(), strict=True))
        stem = make_variable_identifier(name)
        found[name] = tuple(
            float(y.get(f"{stem}_{kind}.{axis}", 0.0)) for kind in ("force", "torque") for axis in "xyz"
        )
    return found


def _compute_start_derivatives(whole: DerivationResult) -> tuple[dict[str, float], dict[str, float]]:
    """Return u' of the whole at its start, and its states, by symbol."""
    from mb2fmu.pipeline.derivation.right_hand_side_of_derivation import right_hand_side

    f: RightHandSide = right_hand_side(whole)
    symbols = whole.program.layout.states
    rates = dict(zip(symbols, f(0.0, f.x0, f.r0), strict=True))
    starts = dict(zip(symbols, map(float, f.x0), strict=True))
    return {u.name: float(rates[u.name]) for u in whole.mechanism.u if u.name in rates}, starts


def _relative_model_path(whole: DerivationResult, folder: Path) -> str:
    """Return the path of the model's file as seen from the folder."""
    source = whole.definition.source
    return "" if source is None else package.relative_posix_path(folder, source)
