"""The unit that runs in Python: described, emitted and packed by pythonfmu."""

from __future__ import annotations

from mb2fmu.errors import EmitError, Fault
from mb2fmu.fmu.file_tree import FileTree
from mb2fmu.pipeline.derivation.event_support import needs_events
from mb2fmu.pipeline.derivation.pipeline_options import BuildOptions, major_version
from mb2fmu.pipeline.derivation.pipeline_results import Build, Derivation
from mb2fmu.pipeline.derivation.stopwatch import Stopwatch
from mb2fmu.pipeline.fmu_build.model_scene import appearance


def build_python(derivation: Derivation, stage: Stopwatch, options: BuildOptions) -> Build:
    """Describe, emit and pack the unit that runs in Python; refuse models with events."""
    from mb2fmu import analysis
    from mb2fmu.fmu import emit_python, emit_xml, interface, package

    _refuse_native_options(options)
    if needs_events(derivation):
        what = f"{derivation.definition.name} has events or friction that sticks, which units of Python do not have"
        raise EmitError("this unit cannot be built:", [Fault(what, "events", "take the native backend")])
    with stage("describe"):
        target = interface.Target(fmi=major_version(options), backend="python", solver=options.get("solver"))
        definition = analysis.with_nominals(derivation.definition, derivation.equations, derivation.program)
        described = interface.describe(definition, derivation.equations, derivation.program, target)
    with stage("emit"):
        sources = emit_python.emit(derivation.program, described)
        description = emit_xml.emit(described)
    with stage("build"):
        looks = appearance(derivation)
        core = package.build_pythonfmu(sources, description, described).joined(looks.files)
    return Build(derivation, described, sources, description, FileTree({}), looks.scene, core, stage.timings)


def _refuse_native_options(options: BuildOptions) -> None:
    """Refuse options that a Python unit cannot have."""
    given = {
        "--platform": options.get("platforms", "host") != "host",
        "--compiler": options.get("compiler") not in (None, "zig"),
        "--fast": options.get("fast", False),
    }
    faults = [
        Fault("has no meaning for a unit of Python", name, "leave it out")
        for name, is_given in given.items()
        if is_given
    ]
    if faults:
        raise EmitError("this unit cannot be built:", faults)
