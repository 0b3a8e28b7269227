"""Macros of xacro files: expanded by a package where there is one, same for both imports, and reported where not."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from unit.robots.robot_texts import joint, link, robot

from mb2fmu import pipeline
from mb2fmu.errors import ModelError
from mb2fmu.robots.file_formats import xacro_expansion
from mb2fmu.validation.independent_checks import check_imported_declarations
from mb2fmu.validation.independent_import.independent_robot_accelerations import sample_independent_robot_accelerations

STAND_IN = """
import pathlib

class packages:
    update_package_cache = dict

class XacroDoc:
    @classmethod
    def from_file(cls, path, resolve_packages):
        made = cls()
        made.dom = made
        made.text = pathlib.Path(path).read_text()
        if "fault" in made.text:
            raise RuntimeError("no such macro")
        return made

    def toxml(self):
        return self.text.replace("${m}", "2.5").replace("${c}", "0.3")
"""
LIMIT = '<limit lower="-2" upper="2" effort="50" velocity="9"/><dynamics damping="${c}"/>'
TEXT = robot(
    '<link name="base"/>\n',
    link("l1").replace('value="1.0"', 'value="${m}"'),
    joint("j1", "revolute", "base", "l1", LIMIT),
)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "arm.urdf.xacro"
    path.write_text(TEXT)
    return path


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "xacrodoc.py").write_text(STAND_IN)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "xacrodoc", raising=False)


@pytest.mark.usefixtures("package")
def test_macros_are_expanded_for_both_imports(file: Path) -> None:
    derivation = pipeline.derive(file, method="recursive-composite")
    (body,) = derivation.mechanism.bodies
    assert float(body.mass) == 2.5
    assert next(p.value for p in derivation.checked.parameters if p.name == "j1.damping") == 0.3
    assert not sample_independent_robot_accelerations(derivation.checked).missing
    assert check_imported_declarations(derivation.checked, derivation.mechanism).verdict == "passed"


@pytest.mark.usefixtures("package")
def test_what_the_package_refuses_is_reported(file: Path) -> None:
    file.write_text(TEXT.replace("${m}", "${fault}"))
    with pytest.raises(ModelError, match=r"cannot be expanded:\s+.*arm.urdf.xacro: RuntimeError: no such macro"):
        pipeline.derive(file)


def test_without_a_package_the_remedy_is_one_command(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(xacro_expansion, "find_spec", lambda _: None)
    with pytest.raises(ModelError, match=r"pip install 'mb2fmu\[robots\]' \(or xacrodoc\)"):
        pipeline.derive(file)


def test_the_package_itself_finds_macros_in_named_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And a mesh in a package that is nowhere stays a note."""
    monkeypatch.delitem(sys.modules, "xacrodoc", raising=False)  # the stand-in
    pytest.importorskip("xacrodoc", reason="the extra robots is not installed")
    macros = '<xacro:property name="m" value="${1 + 1.5}"/><xacro:property name="c" value="0.3"/>'
    (tmp_path / "far").mkdir()
    (tmp_path / "far" / "numbers.xacro").write_text(
        f'<robot xmlns:xacro="http://www.ros.org/wiki/xacro">{macros}</robot>'
    )
    shape = '<visual><geometry><mesh filename="package://nowhere/a.stl"/></geometry></visual></link>'
    text = TEXT.replace("</link>", shape, 1).replace(
        '<link name="base"/>', '<xacro:include filename="$(find numbers)/numbers.xacro"/><link name="base"/>'
    )
    path = tmp_path / "here" / "arm.urdf.xacro"
    path.parent.mkdir()
    path.write_text(text.replace("<robot ", '<robot xmlns:xacro="http://www.ros.org/wiki/xacro" '))
    with pytest.raises(ModelError, match="numbers"):
        pipeline.derive(path)
    derivation = pipeline.derive(path, arguments={"packages": {"numbers": "../far"}}, method="recursive-composite")
    (body,) = derivation.mechanism.bodies
    assert float(body.mass) == 2.5
    assert "--package nowhere=DIR" in " ".join(derivation.checked.mechanics.notes)
    assert not sample_independent_robot_accelerations(derivation.checked).missing
    assert check_imported_declarations(derivation.checked, derivation.mechanism).verdict == "passed"
