"""Files for other masters: schema-valid, the same bytes again, and run by those masters with the known numbers."""

from __future__ import annotations

import csv
import io
import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from lxml import etree
from representatives import by_night

from mb2fmu.cli import commands
from mb2fmu.cli.system_command import _print_system_result
from mb2fmu.fmu import package
from mb2fmu.fmu.in_memory_file_tree import InMemoryFileTree
from mb2fmu.pipeline.system_runs.coupled_system_run import run_coupled_system
from mb2fmu.systems import CoupledSystem, WiredSystem, read_fmu_component, wire_system
from mb2fmu.systems.block_diagram_layout import place_block_diagram_boxes
from mb2fmu.systems.exports import foreign_masters
from mb2fmu.systems.exports.fmpy_system_script import form_fmpy_script
from mb2fmu.systems.exports.foreign_masters import run_foreign_masters
from mb2fmu.systems.exports.osp_files import OSP_STRUCTURE_FILE, form_osp_files
from mb2fmu.systems.port_and_bond_records import ComponentPort, PortLink, SystemWiring
from mb2fmu.systems.ssp.ssp_archive import (
    SSP_STRUCTURE_FILE,
    SSP_VERSIONS,
    SspVersion,
    find_ssp_schema_faults,
    form_ssp_files,
)
from mb2fmu.systems.system_block_diagram import draw_system_block_diagram

Units = dict[str, dict[str, Path]]
HELD = 1.01993416
"""x1(1) of held inputs at 1 ms, one FMU after another, every output of new inputs."""
FMPY_SSP = 1.06143743
"""What FMPy's SSP simulation gives: it passes outputs on that were read of old inputs, and begins with zeros."""


def two_masses(units: dict[str, Path]) -> CoupledSystem:
    system = CoupledSystem("TwoMasses")
    system.component("left", units["left"], values={"m": (1000.0, "g")})
    system.component("right", units["right"])
    system.connect("left.x", "right.s")
    system.connect("right.force", "left.F")
    system.experiment(stop=1.0, step=0.001, tolerance=1e-11, order=0)
    return system


@pytest.fixture(scope="session")
def joined(mass_units: Units) -> WiredSystem:
    system = two_masses(mass_units["2"])
    return wire_system(system, [read_fmu_component(each.name, each.source) for each in system.components])


