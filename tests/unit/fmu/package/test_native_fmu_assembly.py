"""Native FMUs put together: complete, reproducible, clean in the checkers that see the archive."""

import hashlib
import re
import subprocess
import sysconfig
from pathlib import Path

import pytest
from fmpy.validation import validate_fmu
from golden.handwritten import native_interface

from mb2fmu.errors import PackageError
from mb2fmu.fmu import emit_xml
from mb2fmu.fmu.in_memory_file_tree import InMemoryFileTree
from mb2fmu.fmu.package import (
    EmbeddedTrajectoryTable,
    add_validation_report,
    assemble_native_fmu,
    form_embedded_reference_files,
    hash_file_tree,
    read_archive,
    remove_validation_report,
    write_fmu_archive,
)

VERSIONS = pytest.mark.parametrize("fmi", ["2", "3"])
PLATFORM = {"2": "linux64", "3": "x86_64-linux"}
SOURCES = InMemoryFileTree({"sources/unit.c": b"int x;\n", "sources/fmi3Functions.h": b"/* header */\n"})


def parts(fmi):
    interface = native_interface(fmi)
    binaries = InMemoryFileTree({f"binaries/{PLATFORM[fmi]}/{interface.model_identifier}.so": b"\x7fELF"})
    return SOURCES, binaries, emit_xml.emit_fmu_description_files(interface, ("unit.c",)), interface


def references(interface):
    table = EmbeddedTrajectoryTable(["q", "tip.x"], [0.0, 0.1], [[0.5, 0.2], [0.4, 0.1]])
    return form_embedded_reference_files(interface, table, origin="by hand")


@VERSIONS
def test_the_fmu_is_complete(fmi):
    core = assemble_native_fmu(*parts(fmi))
    pictures = {"2": {"model.png"}, "3": {"documentation/diagram.png", "documentation/diagram.svg"}}[fmi]
    assert set(core) == {
        f"binaries/{PLATFORM[fmi]}/Pendulum.so",
        "documentation/licenses/fmi-BSD-2-Clause.txt",
        "documentation/licenses/license.txt",
        "documentation/licenses/mb2fmu-BSD-3-Clause.txt",
        "documentation/licenses/zig-MIT.txt",
        "modelDescription.xml",
        "sources/buildDescription.xml",
        "sources/fmi3Functions.h",
        "sources/unit.c",
        "terminalsAndIcons/icon.png",
        "terminalsAndIcons/icon.svg",
        "terminalsAndIcons/terminalsAndIcons.xml",
        *pictures,
    }
    assert core == assemble_native_fmu(*parts(fmi))


@pytest.mark.repeats  # by day they are asked in whole validations, in end_to_end/test_native_units and test_models
@pytest.mark.parametrize("fmi", ["3", "2"])
def test_checkers_have_nothing_to_say(fmi, tmp_path):
    page = b"<!DOCTYPE html><title>x</title>"
    unit = add_validation_report(assemble_native_fmu(*parts(fmi)), page, references(native_interface(fmi)))
    path = tmp_path / "Pendulum.fmu"
    write_fmu_archive(unit, path)
    assert read_archive(path) == unit
    assert validate_fmu(str(path)) == []
    tool = Path(sysconfig.get_path("scripts")) / "fmutool"
    done = subprocess.run(
        [tool, "-input", path, "-check", "-summary"], capture_output=True, text=True, timeout=60, check=True
    )
    said = done.stdout + done.stderr
    assert f"seems to be compliant with FMI-{fmi}.0" in said
    assert f"No semantic error against the FMI-{fmi} standard" in said
    assert not re.search("WARNING|ERROR|CRITICAL", said)
    assert "org.fmi-standard.fmi-ls-ref" in said


def test_the_proof_comes_off_again():
    core = assemble_native_fmu(*parts("3"))
    unit = add_validation_report(core, b"page", references(native_interface("3")))
    assert unit != core
    assert remove_validation_report(unit) == core
    assert remove_validation_report(core) == core
    with pytest.raises(PackageError, match="outside of"):
        add_validation_report(core, b"page", InMemoryFileTree({"resources/x": b""}))


def test_the_digest_is_that_of_the_hashes_of_all_files():
    tree = InMemoryFileTree({"b": b"2", "a/c": b"1"})
    lines = "".join(
        f"{hashlib.sha256(content).hexdigest()}  {path}\n" for path, content in (("a/c", b"1"), ("b", b"2"))
    )
    assert hash_file_tree(tree) == hashlib.sha256(lines.encode()).hexdigest()
    assert hash_file_tree(tree) != hash_file_tree(InMemoryFileTree({"b": b"1", "a/c": b"2"}))


def test_our_licence_is_the_projects():
    project = Path(__file__).parents[4] / "LICENSE"
    core = assemble_native_fmu(*parts("2"))
    assert core["documentation/licenses/mb2fmu-BSD-3-Clause.txt"] == project.read_bytes()


def test_licences_are_of_what_is_in_the_fmu():
    sources, binaries, description, interface = parts("3")
    without = assemble_native_fmu(
        InMemoryFileTree({"sources/unit.c": b""}), binaries, description, interface, compiler="cc"
    )
    assert {path for path in without if "licenses" in path} == {
        "documentation/licenses/license.txt",
        "documentation/licenses/mb2fmu-BSD-3-Clause.txt",
    }
    windows = InMemoryFileTree({"binaries/x86_64-windows/Pendulum.dll": b"MZ"})
    core = assemble_native_fmu(sources, windows, description, interface)
    text = core["documentation/licenses/license.txt"].decode()
    named = set(re.findall(r"[\w-]+\.txt", text))
    present = {path.split("/")[-1] for path in core if "licenses" in path}
    assert named == present - {"license.txt"}
    assert named >= {"zig-MIT.txt", "fmi-BSD-2-Clause.txt"}


EMPTY = InMemoryFileTree({})


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"sources": InMemoryFileTree({"unit.c": b""})}, "unit.c: does not stand in sources/"),
        ({"binaries": InMemoryFileTree({"binaries/linux64/other.so": b""})}, "is not binaries/<platform>"),
        ({"binaries": InMemoryFileTree({"Pendulum.so": b""})}, "is not binaries/<platform>"),
        ({"description": EMPTY}, "modelDescription.xml: is missing"),
        ({"sources": EMPTY, "binaries": EMPTY}, "neither sources nor binaries"),
        ({"interface": native_interface("3", token="00000000-0000-0000-0000-000000000000")}, "is of another FMU"),
    ],
)
def test_what_does_not_belong_together_is_refused(wrong, message):
    right = dict(zip(("sources", "binaries", "description", "interface"), parts("3"), strict=True))
    with pytest.raises(PackageError) as caught:
        assemble_native_fmu(**right | wrong)
    assert message in str(caught.value)
