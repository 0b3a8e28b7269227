"""Building with pythonfmu: what can go wrong is reported, and nothing of it stays behind."""

import sys

import pytest
from golden.handwritten import pendulum_interface, pendulum_program

from mb2fmu.errors import PackageError, ToolError
from mb2fmu.fmu import emit_python, emit_xml
from mb2fmu.fmu.in_memory_file_tree import InMemoryFileTree
from mb2fmu.fmu.package import build_python_fmu
from mb2fmu.fmu.toolchain import read_pythonfmu_licence, run_pythonfmu_builder


def parts():
    interface = pendulum_interface()
    return (
        emit_python.emit_python_fmu_sources(pendulum_program(), interface),
        emit_xml.emit_fmu_description_files(interface),
        interface,
    )


def test_the_fmu_has_our_description_and_all_sources():
    sources, description, interface = parts()
    path, modules = list(sys.path), set(sys.modules)
    tree = build_python_fmu(sources, description, interface)
    assert tree["modelDescription.xml"] == description["modelDescription.xml"]
    assert {f"resources/{name}" for name in sources} <= set(tree)
    assert all(tree[f"resources/{name}"] == sources[name] for name in sources)
    assert sys.path == path
    assert not {name for name in set(sys.modules) - modules if name.startswith("mb2fmu_")}


def test_two_builds_are_equal():
    assert build_python_fmu(*parts()) == build_python_fmu(*parts())


def test_a_script_that_fails_is_shown_with_its_error():
    with pytest.raises(ToolError) as caught:
        run_pythonfmu_builder(InMemoryFileTree({"broken.py": b"raise RuntimeError('as told')\n"}), "broken.py")
    assert "as told" in str(caught.value)
    assert "exit code 1" in str(caught.value)
    assert caught.value.exit_code == 3


def test_a_script_without_a_slave_is_an_error():
    with pytest.raises(ToolError, match="could not build the FMU"):
        run_pythonfmu_builder(InMemoryFileTree({"empty.py": b"x = 1\n"}), "empty.py")


def test_a_builder_that_hangs_is_stopped(monkeypatch):
    monkeypatch.setattr("mb2fmu.fmu.toolchain.pythonfmu_builder.BUILDER_TIME_LIMIT_S", 1.0)
    with pytest.raises(ToolError, match="did not finish"):
        run_pythonfmu_builder(InMemoryFileTree({"slow.py": b"import time\ntime.sleep(60)\n"}), "slow.py")


def test_sources_need_one_script():
    sources, description, interface = parts()
    with pytest.raises(PackageError, match="2 scripts"):
        build_python_fmu(sources.joined(InMemoryFileTree({"other.py": b""})), description, interface)


def test_an_identifier_that_is_not_the_binaries_is_an_error():
    sources, description, _ = parts()
    with pytest.raises(PackageError, match="has another name"):
        build_python_fmu(sources, description, pendulum_interface("Other"))


def test_the_licence_of_pythonfmu_goes_along():
    assert b"MIT License" in read_pythonfmu_licence()
