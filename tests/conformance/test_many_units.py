"""Many FMUs of ours in one process, loaded, or linked into one program from their sources."""

from __future__ import annotations

import dataclasses
import shutil
import subprocess
from pathlib import Path

import pytest
from conformance.tools import driver
from kept_compilations import compile_files

from mb2fmu import model
from mb2fmu.compiler import evaluation, lowering
from mb2fmu.compiler.derivatives.derivative_entry_points import ProgramWithDerivatives, add_fmu_derivatives
from mb2fmu.fmu import emit_xml, interface, package
from mb2fmu.fmu.emit_c import emit_fmu_sources, is_motion_equation_translation_unit, list_translation_units
from mb2fmu.fmu.in_memory_file_tree import InMemoryFileTree
from mb2fmu.fmu.interface.fmu_interface import FmuInterface, FmuTarget
from mb2fmu.fmu.toolchain import host_platform
from mb2fmu.mechanics import formulations, mechanism

ROOT = Path(__file__).parents[2]
NUMBER = 3
COMPILER = ("cc", "-std=c99", "-O0", "-fPIC", "-fvisibility=hidden", "-ffp-contract=off", "-Wall", "-Wextra", "-Werror")
pytestmark = pytest.mark.skipif(not shutil.which("cc"), reason="the machine has no C compiler of its own")


@pytest.fixture(scope="module")
def pendulum():
    """A function: number, FMI version → a pendulum of another name that starts elsewhere, and its program."""
    definition = model.check_model(model.load(ROOT / "models" / "simple_pendulum.py"))
    equations = formulations.formulate(mechanism.read_mechanism(definition))
    program = lowering.lower_equations_to_program(equations)
    native = add_fmu_derivatives(program)
    plain = {
        fmi: interface.form_fmu_interface(definition, equations, native.program, FmuTarget(fmi, "native"))
        for fmi in ("2", "3")
    }

    def made(number: int, fmi: str) -> tuple[ProgramWithDerivatives, FmuInterface]:
        name, described = f"Pendulum{number}", plain[fmi]
        variables = tuple(
            dataclasses.replace(v, start=0.1 + 0.1 * number) if v.name == "theta" else v for v in described.variables
        )
        token = f"{number:08x}{described.token[8:]}"
        renamed = dataclasses.replace(
            described, model_name=name, model_identifier=name, variables=variables, token=token
        )
        return native, renamed

    return made


def compiled(sources: InMemoryFileTree, folder: Path, *flags: str) -> None:
    """Translation units of an FMU by the system's compiler, in its folder."""
    for path in sources:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(sources[path])
    compile_files(folder / "sources", [*COMPILER, *flags])


@pytest.mark.parametrize("loading", ["local", "global"])
def test_many_fmus_answer_for_themselves(loading, crowd):
    assert driver("crowd", loading, *crowd).endswith("ok\n")


@pytest.fixture(scope="module")
def crowd(pendulum, tmp_path_factory):
    """Archives of different FMUs, in turns of both versions."""
    folder, paths = tmp_path_factory.mktemp("crowd"), []
    for number in range(NUMBER):
        native, described = pendulum(number, "23"[number % 2])
        sources, name = emit_fmu_sources(native, described), described.model_identifier
        place = folder / name
        compiled(
            sources,
            place,
            "-shared",
            "-DDISABLE_PREFIX",
            *list_translation_units(sources),
            "-o",
            f"{name}.so",
            "-lm",
        )
        library = f"binaries/{host_platform().folder(2 + number % 2)}/{name}.so"
        tree = emit_xml.emit_fmu_description_files(described).joined(
            InMemoryFileTree({library: (place / "sources" / f"{name}.so").read_bytes()})
        )
        paths.append(folder / f"{name}.fmu")
        package.write_fmu_archive(tree, paths[-1])
    return paths


CALLER = """
#include <stddef.h>
#include "fmi%(fmi)sFunctions.h"
double NAME(first_derivative)(const char *token);
double NAME(first_derivative)(const char *token)
{
%(body)s
}
"""
BODIES = {
    "2": """    static fmi2CallbackFunctions callbacks;
    double x[2] = {0.0, 0.0}, slopes[2] = {0.0, 0.0};
    fmi2EventInfo info;
    fmi2Component unit = fmi2Instantiate("unit", fmi2ModelExchange, token, "", &callbacks, fmi2False, fmi2False);
    if (unit == NULL || fmi2SetupExperiment(unit, fmi2False, 0.0, 0.0, fmi2False, 0.0) != fmi2OK
        || fmi2EnterInitializationMode(unit) != fmi2OK || fmi2ExitInitializationMode(unit) != fmi2OK
        || fmi2NewDiscreteStates(unit, &info) != fmi2OK || fmi2EnterContinuousTimeMode(unit) != fmi2OK
        || fmi2GetContinuousStates(unit, x, 2) != fmi2OK || fmi2GetDerivatives(unit, slopes, 2) != fmi2OK) {
        return -1.0;
    }
    fmi2FreeInstance(unit);
    return x[0] + 1e3 * slopes[1];""",
    "3": """    double x[2] = {0.0, 0.0}, slopes[2] = {0.0, 0.0};
    fmi3Instance unit = fmi3InstantiateModelExchange("unit", token, NULL, fmi3False, fmi3False, NULL, NULL);
    if (unit == NULL || fmi3EnterInitializationMode(unit, fmi3False, 0.0, 0.0, fmi3False, 0.0) != fmi3OK
        || fmi3ExitInitializationMode(unit) != fmi3OK || fmi3EnterContinuousTimeMode(unit) != fmi3OK
        || fmi3GetContinuousStates(unit, x, 2) != fmi3OK
        || fmi3GetContinuousStateDerivatives(unit, slopes, 2) != fmi3OK) {
        return -1.0;
    }
    fmi3FreeInstance(unit);
    return x[0] + 1e3 * slopes[1];""",
}


