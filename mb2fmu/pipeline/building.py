"""From a program to a whole unit, in memory: the part of the pipeline behind ``pipeline.build``.

    Program → FmuInterface → FileTree (sources, description, binaries) → FileTree (core)

What can be compiled early is: the runtime and the motion are printed before the program is differentiated, and
compilers run meanwhile.
"""

from __future__ import annotations

from mb2fmu import derivatives
from mb2fmu.errors import EmitError, Fault
from mb2fmu.filetree import FileTree
from mb2fmu.pipeline.outcomes import Backend, Build, BuildOptions, Derivation, Observer, major_version
from mb2fmu.pipeline.stopwatch import Compiling, Stopwatch

BACKEND: Backend = "native"
"""What units are built with if nothing else is said."""


def build(derivation: Derivation, observer: Observer | None, options: BuildOptions) -> Build:
    """Builds a unit of a derivation, see ``pipeline.build``."""
    stage = Stopwatch(observer, derivation.timings)
    if options.get("backend", BACKEND) == "python":
        return _build_python(derivation, stage, options)
    return _build_native(derivation, stage, options, observer)


def _build_python(derivation: Derivation, stage: Stopwatch, options: BuildOptions) -> Build:
    from mb2fmu import analysis, interface, package
    from mb2fmu.emit import python, xml

    _refuse_native_options(options)
    with stage("describe"):
        target = interface.Target(fmi=major_version(options), backend="python", solver=options.get("solver"))
        definition = analysis.with_nominals(derivation.definition, derivation.equations, derivation.program)
        described = interface.describe(definition, derivation.equations, derivation.program, target)
    with stage("emit"):
        sources = python.emit(derivation.program, described)
        description = xml.emit(described)
    with stage("build"):
        core = package.build_pythonfmu(sources, description, described).joined(_looks(derivation)[0])
    return Build(derivation, described, sources, description, FileTree({}), core, stage.timings)


def _refuse_native_options(options: BuildOptions) -> None:
    """What a Python unit cannot be built with."""
    given = {
        "--platform": options.get("platforms", "host") != "host",
        "--compiler": options.get("compiler", "zig") != "zig",
        "--fast": options.get("fast", False),
    }
    faults = [
        Fault("has no meaning for a unit of Python", name, "leave it out")
        for name, is_given in given.items()
        if is_given
    ]
    if faults:
        raise EmitError("this unit cannot be built:", faults)


def _build_native(derivation: Derivation, stage: Stopwatch, options: BuildOptions, observer: Observer | None) -> Build:
    from mb2fmu import analysis, interface, package, toolchain
    from mb2fmu.emit import c, xml

    platforms = toolchain.parse(options.get("platforms", "host"))
    fmi, compiler, fast = major_version(options), options.get("compiler", "zig"), options.get("fast", False)
    with stage("describe"):
        target = interface.Target(fmi, "native", options.get("solver"), compiler, fast)
        definition = analysis.with_nominals(derivation.definition, derivation.equations, derivation.program)
        described = interface.describe(definition, derivation.equations, derivation.program, target)
    adjoint = described.capabilities.adjoint_derivatives
    order = toolchain.Order(described.model_identifier, compiler, fast)
    with toolchain.Compilation(order, platforms, Compiling(observer) if observer else None) as compilation:
        with stage("emit"):
            motion = c.emit_motion(derivation.program, described, adjoint=adjoint)
            compilation.begin(motion.sources)
        with stage("differentiate"):
            native = derivatives.with_derivatives(derivation.program, adjoint=adjoint)
        with stage("emit the derivatives"):
            sources = motion.sources.joined(c.emit_derivatives(native, described, motion))
            compilation.begin(sources)
            description = xml.emit(described, c.translation_units(sources))
        with stage("draw"):
            scene, diagram = _looks(derivation)
        with stage("compile"):
            binaries = compilation.finish(sources, 2 if fmi == "2" else 3)
    with stage("build"):
        core = package.build_native(sources, binaries, description, described, diagram=diagram, compiler=compiler)
        core = core.joined(scene)
    return Build(derivation, described, sources, description, binaries, core, stage.timings)


def _looks(derivation: Derivation) -> tuple[FileTree, str]:
    """What a unit carries so that it can be animated, and its picture: the model's own drawing, or the mechanism."""
    from mb2fmu import animation
    from mb2fmu.pipeline import motions

    scene, diagram = motions.scene_of(derivation.mechanism, derivation.equations), derivation.definition.diagram
    if scene is None:
        return FileTree({}), diagram
    if "<svg" not in diagram:
        diagram = animation.still(animation.draw_start(scene), background="#ffffff").decode()
    return FileTree({animation.FILE: scene.to_json()}), diagram
