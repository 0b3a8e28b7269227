"""From a program to a whole FMU in memory: in C (described, emitted, compiled) or hosted by Python.

Program → FmuInterface → InMemoryFileTree (sources, description, binaries) → InMemoryFileTree (core)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Unpack, get_args

from mb2fmu.compiler import derivatives
from mb2fmu.errors import EmitError, Fault, InterfaceError
from mb2fmu.fmu.in_memory_file_tree import InMemoryFileTree
from mb2fmu.pipeline.derivation.event_requirements import needs_event_handling
from mb2fmu.pipeline.derivation.formulation_and_build_options import (
    Backend,
    BuildOptions,
    FmiVersion,
    refuse_unknown_options,
)
from mb2fmu.pipeline.derivation.pipeline_results import DerivationResult, FmuBuildResult, StageObserver
from mb2fmu.pipeline.derivation.stage_stopwatch import PlatformCompileObserver, StageStopwatch
from mb2fmu.pipeline.fmu_build.model_scene import make_model_scene_and_picture

if TYPE_CHECKING:
    from mb2fmu.fmu.interface import FmuInterface, FmuTarget
    from mb2fmu.fmu.toolchain import Compiler

DEFAULT_BACKEND: Backend = "native"
"""What FMUs are built with if nothing else is said."""


def build(
    derivation: DerivationResult, *, observer: StageObserver | None = None, **options: Unpack[BuildOptions]
) -> FmuBuildResult:
    """Build an FMU in memory: Program → FmuInterface → sources and description → binaries → core FMU.

    Args:
        derivation: What to build an FMU of.
        observer: Is notified of each stage, and of each platform that is compiled for.
        options: See :class:`BuildOptions`.

    Raises:
        InterfaceError: If the backend does not make such FMUs.
        PlatformError: If a platform is not known.
        ToolError: If a compiler, or pythonfmu, fails.

    Example:
        >>> import mb2fmu
        >>> built = mb2fmu.build(mb2fmu.derive("simple_pendulum"))
        >>> "modelDescription.xml" in built.core
        True
    """
    refuse_unknown_options(options, BuildOptions)
    stage = StageStopwatch(observer, derivation.timings)
    if options.get("backend", DEFAULT_BACKEND) == "python":
        return _build_python(derivation, stage, options)
    return _build_native(derivation, stage, options, observer)


def _build_native(
    derivation: DerivationResult, stage: StageStopwatch, options: BuildOptions, observer: StageObserver | None
) -> FmuBuildResult:
    """Describe, emit and compile the FMU in C; compilers run while derivatives are formed and pictures drawn."""
    from mb2fmu.fmu import emit_c, emit_xml, interface, package, toolchain

    program = derivation.program_with_modes
    native_platforms, component = toolchain.separate_wasm_platform(options.get("platforms", "host"))
    platforms = toolchain.parse_platforms(native_platforms) if native_platforms or not component else ()
    if component:
        _refuse_component_options(options)
    fmi, compiler, fast = fmi_major_version(options), choose_native_compiler(options), options.get("fast", False)
    with stage("describe"):
        described = _describe_fmu_variables(
            derivation, interface.FmuTarget(fmi, "native", options.get("solver"), compiler, fast)
        )
    adjoint = described.capabilities.adjoint_derivatives
    order = toolchain.CompilationSettings(described.model_identifier, compiler, fast)
    with toolchain.FmuCompilation(
        order, platforms, PlatformCompileObserver(observer) if observer else None
    ) as compilation:
        with stage("emit"):
            motion = emit_c.emit_equation_sources(program, described, adjoint=adjoint)
            compilation.begin(motion.sources)
        with stage("differentiate"):
            native = derivatives.add_fmu_derivatives(program, adjoint=adjoint)
        with stage("emit the derivatives"):
            sources = motion.sources.joined(emit_c.emit_derivative_sources(native, described, motion))
            compilation.begin(sources)
            description = emit_xml.emit_fmu_description_files(described, emit_c.list_translation_units(sources))
        with stage("draw"):
            scene_and_picture = make_model_scene_and_picture(derivation)
            drawn = package.make_fmu_pictures(described, scene_and_picture.diagram)
        with stage("compile"):
            binaries = compilation.finish(sources, 2 if fmi == "2" else 3)
        if component:
            with stage(f"compile for {toolchain.WASM_COMPONENT_FOLDER}"):
                binaries = binaries.joined(_build_wasm_component(sources, described.model_identifier))
            description = description.joined(emit_c.emit_wasm_component_manifest())
    with stage("build"):
        core = package.assemble_native_fmu(sources, binaries, description, described, drawn=drawn, compiler=compiler)
        core = core.joined(scene_and_picture.files)
    return FmuBuildResult(
        derivation, described, sources, description, binaries, scene_and_picture.scene, core, stage.timings,
        printed=motion.printed,
    )  # fmt: skip


def _describe_fmu_variables(derivation: DerivationResult, target: FmuTarget) -> FmuInterface:
    """Return the variables of an FMU, with nominal values; native FMUs have the discrete memory of modes, too."""
    from mb2fmu.fmu import interface

    definition = derivation.add_nominal_values()
    program = derivation.program_with_modes if target.backend == "native" else derivation.program
    return interface.form_fmu_interface(definition, derivation.equations, program, target)


def choose_native_compiler(options: BuildOptions) -> Compiler:
    """Return the compiler of a native FMU: the requested one, else zig, else the system's if that alone exists."""
    from mb2fmu.fmu.toolchain import choose_default_compiler

    return options.get("compiler") or choose_default_compiler()


