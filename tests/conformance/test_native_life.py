"""Real native FMUs through what importers do with instances, and their sources through other builders."""

from __future__ import annotations

import dataclasses
import json
import shutil
from functools import cache, partial
from pathlib import Path

import pytest
from conformance.tools import driver, script, tool

from mb2fmu import pipeline
from mb2fmu.errors import ToolError
from mb2fmu.fmu import package
from mb2fmu.fmu.in_memory_file_tree import InMemoryFileTree

ROOT = Path(__file__).parents[2]
night = partial(pytest.param, marks=pytest.mark.repeats)
LIVES = [
    ("double_pendulum", "2"),
    night("double_pendulum", "3"),
    night("muscle_arm", "2"),
    night("muscle_arm", "3"),
    night("rolling_disc", "2"),
    night("rolling_disc", "3"),
]
needs_compiler = pytest.mark.skipif(not shutil.which("cc"), reason="the machine has no C compiler of its own")


@pytest.fixture(scope="module")
def units(tmp_path_factory):
    """A function: model, FMI version, options → the FMU's path; each is built once."""
    folder = tmp_path_factory.mktemp("units")
    derived, built = {}, {}

    def unit(model, fmi, **options):
        key = (model, fmi, *sorted(options.items()))
        if key not in built:
            if model not in derived:
                derived[model] = pipeline.derive(ROOT / "models" / f"{model}.py")
            built[key] = folder / f"{len(built)}.fmu"
            package.write_fmu_archive(pipeline.build(derived[model], fmi=fmi, **options).core, built[key])
        return built[key]

    return unit


@pytest.mark.parametrize(("model", "fmi"), LIVES)
def test_an_instance_s_life(units, model, fmi, tmp_path):
    """Reset, states, steps in parts, refusals, many instances, eight threads; a state goes to another process."""
    file = tmp_path / "state"
    assert driver("life", units(model, fmi), file, "write").endswith("ok\n")
    assert driver("life", units(model, fmi), file, "read").endswith("ok\n")


@cache
def ends(unit):
    """Where the FMU's Co-Simulation ends, as hexadecimal digits: all bits."""
    program = (
        "import sys, json, fmpy; r = fmpy.simulate_fmu(sys.argv[1], fmi_type='CoSimulation', stop_time=1.0, "
        "output_interval=0.01); print(json.dumps([float(x).hex() for x in list(r[-1])]))"
    )
    return json.loads(tool(script("python"), "-c", program, unit).splitlines()[-1])


def without_binaries(unit, path):
    tree = package.read_archive(unit)
    package.write_fmu_archive(
        InMemoryFileTree({name: tree[name] for name in tree if not name.startswith("binaries/")}), path
    )
    return path


@needs_compiler
@pytest.mark.parametrize(
    ("fmi", "builder"), [night("2", "fmpy"), night("3", "fmpy"), night("2", "fmutool"), ("3", "fmutool")]
)
def test_sources_compile_elsewhere_and_move_alike(units, fmi, builder, tmp_path):
    """From what the archive says of its sources: the same bits as the FMU's own binary, which is optimized.

    By day the auditor has FMI 2's list of them (``archive.sources``), and the test below its bits.
    """
    if builder == "fmpy" and not shutil.which("cmake"):
        pytest.skip("fmpy compiles with cmake, which is not installed")
    unit = units("double_pendulum", fmi)
    source = without_binaries(unit, tmp_path / "source.fmu")
    if builder == "fmpy":
        result = source
        tool(script("fmpy"), "compile", "--configuration", "Debug", source)
    else:
        result = tmp_path / "fmutool.fmu"
        options = ["-compile-sources", "-compile-options=-O0"]
        tool(script("fmutool"), "-input", source, *options, "-output", result)
    assert ends(result) == ends(unit)


@needs_compiler
def test_the_system_s_compiler_gives_the_same_bits(units):
    assert ends(units("double_pendulum", "2", compiler="cc")) == ends(units("double_pendulum", "2"))


def test_fast_differs_by_round_off_only(units):
    plain, fast = (
        [float.fromhex(x) for x in ends(units("double_pendulum", "2", **options))] for options in ({}, {"fast": True})
    )
    assert fast == pytest.approx(plain, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("solver", ["explicit", night("rk4"), night("euler"), "implicit"])
def test_the_solver_chosen_at_export_is_the_fmu_s(units, solver):
    path = units("double_pendulum", "3", solver=solver)
    number = {"explicit": 1, "rk4": 2, "euler": 3, "implicit": 4}[solver]
    text = package.read_archive(path)["modelDescription.xml"].decode()
    (start,) = [line for line in text.splitlines() if "<Enumeration " in line or 'name="solver"' in line][:1]
    assert 'name="solver"' in text
    assert f'start="{number}"' in text[text.index('name="solver"') :].split("/>")[0].split("</")[0], start


def test_a_compiler_that_fails_is_a_failed_tool(monkeypatch):
    """With its command and all it said."""
    from mb2fmu.fmu import emit_c

    emit = emit_c.emit_equation_sources

    def broken(program, interface, **options):
        motion = emit(program, interface, **options)
        sources = InMemoryFileTree({**motion.sources.files, "sources/unit.c": b"this is no C\n"})
        return dataclasses.replace(motion, sources=sources)

    monkeypatch.setattr(emit_c, "emit_equation_sources", broken)
    derivation = pipeline.derive(ROOT / "models" / "simple_pendulum.py")
    with pytest.raises(ToolError) as caught:
        pipeline.build(derivation)
    assert caught.value.exit_code == 3
    assert "exit code" in str(caught.value)
    assert "unit.c" in str(caught.value)
