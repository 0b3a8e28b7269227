"""FMUs of the project's models, built once per test run."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType

from mb2fmu import Model, pipeline
from mb2fmu.fmu.in_memory_file_tree import InMemoryFileTree
from mb2fmu.fmu.toolchain import TargetPlatform, compile_fmu_binaries

MODELS = Path(__file__).parents[3] / "models"


@dataclass(frozen=True, slots=True)
class Unit:
    """An FMU's sources and what a host must know of it."""

    fmi: int
    identifier: str
    token: str
    sources: InMemoryFileTree
    references: MappingProxyType[str, int]
    states: tuple[str, ...]

    def library(self, platform: TargetPlatform, folder: Path, **options) -> Path:
        """Its library for a platform, in a folder."""
        tree = compile_fmu_binaries(self.sources, self.identifier, [platform], fmi=self.fmi, **options)
        (path,) = tree
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(tree[path])
        return file


@cache
def unit(model: str, fmi: int) -> Unit:
    """The FMU of a model of the project, without its binaries."""
    return described(MODELS / f"{model}.py", fmi)


def described(model: Path | Model, fmi: int) -> Unit:
    """Any model's FMU, without its binaries."""
    built = pipeline.build(pipeline.derive(model), backend="native", fmi=str(fmi))
    interface = built.interface
    states = [each.name for each in sorted(interface.variables, key=lambda v: v.index) if each.source == "state"]
    references = {each.name: each.value_reference for each in interface.variables}
    return Unit(
        fmi,
        interface.model_identifier,
        f"{{{interface.token}}}",
        built.sources,
        MappingProxyType(references),
        tuple(states),
    )
