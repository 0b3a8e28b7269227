"""An ``.ssp`` is read as it was written; one with a mapping and transformations; what is wrong is reported."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from lxml import etree

from mb2fmu.audit.description.description_records import TERMINALS
from mb2fmu.errors import Mb2FmuError
from mb2fmu.fmu import package
from mb2fmu.fmu.in_memory_file_tree import InMemoryFileTree
from mb2fmu.pipeline.system_runs.coupled_system_run import wire_loaded_system
from mb2fmu.systems import CoupledSystem, CouplingError, WiredSystem, read_fmu_component, wire_system
from mb2fmu.systems.ssp.ssp_archive import (
    SSP_STRUCTURE_FILE,
    SSP_VERSIONS,
    SspVersion,
    find_ssp_schema_faults,
    form_ssp_files,
)

Units = dict[str, dict[str, Path]]
SSV = "http://ssp-standard.org/SSP1/SystemStructureParameterValues"
SSM = "http://ssp-standard.org/SSP1/SystemStructureParameterMapping"
SSC = "http://ssp-standard.org/SSP1/SystemStructureCommon"


@pytest.fixture(scope="module")
def files(mass_units: Units) -> InMemoryFileTree:
    system = CoupledSystem("TwoMasses")
    system.component("left", mass_units["2"]["left"], values={"m": (1100.0, "g")})
    system.component("right", mass_units["2"]["right"])
    system.parameter("stiffness", (40.0, "N/m"), {"left.k": (1.0, 0.0), "right.k": (1.0, 0.0), "right.c": (4.0, 1.0)})
    system.parameter("there", (250.0, "mm"), ["left.x", "right.x"])
    system.connect("left.x", "right.s")
    system.connect("right.force", "left.F", transformation=(0.5, 2.0), delay=0.02)
    system.experiment(stop=2.0, step=0.004)
    return form_ssp_files(
        wire_system(system, [read_fmu_component(each.name, each.source) for each in system.components])
    )


def written(files: InMemoryFileTree, folder: Path, **changes: bytes) -> Path:
    path = folder / "some.ssp"
    path.write_bytes(package.make_fmu_archive(InMemoryFileTree({**dict(files.files), **changes})))
    return path


def test_what_was_written_is_read(files: InMemoryFileTree, tmp_path: Path) -> None:
    joined = wire_loaded_system(written(files, tmp_path))
    assert [component.name for component in joined.components] == ["left", "right"]
    assert dict(joined.values[0]) == {"m": 1.1, "k": 40.0, "x": 0.25}
    assert dict(joined.values[1]) == {"k": 40.0, "c": 161.0, "x": 0.25}
    assert (joined.system.run_settings.stop, joined.system.run_settings.stepping.step) == (2.0, 0.004)
    links = {joined.wiring.input_name(k.target): (k.factor, k.offset, k.delay) for k in joined.wiring.links}
    assert links == {"right.s": (1.0, 0.0, 0.0), "left.F": (0.5, 2.0, 0.02)}
    assert form_ssp_files(joined) == files


def test_parameters_of_the_system_are_a_mapping_that_other_readers_read(
    files: InMemoryFileTree, tmp_path: Path
) -> None:
    """FMPy reads the mapping; its numbers through its transformations are the values in the components' own files."""
    from fmpy.ssp.ssd import read_ssd, read_ssm, read_ssv

    path = str(written(files, tmp_path))
    (binding,) = read_ssd(path).system.parameterBindings
    assert binding.source == "resources/parameters.ssv"
    values = {each.name: float(each.value) for each in read_ssv(path, binding.source).parameters}
    own = {
        f"{name}.{each.name}": float(each.value)
        for name in ("left", "right")
        for each in read_ssv(path, f"resources/{name}.ssv").parameters
    }
    entries = read_ssm(path, "resources/parameters.ssm").mappingEntries
    assert len(entries) == 5
    for entry in entries:
        line = entry.transformation
        factor, offset = (1.0, 0.0) if line is None else (float(line.factor), float(line.offset))
        assert own[entry.target] == pytest.approx(factor * values[entry.source] + offset, rel=1e-15), entry.target
        assert (entry.suppressUnitConversion == "true") == (line is not None)


