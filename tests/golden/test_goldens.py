"""What the backends print for a program written by hand, against stored files.

``MB2FMU_UPDATE_GOLDENS=1 pytest tests/golden`` writes the files afresh; look at the difference before committing it.
"""

import difflib
import os
from dataclasses import replace
from pathlib import Path

import pytest
from golden.handwritten import native_interface, pendulum_interface, pendulum_program

from mb2fmu.fmu import emit_python, emit_xml
from mb2fmu.fmu.interface.fmu_interface import FmuSolverSettings

STORED = Path(__file__).parent / "stored"
GENERATED = ("entries.py", "unit.py")


def printed(solver):
    """Generated files by short name; the token stays in them: it follows from the interface."""
    interface = pendulum_interface(f"Pendulum{solver.kind.title()}", solver=solver)
    sources = emit_python.emit_python_fmu_sources(pendulum_program(), interface)
    files = {path.split("/")[-1]: sources[path] for path in sources if path.endswith(GENERATED)}
    (script,) = (path for path in sources if "/" not in path)
    files["script.py"] = sources[script]
    return {**files, "modelDescription.xml": emit_xml.emit_fmu_description_files(interface)["modelDescription.xml"]}


@pytest.mark.parametrize("kind", ["explicit", "implicit"])
def test_printed_files_are_as_stored(kind):
    compare(STORED / kind, printed(FmuSolverSettings(kind, 1e-6)))


@pytest.mark.parametrize("fmi", ["2", "3"])
def test_description_files_of_native_fmus_are_as_stored(fmi):
    # The first solvers only: that the enumeration has all of them is tested beside its making, row by row, so that a
    # new one changes no stored text.
    types = native_interface(fmi).types
    first = tuple(replace(item, items=item.items[:5]) for item in types)
    tree = emit_xml.emit_fmu_description_files(native_interface(fmi, types=first), ("unit.c",))
    compare(STORED / f"native{fmi}", {path.split("/")[-1]: tree[path] for path in tree})


def compare(folder, files):
    """What is printed against what is stored, file by file."""
    if os.environ.get("MB2FMU_UPDATE_GOLDENS"):
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            (folder / f"{name}.txt").write_bytes(content)
    assert {f"{name}.txt" for name in files} == {file.name for file in folder.iterdir()}
    for name, content in files.items():
        stored = (folder / f"{name}.txt").read_text(encoding="utf-8").splitlines()
        difference = list(difflib.unified_diff(stored, content.decode().splitlines(), "stored", "printed", lineterm=""))
        assert not difference, "\n".join([name, *difference])
