"""Are the C sources in an archive those of its binary? They are compiled, and both are run: the same bits, or not.

Only FMUs that were made here are recompiled: their sources say nothing of options, which are always the same.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Literal, cast

import numpy as np

from mb2fmu.audit.external_checkers import ExternalCheckerFinding
from mb2fmu.errors import ToolError
from mb2fmu.fmu import toolchain
from mb2fmu.fmu.in_memory_file_tree import InMemoryFileTree
from mb2fmu.fmu.package import write_fmu_archive
from mb2fmu.temporary_files import make_temporary_folder
from mb2fmu.validation.reference.experiment_values import ExperimentValues
from mb2fmu.validation.runs.fmu_description_for_runs import FmuDescription
from mb2fmu.validation.runs.fmu_run import simulate_fmu

CHECKER = "sources"
_COMPARED_STEPS = 20
_MAIN_SOURCE, _CONFIGURATION = "sources/unit.c", "sources/model_config.h"


def compare_recompiled_sources(
    fmu: Path, tree: InMemoryFileTree, description: FmuDescription, experiment: ExperimentValues
) -> tuple[ExternalCheckerFinding, ...]:
    """Return one finding; none for an FMU without C sources.

    Args:
        fmu: The archive.
        tree: Its members.
        description: The FMU's own.
        experiment: The default experiment, of which the first steps are made.
    """
    if not any(path.startswith("sources/") and path.endswith(".c") for path in tree):
        return ()
    if _MAIN_SOURCE not in tree or _CONFIGURATION not in tree:
        return (_form_untried_finding("made by another tool"),)
    try:
        return (_compare_with_sources(fmu, tree, description, experiment),)
    except ToolError as error:
        return (_form_untried_finding(f"they cannot be compiled here: {' '.join(str(error).split())[:120]}"),)


def _form_untried_finding(reason: str) -> ExternalCheckerFinding:
    """Return the note on sources that were not tried."""
    return ExternalCheckerFinding(CHECKER, "note", f"not tried: the sources in the archive ({reason})")


def _compare_with_sources(
    fmu: Path, tree: InMemoryFileTree, description: FmuDescription, experiment: ExperimentValues
) -> ExternalCheckerFinding:
    """Return whether the FMU of the archive's sources moves as the archive's binary, to the bit."""
    kind, identifier = next(iter(description.identifiers.items()))
    version = cast("Literal[2, 3]", description.version)
    steps = min(_COMPARED_STEPS, len(experiment.inputs))
    first = replace(experiment, time=experiment.time[: steps + 1], inputs=experiment.inputs[:steps])
    variables = [name for name, variable in description.variables.items() if variable.is_double]
    sources = InMemoryFileTree({path: tree[path] for path in tree if path.startswith("sources/")})
    expected = simulate_fmu(fmu, first, variables, kind=kind).values
    host_platforms = [toolchain.host_platform()]
    compiler = toolchain.choose_default_compiler()
    for fast in (False, True):
        built_binaries = toolchain.compile_fmu_binaries(
            sources, identifier, host_platforms, fmi=version, compiler=compiler, fast=fast
        )
        if all(path in tree and tree[path] == built_binaries[path] for path in built_binaries):
            break
        with make_temporary_folder("run the FMU of the sources") as folder:
            path = folder / fmu.name
            write_fmu_archive(InMemoryFileTree({**tree.files, **built_binaries.files}), path)
            values = simulate_fmu(path, first, variables, kind=kind).values
        if np.array_equal(values, expected, equal_nan=True):
            break
    else:
        row, column = np.argwhere(values != expected)[0]
        difference_text = f"{variables[column]} at t = {first.time[row]:.6g} s is {values[row, column]!r}"
        message = (
            f"the sources in the archive are not those of its binary: compiled, {difference_text}; the binary has "
        )
        return ExternalCheckerFinding(CHECKER, "error", f"{message}{expected[row, column]!r}")
    return ExternalCheckerFinding(
        CHECKER, "note", "the sources in the archive, compiled, move to the bit as its binary"
    )
