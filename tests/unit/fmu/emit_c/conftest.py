"""Programs compiled into folders of their own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from compiled_c import CompiledModel, compile_program, missing

from mb2fmu.compiler.program.scalar_program import ScalarProgram

Compile = Callable[..., CompiledModel]


@pytest.fixture(scope="session")
def compile_model(tmp_path_factory: pytest.TempPathFactory) -> Compile:
    """A function that compiles a program, in as many ways as wanted."""

    def compiled(program: ScalarProgram, compiler: str = "gcc", part: int = 3_000) -> CompiledModel:
        reason = missing(compiler)
        if reason:
            pytest.skip(reason)
        folder: Path = tmp_path_factory.mktemp(compiler)
        return compile_program(program, compiler, folder, part)

    return compiled
