"""From a program to a whole unit, in memory.

Program → FmuInterface → FileTree (sources, description, binaries) → FileTree (core)
"""

from __future__ import annotations

from typing import Unpack

from mb2fmu.pipeline.derivation.pipeline_options import Backend, BuildOptions
from mb2fmu.pipeline.derivation.pipeline_results import Build, Derivation, Observer
from mb2fmu.pipeline.derivation.stopwatch import Stopwatch
from mb2fmu.pipeline.fmu_build.native_build import build_native
from mb2fmu.pipeline.fmu_build.python_build import build_python

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
        return build_python(derivation, stage, options)
    return build_native(derivation, stage, options, observer)
