"""What is said of a unit before and after it has run: its pages, and the proof that is packed with it."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from mb2fmu.outcomes import Build, Timing, Validated

if TYPE_CHECKING:
    from pathlib import Path

    from mb2fmu.equations.motion import EquationsOfMotion
    from mb2fmu.filetree import FileTree
    from mb2fmu.interface.description import FmuInterface


def description(built: Build) -> bytes:
    """What is to be said of a unit that nobody has run."""
    from mb2fmu.report import Provenance, describe

    definition, native = built.derivation.definition, built.interface.target.backend == "native"
    source = definition.source
    provenance = Provenance({"model file": _sha256(source)} if source else {})
    licences = "licenses/license.txt" if native else ""
    return describe(definition, built.derivation.equations, built.interface, provenance, licences=licences)


def proved(built: Build, validated: Validated, page: bytes) -> FileTree:
    """The core unit with its report; native units carry the reference too."""
    from mb2fmu import package

    if built.interface.target.backend == "python":
        return package.with_page(built.core, page)
    reference = validated.result.reference
    trajectory, run = reference.trajectory, reference.conditions
    table = package.Table(trajectory.names, trajectory.time.tolist(), trajectory.values.tolist())
    stimuli = package.Table(run.input_names, run.time[:-1].tolist(), run.inputs.tolist()) if run.input_names else None
    origin = f"equations of motion by {reference.numeric.formulation}, integrated apart from the unit"
    files = package.reference_files(built.interface, table, stimuli=stimuli, origin=origin)
    return package.with_proof(built.core, page, files)


def report(
    validated: Validated,
    equations: EquationsOfMotion,
    interface: FmuInterface | None,
    *,
    timings: tuple[Timing, ...],
) -> bytes:
    """The page of a unit that has been judged; without ``timings`` the same bytes each time."""
    from mb2fmu.report import Provenance, render

    spent: dict[str, float] = {}
    for timing in timings:
        spent[timing.stage] = spent.get(timing.stage, 0.0) + timing.seconds
    if spent:
        spent |= {f"validate: {activity}": seconds for activity, seconds in validated.result.timings.items()}
    source = validated.definition.source
    command = f"mb2fmu run {source.name}" if source and interface else ""
    provenance = Provenance(
        hashes={"model file": _sha256(source)} if source else {}, commands=(command,) if command else (), timings=spent
    )
    return render(validated.definition, equations, interface, validated.result, provenance)


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
