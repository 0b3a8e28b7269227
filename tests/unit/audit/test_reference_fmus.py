"""The standard's own Reference FMUs, built from their public source: no error but those that are faults of theirs.

Their source is not part of this project: ``MB2FMU_REFERENCE_FMUS`` names a folder with it.
"""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

import ball
import pytest
from kept_compilations import compile_files

from mb2fmu.audit import audit

SOURCE = Path(os.environ.get("MB2FMU_REFERENCE_FMUS", "nowhere"))
PLATFORM = {2: "linux64", 3: "x86_64-linux"}
TRUE = {
    "BouncingBall": {"value.variability", "structure.dependencies"},
    "Roberts": {
        "archive.sources",
        "flags.true",
        "structure.dependencies",
        "steps.last",
        "steps.intermediate",
        "value.time",
    },
    "Stair": {"life.ends"},
    "StateSpace": {"archive.sources", "value.structural", "life.order"},
    "VanDerPol": {"partials.directional"},
}
"""Rules that they do break; docs/explanation/audit_findings.md has the standard's sentence for each."""

UNITS = [("BouncingBall", 2), ("Dahlquist", 2), ("Feedthrough", 2), ("Resource", 2), ("Stair", 2), ("VanDerPol", 2),
         ("BouncingBall", 3), ("Clocks", 3), ("Dahlquist", 3), ("Feedthrough", 3), ("Resource", 3), ("Roberts", 3),
         ("Stair", 3), ("StateSpace", 3), ("VanDerPol", 3)]  # fmt: skip

pytestmark = [
    pytest.mark.repeats,
    pytest.mark.skipif(not (SOURCE / "src").is_dir(), reason="MB2FMU_REFERENCE_FMUS names no folder with their source"),
]


@cache
def members(name: str, version: int) -> dict[str, bytes]:
    """The archive as their build makes it, but for its documentation."""
    places = {"config.h": name, "model.c": name, "model.h": "include", "cosimulation.h": "include",
              f"fmi{version}Functions.c": "src", "cosimulation.c": "src"}  # fmt: skip
    found = {f"sources/{file}": (SOURCE / place / file).read_bytes() for file, place in places.items()}
    found["modelDescription.xml"] = (SOURCE / name / f"FMI{version}.xml").read_bytes()
    if version == 3:
        found["sources/buildDescription.xml"] = (SOURCE / name / "buildDescription.xml").read_bytes()
    else:
        whole = "".join(f'#include "{each}"\n' for each in ("fmi2Functions.c", "model.c", "cosimulation.c"))
        found["sources/all.c"] = f"#define FMI_VERSION 2\n{whole}".encode()
    if name == "Resource":
        found["resources/y.txt"] = (SOURCE / name / "y.txt").read_bytes()
    folder = ball.scratch() / f"reference-{name}-{version}"
    folder.mkdir()
    sources = [
        SOURCE / name / "model.c",
        SOURCE / "src" / f"fmi{version}Functions.c",
        SOURCE / "src" / "cosimulation.c",
    ]
    command = [*ball.compiler(), "-shared", "-fPIC", "-O2", "-w", "-fvisibility=hidden", f"-DFMI_VERSION={version}",
               "-DDISABLE_PREFIX", f"-I{SOURCE / 'include'}", f"-I{SOURCE / name}", *map(str, sources),
               "-o", "unit.so", "-lm"]  # fmt: skip
    compile_files(folder, command)
    found[f"binaries/{PLATFORM[version]}/{name}.so"] = (folder / "unit.so").read_bytes()
    return found


@pytest.mark.parametrize(("name", "version"), UNITS, ids=str)
def test_only_true_faults_are_errors(name: str, version: int, tmp_path: Path) -> None:
    found = audit(ball.pack(members(name, version), tmp_path / f"{name}.fmu"), valgrind=True)
    assert found.faults == ()
    errors = [each for each in found.findings if each.severity == "error"]
    assert {each.rule for each in errors} <= TRUE.get(name, set()), [str(each) for each in errors]