def fmi_major_version(options: BuildOptions) -> Literal["2", "3"]:
    """Return the version of the standard that an FMU is built for, from any of its spellings.

    Raises:
        InterfaceError: It is none that FMUs are built for.
    """
    requested = options.get("fmi", "2")
    for known in get_args(FmiVersion):
        if type(requested) is type(known) and requested == known:
            return "3" if str(known).startswith("3") else "2"
    fault = Fault(f"there are FMUs of FMI 2.0 and 3.0, not of {requested!r}", "fmi", 'use "2" or "3"')
    raise InterfaceError("no such FMU can be built:", [fault])


def _refuse_component_options(options: BuildOptions) -> None:
    """Refuse options that a component of WebAssembly cannot have.

    Raises:
        EmitError: With every option that does not go together with it.
        ToolError: If what wraps it is not installed.
    """
    from mb2fmu.fmu import toolchain

    name, faults = f"--platform {toolchain.WASM_COMPONENT_FOLDER}", []
    if fmi_major_version(options) == "2":
        faults.append(Fault("is defined for FMI 3 only", name, "add --fmi 3"))
    if options.get("compiler") == "cc":
        faults.append(Fault("the system's compiler does not make it", name, "leave --compiler out: zig does"))
    elif choose_native_compiler(options) != "zig":
        faults.append(Fault("needs the compiler zig", name, "pip install 'mb2fmu[wasm]'"))
    if faults:
        raise EmitError("this FMU cannot be built:", faults)
    toolchain.find_wasm_tools_command()


def _build_wasm_component(sources: InMemoryFileTree, identifier: str) -> InMemoryFileTree:
    """Return the FMU as a component of WebAssembly: ``binaries/wasm32-wasip2/<identifier>.wasm``."""
    from mb2fmu.fmu import emit_c, toolchain

    tree, units = emit_c.emit_wasm_component(sources)
    content = toolchain.compile_wasm_component(tree, units, emit_c.WIT_WORLD)
    return InMemoryFileTree({f"binaries/{toolchain.WASM_COMPONENT_FOLDER}/{identifier}.wasm": content})


def _build_python(derivation: DerivationResult, stage: StageStopwatch, options: BuildOptions) -> FmuBuildResult:
    """Describe, emit and pack the FMU that runs in Python; refuse models with events."""
    from mb2fmu.fmu import emit_python, emit_xml, interface, package

    _refuse_native_options(options)
    if needs_event_handling(derivation):
        what = f"{derivation.definition.name} has events or friction that sticks, which FMUs of Python do not have"
        raise EmitError("this FMU cannot be built:", [Fault(what, "events", "take the native backend")])
    with stage("describe"):
        described = _describe_fmu_variables(
            derivation, interface.FmuTarget(fmi_major_version(options), "python", options.get("solver"))
        )
    with stage("emit"):
        sources = emit_python.emit_python_fmu_sources(derivation.program, described)
        description = emit_xml.emit_fmu_description_files(described)
    with stage("build"):
        scene_and_picture = make_model_scene_and_picture(derivation)
        core = package.build_python_fmu(sources, description, described).joined(scene_and_picture.files)
    return FmuBuildResult(
        derivation, described, sources, description, InMemoryFileTree({}), scene_and_picture.scene, core, stage.timings
    )


def _refuse_native_options(options: BuildOptions) -> None:
    """Refuse options that a Python FMU cannot have."""
    given = {
        "--platform": options.get("platforms", "host") != "host",
        "--compiler": options.get("compiler") not in (None, "zig"),
        "--fast": options.get("fast", False),
    }
    faults = [
        Fault("has no meaning for an FMU of Python", name, "leave it out")
        for name, is_given in given.items()
        if is_given
    ]
    if faults:
        raise EmitError("this FMU cannot be built:", faults)
