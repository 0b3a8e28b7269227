"""Python-hosted FMUs in the tools that others use. Everything that loads binaries runs in a process of its own."""

import dataclasses
import json
import os
import subprocess
import sys
import uuid
from pathlib import Path

import fmpy
import pytest
from conformance.tools import driver, script, tool
from golden.handwritten import constrained_point, double_pendulum, pendulum_interface, pendulum_program
from lxml import etree
from representatives import marked

from mb2fmu.compiler.lowering import lower_equations_to_program
from mb2fmu.fmu import emit_python, emit_xml
from mb2fmu.fmu.interface import form_fmu_interface
from mb2fmu.fmu.interface.fmu_interface import FmuInterface, FmuSolverSettings
from mb2fmu.fmu.package import build_python_fmu, read_archive, write_fmu_archive

HERE = Path(__file__).parent
TIME_LIMIT = 120
MODELS = ("Pendulum", "PendulumFixed", "PendulumImplicit", "DoublePendulum", "ConstrainedPoint")
"""An FMU of each solver, one with an input, one with constraints."""
each_mechanism = pytest.mark.parametrize("model", marked(MODELS, repeating=MODELS[:4]))
"""A checker of descriptions, and an importer that makes steps, see no solver."""
largest = pytest.mark.parametrize(
    "model", marked(MODELS, repeating=set(MODELS) - {"PendulumImplicit", "ConstrainedPoint"})
)
"""What imports most."""


def built(program, interface, path):
    write_fmu_archive(
        build_python_fmu(
            emit_python.emit_python_fmu_sources(program, interface),
            emit_xml.emit_fmu_description_files(interface),
            interface,
        ),
        path,
    )
    return path


def lowered(system):
    definition, equations = system()
    program = lower_equations_to_program(equations)
    return program, form_fmu_interface(definition, equations, program)


@pytest.fixture(scope="module")
def units(tmp_path_factory):
    """Name → path of a unit."""
    folder = tmp_path_factory.mktemp("units")
    parts = {
        "Pendulum": (pendulum_program(), pendulum_interface()),
        "PendulumFixed": (
            pendulum_program(),
            pendulum_interface("PendulumFixed", solver=FmuSolverSettings("fixed", 1e-6, 1e-3)),
        ),
        "PendulumImplicit": (
            pendulum_program(),
            pendulum_interface("PendulumImplicit", solver=FmuSolverSettings("implicit", 1e-6)),
        ),
        "DoublePendulum": lowered(double_pendulum),
        "ConstrainedPoint": lowered(constrained_point),
    }
    assert tuple(parts) == MODELS
    return {name: built(*part, folder / f"{name}.fmu") for name, part in parts.items()}


@each_mechanism
def test_fmpy_finds_no_problem(units, model):
    assert tool(script("fmpy"), "validate", units[model]).strip() == "No problems found."


@each_mechanism
def test_fmutool_has_nothing_to_say(units, model):
    output = tool(script("fmutool"), "-input", units[model], "-check", "-summary")
    assert "This FMU seems to be compliant with FMI-2.0." in output
    assert "No semantic error against the FMI-2 standard." in output
    assert [line for line in output.splitlines() if not line.startswith("INFO")] == []


@pytest.mark.parametrize("model", MODELS)
def test_description_follows_the_schema(units, model):
    schema = etree.XMLSchema(etree.parse(Path(fmpy.__file__).parent / "schema" / "fmi2" / "fmi2ModelDescription.xsd"))
    schema.assertValid(etree.fromstring(read_archive(units[model])["modelDescription.xml"]))


@each_mechanism
def test_importers_agree(units, model):
    """Fmpy, ecos and libcosim read the same motion: the last digits are the round-off in their communication points."""
    outputs = [v.name for v in fmpy.read_model_description(units[model]).modelVariables if v.causality == "output"]
    program = (
        "import sys, json, fmpy; path, *names = sys.argv[1:]; "
        "result = fmpy.simulate_fmu(path, stop_time=1.0, output_interval=0.01, output=names); "
        "print(json.dumps(dict(zip(names, map(float, list(result[-1])[1:])))))"
    )
    first = json.loads(tool(sys.executable, "-c", program, units[model], *outputs).splitlines()[-1])
    second = json.loads(driver("ecos", units[model], 0.01, 100, *outputs).splitlines()[-1])
    lines = driver("cosim", units[model], 0.01, 100, *outputs).splitlines()
    third = json.loads(next(line for line in lines if line.startswith("{")))
    assert first == pytest.approx(second, rel=1e-9, abs=1e-9)
    assert first == pytest.approx(third, rel=1e-9, abs=1e-9)