@pytest.fixture(scope="session")
def written(joined: WiredSystem, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("written")
    package.write_file_tree(
        InMemoryFileTree({"TwoMasses.ssp": package.make_fmu_archive(form_ssp_files(joined))}), folder
    )
    package.write_file_tree(form_osp_files(joined).move_under("TwoMasses"), folder)
    (folder / "TwoMasses_fmpy.py").write_text(form_fmpy_script(joined, "TwoMasses/"))
    return folder


def foreign(script: str, source: Path) -> float:
    command = [sys.executable, "-P", str(Path(foreign_masters.__file__).with_name(script)), str(source), "0.001", "1.0"]
    done = subprocess.run([*command, "left.x"], capture_output=True, text=True, timeout=120, check=True)
    (line,) = [each for each in done.stdout.splitlines() if each.startswith("{")]
    return float(json.loads(line)["left.x"])


def test_the_structure_follows_the_schema_and_says_everything(joined: WiredSystem) -> None:
    files = form_ssp_files(joined)
    assert list(find_ssp_schema_faults(SSP_STRUCTURE_FILE, files[SSP_STRUCTURE_FILE])) == []
    root = etree.fromstring(files[SSP_STRUCTURE_FILE])
    connections = root.findall(".//{*}Connection")
    assert [(c.get("startConnector"), c.get("endConnector")) for c in connections] == [("x", "s"), ("force", "F")]
    assert root.find(".//{*}FixedStepMaster").get("stepSize") == "0.001"
    assert b'value="1.0" unit="kg"' in files["resources/left.ssv"]


def test_a_system_has_only_parts_that_omsimulator_reads(joined: WiredSystem) -> None:
    """Its importer (System.cpp, importFromSSD) ends at any other one, as at SystemGeometry."""
    read = {"ParameterBindings", "ElementGeometry", "Connections", "Connectors", "Elements", "Annotations"}
    root = etree.fromstring(form_ssp_files(joined)[SSP_STRUCTURE_FILE])
    assert {etree.QName(part).localname for part in root.find("{*}System")} <= read


@pytest.mark.parametrize("version", SSP_VERSIONS)
def test_a_component_without_connectors_is_written(mass_units: Units, version: SspVersion) -> None:
    """It has none that are doubles: by the schema a list of connectors is not empty."""
    system = CoupledSystem("Alone")
    system.component("left", mass_units["2"]["left"])
    system.experiment(stop=1.0, step=0.1)
    bare = replace(read_fmu_component("left", mass_units["2"]["left"]), variables={}, terminals={})
    text = form_ssp_files(wire_system(system, [bare]), version)["SystemStructure.ssd"].decode()
    assert 'name="left"' in text
    assert "Connectors" not in text


def test_files_say_where_an_old_value_would_be_read(joined: WiredSystem) -> None:
    said = "right.force depends on right.s at the same moment"
    connections = etree.fromstring(form_ssp_files(joined)[SSP_STRUCTURE_FILE]).findall(".//{*}Connection")
    assert [said in c.get("description", "") for c in connections] == [False, True]
    assert form_osp_files(joined)[OSP_STRUCTURE_FILE].decode().count(said) == 1


def test_a_broken_structure_is_noticed(joined: WiredSystem) -> None:
    content = form_ssp_files(joined)[SSP_STRUCTURE_FILE].replace(b'kind="input"', b'kind="entrance"')
    assert list(find_ssp_schema_faults(SSP_STRUCTURE_FILE, content))


def test_the_same_system_gives_the_same_bytes(joined: WiredSystem) -> None:
    assert package.make_fmu_archive(form_ssp_files(joined)) == package.make_fmu_archive(form_ssp_files(joined))


def test_the_script_gives_the_number_of_the_ideal_held_inputs(written: Path) -> None:
    command = [sys.executable, str(written / "TwoMasses_fmpy.py")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    rows = list(csv.DictReader(io.StringIO(done.stdout)))
    assert float(rows[-1]["left.x"]) == pytest.approx(HELD, abs=2e-8)


def test_fmpy_opens_the_archive(written: Path) -> None:
    """Its own error is its own: feedthrough outputs are read before their inputs are new."""
    assert foreign("fmpy_run_script.py", written / "TwoMasses.ssp") == pytest.approx(FMPY_SSP, abs=2e-8)


def test_libcosim_runs_the_configuration(written: Path) -> None:
    """1.06181193: feedthrough outputs of old inputs."""
    assert foreign("libcosim_run_script.py", written / "TwoMasses") == pytest.approx(1.06181193, abs=2e-8)


def test_other_masters_open_archives_with_parameters_of_the_system(mass_units: Units, tmp_path: Path) -> None:
    """FMPy applies no values, so they are those of the FMUs; ecos and libcosim do, from what stands at components."""
    system = two_masses(mass_units["2"])
    system.parameter("stiffness", (40.0, "N/m"), ["left.k", "right.k"])
    joined = wire_system(system, [read_fmu_component(each.name, each.source) for each in system.components])
    package.write_file_tree(
        InMemoryFileTree({"TwoMasses.ssp": package.make_fmu_archive(form_ssp_files(joined))}), tmp_path
    )
    package.write_file_tree(form_osp_files(joined).move_under("TwoMasses"), tmp_path)
    answers = run_foreign_masters(
        ["fmpy", "libcosim", "ecos"], tmp_path / "TwoMasses.ssp", tmp_path / "TwoMasses", 0.001, 1.0, ["left.x"]
    )
    fmpy, libcosim, ecos = (each.final_values["left.x"] for each in answers)
    assert fmpy == pytest.approx(FMPY_SSP, abs=2e-8)
    assert ecos == pytest.approx(libcosim, abs=1e-9)
    assert abs(ecos - 1.06181193) > 1e-3  # what it is without the values


def test_a_master_that_fails_is_reported_by_its_error_alone(tmp_path: Path) -> None:
    (answer,) = run_foreign_masters(["fmpy"], tmp_path / "none.ssp", tmp_path, 0.01, 0.1, ["left.x"])
    assert answer.failure.startswith("failed: FileNotFoundError: ")
    assert "Traceback" not in answer.failure
    assert "\n" not in answer.failure


def test_a_factor_goes_into_both_formats(mass_units: Units) -> None:
    system = two_masses(mass_units["2"])
    joined = wire_system(system, [read_fmu_component(each.name, each.source) for each in system.components])
    link = joined.wiring.links[1]
    turned = type(link)(link.source, link.target, -1.0, 0.5)
    from dataclasses import replace

    changed = replace(joined, wiring=replace(joined.wiring, links=(joined.wiring.links[0], turned)))
    assert b'<ssc:LinearTransformation factor="-1.0" offset="0.5"/>' in form_ssp_files(changed)[SSP_STRUCTURE_FILE]
    assert (
        b'<LinearTransformation name="link1" factor="-1.0" offset="0.5"/>'
        in form_osp_files(changed)[OSP_STRUCTURE_FILE]
    )


def test_the_picture_is_a_document_with_all_names(joined: WiredSystem) -> None:
    picture = draw_system_block_diagram(joined.wiring, "a < b")
    root = etree.fromstring(picture.encode())
    text = " ".join(root.itertext())
    for word in ("left", "right", "force", "a < b"):
        assert word in text


def test_factors_and_wires_that_go_back_are_inside_of_the_picture() -> None:
    """Of the leftmost component, and with as many wires as there is no margin for."""
    many = 9
    wiring = SystemWiring(
        ("one", "two"),
        (ComponentPort(1, "u", 1), *(ComponentPort(0, f"u{k}", k) for k in range(many))),
        (ComponentPort(0, "y", 99), *(ComponentPort(1, f"y{k}", 10 + k) for k in range(many))),
        (PortLink(0, 0), *(PortLink(1 + k, 1 + k, -0.001234, 0.5) for k in range(many))),
        frozenset(),
    )
    root = etree.fromstring(draw_system_block_diagram(wiring, "title").encode())
    left, top, width, height = map(float, root.get("viewBox").split())
    shown = {**root.nsmap, "s": root.nsmap[None]}
    shown.pop(None)
    for text in root.xpath("//s:text[contains(@class, 'FMU end')]", namespaces=shown):
        assert left < float(text.get("x")) - 6 * len(text.text)
    for wire in root.xpath("//s:path[@class='wire']", namespaces=shown):
        across = [float(x) for x in re.findall(r"[MH](-?[\d.]+)", wire.get("d"))]
        down = [float(y) for y in re.findall(r"V(-?[\d.]+)", wire.get("d"))]
        assert left < min(across)
        assert max(across) < left + width
        assert all(top < y < top + height for y in down)


def test_who_passes_numbers_on_without_their_factors_is_reported(mass_units: Units, tmp_path: Path) -> None:
    """FMPy's SSP simulation: half of the force is passed as the whole of it, as without the factor."""
    found = {}
    for factor in (1.0, 0.5):
        system = two_masses(mass_units["2"])
        system.connections[1] = replace(system.connections[1], transformation=(factor, 0.0))
        system.experiment(stop=0.1, step=0.01, order=0)
        done = run_coupled_system(system, tmp_path / str(factor), masters=["fmpy", "ecos"])
        found[factor] = done.answers
        assert done.answers[1].note == ""
        assert ("without factor and offset: left.F" in done.answers[0].note) == (factor != 1.0)
        assert ("without factor and offset" in (tmp_path / str(factor) / "TwoMasses.html").read_text()) == (
            factor != 1.0
        )
    fmpy, ecos = ([found[factor][k].final_values["left.x"] for factor in (1.0, 0.5)] for k in (0, 1))
    assert fmpy[0] == fmpy[1]
    assert abs(ecos[0] - ecos[1]) > 1e-3


def test_long_names_of_inputs_and_outputs_do_not_meet() -> None:
    """In no row of a box, with letters of 6 px on average; nor does a box meet the next column's."""
    long = "a_rather_long_name_of_a_variable"
    wiring = SystemWiring(
        ("one", "two", "three"),
        (ComponentPort(1, f"{long}.input", 1, "N.m.s/rad"), ComponentPort(2, "u", 2)),
        (
            ComponentPort(0, f"{long}.output", 1),
            ComponentPort(1, f"{long}.output", 2, "rad/s"),
            ComponentPort(1, "y", 3),
        ),
        (PortLink(0, 0), PortLink(1, 1)),
        frozenset({(0, 1)}),
    )
    places = place_block_diagram_boxes(wiring)
    for box in places:
        names = [max((len(f"{p.name} {p.unit}") for p in (ports[k] for k in side)), default=0)
                 for ports, side in ((wiring.inputs, box.inputs), (wiring.outputs, box.outputs))]  # fmt: skip
        assert box.right - box.left > 16 + 6 * sum(names)
    assert places[0].right < places[1].left
    assert places[1].right < places[2].left


def test_a_system_is_coupled_written_and_held_against_the_whole(tmp_path: Path, mass_units: Units) -> None:
    example = Path(__file__).parents[3] / "systems" / "two_masses"
    system = two_masses(mass_units["2"])
    system.monolith(example / "whole.py", {"left.x": "x1", "right.v": "v2"})
    system.experiment(stop=0.2, step=0.01, tolerance=1e-11, order=2, passes=20, converged=1e-11, bound=1e-3)
    done = run_coupled_system(system, tmp_path)
    assert done.passed
    assert {path.name for path in done.files} >= {
        "TwoMasses.ssp",
        "TwoMasses.html",
        "TwoMasses.csv",
        "TwoMasses.svg",
        OSP_STRUCTURE_FILE,
    }
    assert {each.name for each in done.deviations} == {"left.x", "right.v"}
    page = (tmp_path / "TwoMasses.html").read_text()
    assert "Passed" in page
    assert "left.x" in page
    rows = list(csv.reader(io.StringIO((tmp_path / "TwoMasses.csv").read_text())))
    assert len(rows) == 22


def test_a_bound_that_is_missed_fails(tmp_path: Path, mass_units: Units) -> None:
    system = two_masses(mass_units["2"])
    system.monolith(Path(__file__).parents[3] / "systems" / "two_masses" / "whole.py", {"left.x": "x1"})
    system.experiment(stop=0.2, step=0.01, tolerance=1e-11, order=0, bound=1e-3)
    done = run_coupled_system(system, tmp_path)
    assert not done.passed
    assert "Failed" in (tmp_path / "TwoMasses.html").read_text()


def test_without_a_bound_there_is_no_verdict_and_that_is_said(
    tmp_path: Path, mass_units: Units, capsys: pytest.CaptureFixture[str]
) -> None:
    system = two_masses(mass_units["2"])
    system.monolith(Path(__file__).parents[3] / "systems" / "two_masses" / "whole.py", {"left.x": "x1"})
    system.experiment(stop=0.05, step=0.01, tolerance=1e-11, order=0)
    _print_system_result(run_coupled_system(system, tmp_path), with_masters=False)
    said = capsys.readouterr().out
    assert "was run, not judged: left.x is off by" in said
    assert "states a bound" in said
    assert "passed" not in said


@pytest.mark.parametrize("place", [*by_night("sub/verdict.json"), "-"])
def test_the_verdict_is_there_as_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    """As JSON, in a file or alone on stdout: the same errors as the results have against the whole."""
    example = Path(__file__).parents[3] / "systems" / "two_masses"
    for source in example.glob("*.py"):
        (tmp_path / source.name).write_text(source.read_text().replace("stop=1.0", "stop=0.2"))
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(commands, ["system", "system.py", "--json", place])
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout if place == "-" else Path(place).read_text())
    assert found["passed"]
    assert max(each["relative"] for each in found["deviations"]) <= found["bound"]
    rows = list(csv.DictReader((tmp_path / "out" / "TwoMasses.csv").read_text().splitlines()))
    column = np.array([float(row["left.x"]) for row in rows])
    time = np.array([float(row["time"]) for row in rows])
    exact = 0.5 * np.cos(2 * np.pi * time) + 0.5 * np.cos(6 * np.pi * time)
    (left,) = (each for each in found["deviations"] if each["name"] == "left.x")
    assert left["error"] == pytest.approx(np.max(np.abs(column - exact)), rel=1e-3)
    assert all(Path(each).exists() for each in found["files"])