def test_fmus_of_source_code_link_into_one_program(pendulum, tmp_path):
    """One of each version, with both variants of their equations: everything visible has the FMU's name in front."""
    objects, calls, declared = [], [], []
    for number, fmi in enumerate("23"):
        native, described = pendulum(number, fmi)
        sources, name = emit_fmu_sources(native, described), described.model_identifier
        caller = CALLER % {"fmi": fmi, "body": BODIES[fmi]}
        sources = sources.joined(InMemoryFileTree({"sources/caller.c": caller.encode()}))
        place = tmp_path / name
        several = ("-DMB2FMU_WITH_AVX2",) if host_platform().processor == "x86_64" else ()
        prefix = (f"-DFMI{fmi}_FUNCTION_PREFIX={name}_", f"-DNAME(x)={name}_##x")
        equations = [file for file in list_translation_units(sources) if is_motion_equation_translation_unit(file)]
        compiled(sources, place, *several, "-c", *list_translation_units(sources))
        compiled(sources, place, *prefix, "-c", "caller.c")
        for file in equations if several else ():
            compiled(sources, place, "-DMB2FMU_AVX2", "-mavx2", "-c", file, "-o", f"avx2_{file[:-2]}.o")
        objects += sorted((place / "sources").glob("*.o"))
        declared.append(f"double {name}_first_derivative(const char *token);")
        token = f"{{{described.token}}}"
        calls.append(f'printf("%.17g\\n", {name}_first_derivative("{token}"));')
    main = "\n".join(["#include <stdio.h>", *declared, "int main(void)", "{", *calls, "return 0;", "}", ""])
    (tmp_path / "main.c").write_text(main)
    command = [*COMPILER, "main.c", *map(str, objects), "-lm", "-o", "main"]
    compile_files(tmp_path, command)
    program = [str(tmp_path / "main")]
    said = subprocess.run(program, capture_output=True, text=True, timeout=60, check=True).stdout.split()
    found = [float(line) for line in said]
    # Each begins where it begins, and falls as its angle says.
    evaluate = evaluation.make_evaluator(pendulum(0, "2")[0].program, "rhs")
    definition = model.check_model(model.load(ROOT / "models" / "simple_pendulum.py"))
    p = [float(item.value) for item in definition.parameters if not item.calculated]
    for number, value in enumerate(found):
        x = [0.1 + 0.1 * number, float(definition.speeds[0].start)]
        assert value == pytest.approx(x[0] + 1e3 * evaluate(0.0, x, (), p)[1], rel=1e-12)


@pytest.mark.parametrize("fmi", [pytest.param("2", marks=pytest.mark.repeats), "3"])
def test_one_fmu_twice_with_prefixes_of_the_builder(pendulum, tmp_path, fmi):
    """The same sources with two prefixes, and once without any: nothing in them has the same name outside."""
    native, described = pendulum(1, fmi)
    caller = CALLER % {"fmi": fmi, "body": BODIES[fmi]}
    sources = emit_fmu_sources(native, described).joined(InMemoryFileTree({"sources/caller.c": caller.encode()}))
    several = ("-DMB2FMU_WITH_AVX2",) if host_platform().processor == "x86_64" else ()
    equations = [file for file in list_translation_units(sources) if is_motion_equation_translation_unit(file)]
    ways = {
        "left_": (f"-DFMI{fmi}_FUNCTION_PREFIX=left_",),
        "right_": (f"-DFMI{fmi}_OVERRIDE_FUNCTION_PREFIX", f"-DFMI{fmi}_ACTUAL_FUNCTION_PREFIX=right_"),
        "": (f"-DFMI{fmi}_OVERRIDE_FUNCTION_PREFIX",),
    }
    objects, calls = [], []
    for prefix, flags in ways.items():
        place = tmp_path / f"unit_{prefix}"
        compiled(sources, place, *several, *flags, "-c", *list_translation_units(sources))
        compiled(sources, place, *flags, f"-DNAME(x)={prefix}##x" if prefix else "-DNAME(x)=x", "-c", "caller.c")
        for file in equations if several else ():
            compiled(sources, place, *flags, "-DMB2FMU_AVX2", "-mavx2", "-c", file, "-o", f"avx2_{file[:-2]}.o")
        objects += sorted((place / "sources").glob("*.o"))
        calls.append(f"{prefix}first_derivative")
        listed = subprocess.run(
            ["nm", "--defined-only", "--extern-only", *sorted((place / "sources").glob("*.o"))],
            capture_output=True, text=True, timeout=60, check=True,
        ).stdout  # fmt: skip
        names = [line.split()[-1] for line in listed.splitlines() if len(line.split()) == 3]
        assert names
        assert all(name.startswith((prefix or "fmi", "Pendulum1_", "first_derivative")) for name in names)
        assert any(name == f"{prefix}fmi{fmi}GetVersion" for name in names)
    declared = [f"double {call}(const char *token);" for call in calls]
    said = [f'printf("%.17g\\n", {call}("{{{described.token}}}"));' for call in calls]
    main = "\n".join(["#include <stdio.h>", *declared, "int main(void)", "{", *said, "return 0;", "}", ""])
    (tmp_path / "main.c").write_text(main)
    command = [*COMPILER, "main.c", *map(str, objects), "-lm", "-o", "main"]
    compile_files(tmp_path, command)
    found = subprocess.run([str(tmp_path / "main")], capture_output=True, text=True, timeout=60, check=True).stdout
    assert len(set(found.split())) == 1
    assert float(found.split()[0]) != -1.0
