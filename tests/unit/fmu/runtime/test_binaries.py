"""What compilers say of the runtime, and what a binary shows to others: all FMI functions and nothing else."""

import ctypes as c
import re
import shutil
import subprocess

import pytest
from native.building import HEADERS, RUNTIME, build, compilers
from native.fmi import CS, ME, OK, Unit, load

FMI = pytest.mark.parametrize("fmi", [2, 3])
COMPILER = pytest.mark.parametrize("compiler", list(compilers()))
ONE_BY_DAY = [pytest.param(each, marks=pytest.mark.repeats if i else ()) for i, each in enumerate(compilers())]
TOOLS = pytest.mark.skipif(not (shutil.which("nm") and shutil.which("readelf")), reason="binutils are not installed")


def optimized(fmi, compiler):
    """With all the warnings that this compiler has and that mean something."""
    more = "-Wcast-qual -Wpointer-arith -Wwrite-strings -Wformat=2 -Wundef -Wvla"
    gcc = "-Wlogical-op -Wduplicated-cond -Wnull-dereference" if compiler == "gcc" else ""
    return build(fmi, "-O2", *f"{more} {gcc}".split(), compiler=compiler)


def declared(fmi):
    """The functions that the standard's header declares."""
    text = (HEADERS / f"fmi{fmi}Functions.h").read_text()
    return set(re.findall(rf"FMI{fmi}_Export\s+fmi{fmi}\w+TYPE\s+(fmi{fmi}\w+);", text))


@FMI
@COMPILER
def test_warnings_are_errors_and_there_are_none(fmi, compiler):
    optimized(fmi, compiler)


@FMI
@pytest.mark.parametrize("compiler", ONE_BY_DAY)
def test_a_fmu_of_nothing_but_time(fmi, compiler):
    for kind in (ME, CS):
        unit = Unit(load(build(fmi, "-O2", compiler=compiler, model="bare")), fmi, kind).instantiate().start()
        if kind == CS:
            assert unit.step(0.0, 0.5) == OK
            assert unit.value("time") == 0.5
        else:
            assert unit.call("GetContinuousStates", None, c.c_size_t(0)) == OK
        assert unit.restore(unit.saved()) == OK
        assert unit.directional([], ["time"], [1.0])[0] == OK
        assert unit.call("Terminate") == OK
        unit.free()


@TOOLS
@FMI
@COMPILER
def test_exports_are_the_functions_of_the_standard(fmi, compiler):
    library = str(optimized(fmi, compiler))
    shown = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True, text=True, check=True).stdout
    assert {line.split()[-1] for line in shown.splitlines()} == declared(fmi)
    assert len(declared(fmi)) == {2: 44, 3: 75}[fmi]


@TOOLS
@FMI
@COMPILER
def test_no_function_is_looked_for_elsewhere_but_those_of_libc_and_libm(fmi, compiler):
    library = str(optimized(fmi, compiler))
    moves = subprocess.run(["readelf", "-rW", library], capture_output=True, text=True, check=True).stdout
    assert not re.search(r"\bfmi\d", moves)
    parts = subprocess.run(["readelf", "-dW", library], capture_output=True, text=True, check=True).stdout
    assert set(re.findall(r"NEEDED.*\[(.*)\]", parts)) <= {"libc.so.6", "libm.so.6"}


def test_functions_are_short_and_lines_too():
    shell = re.findall(r'#include "(\w+\.c)"', (RUNTIME / "shell.c").read_text())
    assert len(shell) > 15
    for path in [RUNTIME / name for name in shell]:
        text = path.read_text()
        assert max(map(len, text.splitlines())) <= 120, path.name
        assert len(text.splitlines()) < 500, path.name
        for body in re.findall(r"^\{\n(.*?)^\}", text, re.MULTILINE | re.DOTALL):
            assert body.count("\n") < 60, (path.name, body[:200])
