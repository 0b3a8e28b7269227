"""From a program to a whole unit, in memory.

    Program → FmuInterface → FileTree (sources, description, binaries) → FileTree (core)

What can be compiled early is: the runtime and the motion are printed before the program is differentiated, and
compilers run meanwhile.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Unpack

from mb2fmu import derivatives
from mb2fmu.errors import EmitError, Fault
from mb2fmu.filetree import FileTree
from mb2fmu.pipeline.eventful import needs_events, with_modes
from mb2fmu.pipeline.options import Backend, BuildOptions, compiler_of, major_version
from mb2fmu.pipeline.outcomes import Build, Derivation, Observer
from mb2fmu.pipeline.stopwatch import Compiling, Stopwatch

if TYPE_CHECKING:
    from mb2fmu.animation import Scene

BACKEND: Backend = "native"
"""What units are built with if nothing else is said."""


def build(derivation: Derivation, *, observer: Observer | None = None, **options: Unpack[BuildOptions]) -> Build:
    """Build a unit in memory: Program → FmuInterface → sources and description → binaries → core unit.

    Args:
        derivation: What to build a unit of.
        observer: Is told of each stage, and of each platform that is compiled for.
        options: See :class:`BuildOptions`.

    Raises:
        InterfaceError: If the backend does not make such units.
        PlatformError: If a platform is not known.
        ToolError: If a compiler, or pythonfmu, fails.
    """
    stage = Stopwatch(observer, derivation.timings)
    if options.get("backend", BACKEND) == "python":
        return _build_python(derivation, stage, options)
    return _build_native(derivation, stage, options, observer)


def _build_python(derivation: Derivation, stage: Stopwatch, options: BuildOptions) -> Build:
    """Describe, emit and pack the unit that runs in Python; refuse models with events."""
    from mb2fmu import analysis, interface, package
    from mb2fmu.emit import python, xml

    _refuse_native_options(options)
    if needs_events(derivation):
        what = f"{derivation.definition.name} has events or friction that sticks, which units of Python do not have"
        raise EmitError("this unit cannot be built:", [Fault(what, "events", "take the native backend")])
    with stage("describe"):
        target = interface.Target(fmi=major_version(options), backend="python", solver=options.get("solver"))
        definition = analysis.with_nominals(derivation.definition, derivation.equations, derivation.program)
        described = interface.describe(definition, derivation.equations, derivation.program, target)
    with stage("emit"):
        sources = python.emit(derivation.program, described)
        description = xml.emit(described)
    with stage("build"):
        looks = _looks(derivation)
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


def _build_native(derivation: Derivation, stage: Stopwatch, options: BuildOptions, observer: Observer | None) -> Build:
    """Describe, emit and compile the unit in C; compilers run while derivatives are formed and pictures drawn."""
    from mb2fmu import analysis, interface, package, toolchain
    from mb2fmu.emit import c, xml

    native_platforms, component = toolchain.split_component(options.get("platforms", "host"))
    platforms = toolchain.parse(native_platforms) if native_platforms or not component else ()
    if component:
        _refuse_component(options)
    fmi, compiler, fast = major_version(options), compiler_of(options), options.get("fast", False)
    with stage("describe"):
        target = interface.Target(fmi, "native", options.get("solver"), compiler, fast)
        definition = analysis.with_nominals(derivation.definition, derivation.equations, derivation.program)
        program = with_modes(derivation)
        described = interface.describe(definition, derivation.equations, program, target)
    adjoint = described.capabilities.adjoint_derivatives
    order = toolchain.Order(described.model_identifier, compiler, fast)
    with toolchain.Compilation(order, platforms, Compiling(observer) if observer else None) as compilation:
        with stage("emit"):
            motion = c.emit_motion(program, described, adjoint=adjoint)
            compilation.begin(motion.sources)
        with stage("differentiate"):
            native = derivatives.with_derivatives(program, adjoint=adjoint)
        with stage("emit the derivatives"):
            sources = motion.sources.joined(c.emit_derivatives(native, described, motion))
            compilation.begin(sources)
            description = xml.emit(described, c.translation_units(sources))
        with stage("draw"):
            looks = _looks(derivation)
            drawn = package.pictures(described, looks.diagram)
        with stage("compile"):
            binaries = compilation.finish(sources, 2 if fmi == "2" else 3)
        if component:
            with stage(f"compile for {toolchain.COMPONENT}"):
                binaries = binaries.joined(_component(sources, described.model_identifier))
            description = description.joined(c.component_manifest())
    with stage("build"):
        core = package.build_native(sources, binaries, description, described, drawn=drawn, compiler=compiler)
        core = core.joined(looks.files)
    return Build(derivation, described, sources, description, binaries, looks.scene, core, stage.timings)


def _refuse_component(options: BuildOptions) -> None:
    """Refuse options that a component of WebAssembly cannot have.

    Raises:
        EmitError: With every option that does not go together with it.
        ToolError: If what wraps it is not installed.
    """
    from mb2fmu import toolchain

    name, faults = f"--platform {toolchain.COMPONENT}", []
    if major_version(options) == "2":
        faults.append(Fault("is defined for FMI 3 only", name, "add --fmi 3"))
    if options.get("compiler") == "cc":
        faults.append(Fault("the system's compiler does not make it", name, "leave --compiler out: zig does"))
    elif compiler_of(options) != "zig":
        faults.append(Fault("needs the compiler zig", name, "pip install 'mb2fmu[wasm]'"))
    if faults:
        raise EmitError("this unit cannot be built:", faults)
    toolchain.wasm_tools()


def _component(sources: FileTree, identifier: str) -> FileTree:
    """Return the unit as a component of WebAssembly: ``binaries/wasm32-wasip2/<identifier>.wasm``."""
    from mb2fmu import toolchain
    from mb2fmu.emit import c

    tree, units = c.emit_component(sources)
    content = toolchain.compile_component(tree, units, c.WORLD)
    return FileTree({f"binaries/{toolchain.COMPONENT}/{identifier}.wasm": content})


class _Looks(NamedTuple):
    """Appearance of a mechanism: its scene, data for animation, and its picture as SVG."""

    scene: Scene | None
    files: FileTree
    diagram: str


def _looks(derivation: Derivation) -> _Looks:
    """Describe the scene; the picture is the model's own drawing, or else the mechanism at its start."""
    from mb2fmu import animation
    from mb2fmu.pipeline import animating

    scene, diagram = animating.scene_of(derivation.mechanism, derivation.equations), derivation.definition.diagram
    if scene is None:
        return _Looks(None, FileTree({}), diagram)
    if "<svg" not in diagram:
        diagram = animation.still(animation.draw_start(scene), background="#ffffff", faces=animation.SMALL).decode()
    return _Looks(scene, FileTree({animation.FILE: scene.to_json()}), diagram)