def test_what_the_system_says_has_precedence_over_its_components(files: InMemoryFileTree, tmp_path: Path) -> None:
    changed = files["resources/parameters.ssv"].replace(b'value="40.0"', b'value="50.0"')
    joined = wire_loaded_system(written(files, tmp_path, **{"resources/parameters.ssv": changed}))
    assert [joined.values[0]["k"], joined.values[1]["k"], joined.values[1]["c"]] == [50.0, 50.0, 201.0]


def test_a_foreign_mapping_gives_values(files: InMemoryFileTree, tmp_path: Path) -> None:
    """SSM: the parameter ``mass`` of a set becomes ``m``, twice as large."""
    values = (
        f'<ssv:ParameterSet xmlns:ssv="{SSV}" version="1.0" name="v"><ssv:Parameters>'
        '<ssv:Parameter name="mass"><ssv:Real value="0.7"/></ssv:Parameter></ssv:Parameters></ssv:ParameterSet>'
    )
    mapping = (
        f'<ssm:ParameterMapping xmlns:ssm="{SSM}" xmlns:ssc="{SSC}" version="1.0"><ssm:MappingEntry source="mass" '
        'target="m"><ssc:LinearTransformation factor="2.0" offset="0.0"/></ssm:MappingEntry></ssm:ParameterMapping>'
    )
    bound = (
        b'<ssd:ParameterBinding source="resources/left.ssv">'
        b'<ssd:ParameterMapping source="resources/left.ssm"/></ssd:ParameterBinding>'
    )
    structure = re.sub(rb"<ssd:ParameterBinding [^>]*/>", bound, files[SSP_STRUCTURE_FILE])
    assert structure != files[SSP_STRUCTURE_FILE]
    changes = {
        SSP_STRUCTURE_FILE: structure,
        "resources/left.ssv": values.encode(),
        "resources/left.ssm": mapping.encode(),
    }
    joined = wire_loaded_system(written(files, tmp_path, **changes), arguments={"step": "0.01"})
    assert joined.values[0]["m"] == pytest.approx(1.4)
    assert joined.system.run_settings.stepping.step == 0.01


@pytest.mark.parametrize(
    ("old", "new", "text"),
    [
        (b'source="resources/left.fmu"', b'source="../left.fmu"', "lies outside of the archive"),
        (b'source="resources/left.fmu"', b'source="http://a.b/left.fmu"', "lies outside of the archive"),
        (b'source="resources/left.fmu"', b'source="resources/up.fmu"', "is not in the archive"),
        (b'kind="input"', b'kind="entrance"', "entrance"),
        (b'endElement="right"', b"", "goes over the system's own edge"),
        (b'startElement="left"', b'startElement="middle"', "SystemStructure.ssd:{line}: 'middle.x' names no component"),
    ],
)
def test_what_is_wrong_is_reported(files: InMemoryFileTree, tmp_path: Path, old: bytes, new: bytes, text: str) -> None:
    assert old in files[SSP_STRUCTURE_FILE]
    path = written(files, tmp_path, **{SSP_STRUCTURE_FILE: files[SSP_STRUCTURE_FILE].replace(old, new, 1)})
    with pytest.raises(Mb2FmuError) as raised:
        wire_loaded_system(path)
    line = files[SSP_STRUCTURE_FILE].partition(old)[0].count(b"\n") + 1
    assert text.replace("{line}", str(line)) in str(raised.value)


TERMINAL = (
    '<?xml version="1.0"?><fmiTerminalsAndIcons fmiVersion="3.0"><Terminals><Terminal name="spring" matchingRule="bus">'
    '<TerminalMemberVariable variableName="{f}" memberName="f" variableKind="{kind}"/>'
    '<TerminalMemberVariable variableName="{s}" memberName="s" variableKind="signal"/>'
    "</Terminal></Terminals></fmiTerminalsAndIcons>"
)