def test_protocol(units):
    assert driver("protocol", units["Pendulum"]).endswith("ok\n")


@pytest.mark.parametrize("model", marked(MODELS[:3], repeating={"Pendulum", "PendulumFixed"}))
def test_rollback_and_serialization(units, model, tmp_path):
    file = tmp_path / "state"
    assert driver("rollback", units[model], file, "write").endswith("ok\n")
    assert driver("rollback", units[model], file, "read").endswith("ok\n")


def variant(number):
    """The pendulum with another start."""
    interface = pendulum_interface(f"Pendulum{number}")
    variables = tuple(
        dataclasses.replace(v, start=0.1 + 0.1 * number) if v.name == "q" else v for v in interface.variables
    )
    return dataclasses.replace(interface, variables=variables)


@pytest.mark.parametrize("number", [2, pytest.param(20, marks=pytest.mark.repeats)])
def test_different_fmus_in_one_process(number, tmp_path):
    paths = [built(pendulum_program(), variant(i), tmp_path / f"{i}.fmu") for i in range(number)]
    assert driver("many", *paths).endswith("ok\n")


@largest
def test_python_code_needs_nothing_but_numpy_in_a_folder_with_spaces(units, model, tmp_path):
    """Modules that the FMU imports, seen from a fresh interpreter that hides mb2fmu and SymPy."""
    path = tmp_path / "a folder with spaces" / "my unit.fmu"
    path.parent.mkdir()
    path.write_bytes(units[model].read_bytes())
    program = (
        "import sys; sys.modules['mb2fmu'] = sys.modules['sympy'] = sys.modules['scipy'] = None; "
        "import fmpy; print(len(fmpy.simulate_fmu(sys.argv[1], stop_time=0.1, output_interval=0.01)))"
    )
    assert tool(sys.executable, "-c", program, path).splitlines()[-1] == "11"


def test_binaries_and_documents(units):
    tree = read_archive(units["Pendulum"])
    assert [path for path in tree if path.startswith("binaries/")] == [
        "binaries/linux64/Pendulum.so",
        "binaries/win64/Pendulum.dll",
    ]
    text = tree["documentation/externalDependencies.txt"].decode()
    assert "Python 3.11 or later" in text
    assert "numpy" in text
    assert "MIT License" in tree["documentation/licenses/pythonfmu-LICENSE.txt"].decode()
    assert not [path for path in tree if "__pycache__" in path or path.endswith(".pyc")]


REBUILD = """
import sys
from pathlib import Path
sys.path[:0] = sys.argv[3:]
from conformance.test_pythonfmu import built, lowered
from conformance.tools import driver, script, tool
from golden.handwritten import double_pendulum
built(*lowered(double_pendulum), Path(sys.argv[1]) / f"{sys.argv[2]}.fmu")
"""


@pytest.mark.repeats  # by day of a native FMU, in unit/cli/test_cli; two builds are equal in fmu/package/test_pythonfmu
def test_same_bytes_whatever_the_folder_the_hash_seed_and_the_day(units, tmp_path):
    root = HERE.parents[1]
    place = tmp_path / "another place"
    place.mkdir()
    environment = os.environ | {
        "PYTHONHASHSEED": "4711",
        "TMPDIR": str(place),
        "TZ": "Asia/Tokyo",
        "USER": place.name,
        "HOME": str(place),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    command = [sys.executable, "-c", REBUILD, place, place.name, root, root / "tests"]
    subprocess.run(list(map(str, command)), timeout=TIME_LIMIT, check=True, env=environment, cwd=place)
    assert (place / f"{place.name}.fmu").read_bytes() == units["DoublePendulum"].read_bytes()


def test_nothing_of_this_machine_is_in_a_fmu(units):
    tree = read_archive(units["DoublePendulum"])
    own = [path for path in tree if not path.startswith(("binaries/", "resources/pythonfmu/"))]
    for path in own:
        for trace in (str(HERE.parents[1]), str(Path.home()), sys.prefix):
            assert trace.encode() not in tree[path], (path, trace)


def test_every_variable_has_its_reference_in_the_code(units):
    """Description and code agree on value references: each can be read (see also the protocol)."""
    interface: FmuInterface = lowered(double_pendulum)[1]
    module = next(
        path for path in read_archive(units["DoublePendulum"]) if path.endswith("_unit/unit.py") and "resources" in path
    )
    text = read_archive(units["DoublePendulum"])[module].decode()
    for variable in interface.variables:
        assert f"{variable.value_reference}: ({variable.source!r}, {variable.index}),  # {variable.name}\n" in text
    assert str(uuid.UUID(interface.token)) in text
