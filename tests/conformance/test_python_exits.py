"""Python-hosted FMUs at the end of the importer's process: nothing is freed twice."""

import os
import re
import shutil
import subprocess
import sys

import pytest
from conformance.test_pythonfmu import lowered
from conformance.tools import DRIVERS, driver
from golden.handwritten import double_pendulum, pendulum_interface, pendulum_program

from mb2fmu.fmu import emit_python, emit_xml
from mb2fmu.fmu.package import build_python_fmu, write_fmu_archive

EXITS = 6
EXITS_WATCHED = 1


@pytest.fixture(scope="module")
def paths(tmp_path_factory):
    folder = tmp_path_factory.mktemp("exits")
    parts = {"Pendulum": (pendulum_program(), pendulum_interface()), "DoublePendulum": lowered(double_pendulum)}
    found = []
    for name, (program, interface) in parts.items():
        unit = build_python_fmu(
            emit_python.emit_python_fmu_sources(program, interface),
            emit_xml.emit_fmu_description_files(interface),
            interface,
        )
        write_fmu_archive(unit, folder / f"{name}.fmu")
        found.append(folder / f"{name}.fmu")
    return found


@pytest.mark.slow
def test_exits_are_clean(paths):
    """Freed memory is overwritten and stays in no cache of a thread: the allocator sees what is freed twice."""
    strict = {"GLIBC_TUNABLES": "glibc.malloc.tcache_count=0", "MALLOC_PERTURB_": "165", "MALLOC_CHECK_": "3"}
    assert driver("ending", EXITS, *paths, **strict).endswith("ok\n")


def faults(exits, *paths):
    """Blocks of valgrind's report that name an FMU's binary: what it reads, writes or frees wrongly."""
    command = ["valgrind", sys.executable, DRIVERS / "ending.py", exits, *paths]
    done = subprocess.run(
        list(map(str, command)),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env=os.environ | {"PYTHONMALLOC": "malloc"},
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "ok\n"
    blocks = re.split(r"^==\d+== \n", done.stderr, flags=re.MULTILINE)
    kinds = re.compile(r"== (Invalid (read|write|free)|Mismatched)")
    return [block for block in blocks if "/binaries/linux64/" in block and kinds.search(block)]


@pytest.mark.repeats  # exits are clean: see above
@pytest.mark.slow
@pytest.mark.skipif(shutil.which("valgrind") is None, reason="valgrind is not installed")
def test_valgrind_finds_nothing_at_the_end(paths):
    assert faults(EXITS_WATCHED, *paths) == []


@pytest.mark.repeats  # that the test above can fail
@pytest.mark.skipif(shutil.which("valgrind") is None, reason="valgrind is not installed")
def test_valgrind_finds_what_was_mended(monkeypatch, tmp_path):
    """The same of an FMU with pythonfmu's binary as it is."""
    monkeypatch.setattr("mb2fmu.fmu.package.python_fmu.patch_interpreter_finalization", lambda library: library)
    interface = pendulum_interface()
    unit = build_python_fmu(
        emit_python.emit_python_fmu_sources(pendulum_program(), interface),
        emit_xml.emit_fmu_description_files(interface),
        interface,
    )
    write_fmu_archive(unit, tmp_path / "unit.fmu")
    found = faults(1, tmp_path / "unit.fmu")
    assert found
    assert all("finalizePythonInterpreter" in block for block in found)
