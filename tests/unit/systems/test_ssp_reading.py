"""An ``.ssp`` is read as it was written; one with a mapping and transformations; what is wrong is told."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from mb2fmu import package
from mb2fmu.errors import Mb2FmuError
from mb2fmu.filetree import FileTree
from mb2fmu.pipeline.coupled import joined_system
from mb2fmu.systems import CoupledSystem, join, read_component
from mb2fmu.systems.ssp import STRUCTURE, ssp_files

Units = dict[str, dict[str, Path]]
SSV = "http://ssp-standard.org/SSP1/SystemStructureParameterValues"
SSM = "http://ssp-standard.org/SSP1/SystemStructureParameterMapping"
SSC = "http://ssp-standard.org/SSP1/SystemStructureCommon"


@pytest.fixture(scope="module")
def files(mass_units: Units) -> FileTree:
    system = CoupledSystem("TwoMasses")
    system.component("left", mass_units["2"]["left"], values={"m": (1100.0, "g")})
    system.component("right", mass_units["2"]["right"])
    system.connect("left.x", "right.s")
    system.connect("right.force", "left.F", transformation=(0.5, 2.0), delay=0.02)
    system.experiment(stop=2.0, step=0.004)
    return ssp_files(join(system, [read_component(name, system.source_of(name)) for name in system.names]))


def written(files: FileTree, folder: Path, **changes: bytes) -> Path:
    path = folder / "some.ssp"
    path.write_bytes(package.archived(FileTree({**dict(files.files), **changes})))
    return path


def test_what_was_written_is_read(files: FileTree, tmp_path: Path) -> None:
    joined = joined_system(written(files, tmp_path))
    assert [component.name for component in joined.components] == ["left", "right"]
    assert dict(joined.values[0]) == {"m": 1.1}
    assert (joined.system.run.stop, joined.system.run.stepping.step) == (2.0, 0.004)
    links = {joined.wiring.input_name(k.target): (k.factor, k.offset, k.delay) for k in joined.wiring.links}
    assert links == {"right.s": (1.0, 0.0, 0.0), "left.F": (0.5, 2.0, 0.02)}
    assert ssp_files(joined) == files


def test_a_foreign_mapping_gives_values(files: FileTree, tmp_path: Path) -> None:
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
    structure = re.sub(rb"<ssd:ParameterBinding [^>]*/>", bound, files[STRUCTURE])
    assert structure != files[STRUCTURE]
    changes = {STRUCTURE: structure, "resources/left.ssv": values.encode(), "resources/left.ssm": mapping.encode()}
    joined = joined_system(written(files, tmp_path, **changes), arguments={"step": "0.01"})
    assert joined.values[0]["m"] == pytest.approx(1.4)
    assert joined.system.run.stepping.step == 0.01


@pytest.mark.parametrize(
    ("old", "new", "text"),
    [
        (b'source="resources/left.fmu"', b'source="../left.fmu"', "lies outside of the archive"),
        (b'source="resources/left.fmu"', b'source="http://a.b/left.fmu"', "lies outside of the archive"),
        (b'source="resources/left.fmu"', b'source="resources/up.fmu"', "is not in the archive"),
        (b'kind="input"', b'kind="entrance"', "entrance"),
        (b'endElement="right"', b"", "goes over the system's own edge"),
        (b'startElement="left"', b'startElement="middle"', "'middle.x' names no component"),
    ],
)
def test_what_is_wrong_is_told(files: FileTree, tmp_path: Path, old: bytes, new: bytes, text: str) -> None:
    assert old in files[STRUCTURE]
    path = written(files, tmp_path, **{STRUCTURE: files[STRUCTURE].replace(old, new, 1)})
    with pytest.raises(Mb2FmuError) as told:
        joined_system(path)
    assert text in str(told.value)


def test_a_member_that_would_land_outside_is_refused(files: FileTree, tmp_path: Path) -> None:
    import zipfile

    path = written(files, tmp_path)
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("../outside.txt", "x")
    with pytest.raises(Mb2FmuError, match="outside"):
        joined_system(path)
    assert not (tmp_path.parent / "outside.txt").exists()