@pytest.fixture(scope="module")
def by_terminals(mass_units: Units, tmp_path_factory: pytest.TempPathFactory) -> WiredSystem:
    """The two masses with a terminal each."""
    folder = tmp_path_factory.mktemp("terminals")
    system = CoupledSystem("TwoMasses")
    for name, members in (
        ("left", {"f": "F", "s": "x", "kind": "inflow"}), ("right", {"f": "force", "s": "s", "kind": "outflow"})
    ):  # fmt: skip
        tree = package.read_archive(mass_units["2"][name])
        path = folder / f"{name}.fmu"
        path.write_bytes(
            package.make_fmu_archive(InMemoryFileTree({**tree.files, TERMINALS: TERMINAL.format(**members).encode()}))
        )
        system.component(name, path)
    system.parameter("stiffness", (40.0, "N/m"), ["left.k", "right.k"])
    system.connect("left.spring", "right.spring")
    system.experiment(stop=2.0, step=0.004)
    return wire_system(system, [read_fmu_component(each.name, each.source) for each in system.components])


@pytest.mark.parametrize("version", SSP_VERSIONS)
def test_every_version_follows_its_schema_and_is_read_back(
    by_terminals: WiredSystem, tmp_path: Path, version: SspVersion
) -> None:
    made = form_ssp_files(by_terminals, version)
    for name in (SSP_STRUCTURE_FILE, "resources/parameters.ssv", "resources/parameters.ssm"):
        content = made[name]
        assert list(find_ssp_schema_faults(name, content)) == []
        reported = etree.fromstring(content).get("version")
        said = version.removesuffix("-draft") if name == SSP_STRUCTURE_FILE else min(version, "2.0")
        assert reported == said
        assert list(
            find_ssp_schema_faults(name, content.replace(f'version="{reported}"'.encode(), b'version="9.0"', 1))
        )
    joined = wire_loaded_system(written(made, tmp_path))
    assert (joined.wiring.links, joined.values) == (by_terminals.wiring.links, by_terminals.values)
    assert form_ssp_files(joined, version)[SSP_STRUCTURE_FILE] == made[SSP_STRUCTURE_FILE]
    assert (b'kind="terminal"' in made[SSP_STRUCTURE_FILE]) == (version == "2.1-draft")


def test_the_draft_connects_terminals_as_one(by_terminals: WiredSystem) -> None:
    """One connection for the pair; it says what each of its members says; what is not in 2.0 is no 2.0."""
    content = form_ssp_files(by_terminals, "2.1-draft")[SSP_STRUCTURE_FILE]
    root = etree.fromstring(content)
    (connection,) = root.iterfind(".//{*}Connection")
    assert [connection.get(key) for key in ("startConnector", "endConnector")] == ["spring", "spring"]
    assert "right.force depends on right.s at the same moment" in connection.get("description")
    (kind,) = root.iterfind("{*}Terminals/{*}Terminal")
    assert {each.get("name") for each in kind.iterfind(".//{*}Connector")} == {"f", "s"}
    assert list(find_ssp_schema_faults(SSP_STRUCTURE_FILE, content.replace(b'version="2.1"', b'version="2.0"', 1)))


def test_transformations_of_terminals_are_refused(by_terminals: WiredSystem) -> None:
    given = CoupledSystem("TwoMasses")
    given.components = by_terminals.system.components
    given.connect("left.spring", "right.spring", transformation=(2.0, 0.0))
    with pytest.raises(CouplingError, match="are terminals, whose members are converted as they are"):
        wire_system(given, by_terminals.components)


def test_a_member_that_would_land_outside_is_refused(files: InMemoryFileTree, tmp_path: Path) -> None:
    import zipfile

    path = written(files, tmp_path)
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("../outside.txt", "x")
    with pytest.raises(Mb2FmuError, match="outside"):
        wire_loaded_system(path)
    assert not (tmp_path.parent / "outside.txt").exists()
