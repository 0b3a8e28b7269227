"""From the command line to validated native FMUs of both versions."""

from __future__ import annotations

import dataclasses
import json
from contextlib import nullcontext
from pathlib import Path

import pytest
from click.testing import CliRunner
from shorter_validations import shorten_validations, shorter_validations

from mb2fmu import pipeline
from mb2fmu.cli import commands
from mb2fmu.fmu import package
from mb2fmu.fmu.package import read_archive

ROOT = Path(__file__).parents[2]
MODEL = ROOT / "models" / "simple_pendulum.py"


def call(*arguments):
    return CliRunner().invoke(commands, [str(argument) for argument in arguments], prog_name="mb2fmu")


@pytest.mark.parametrize("fmi", [pytest.param("2", marks=pytest.mark.repeats), "3"])
def test_a_fmu_proves_both_kinds_and_carries_its_proof(fmi, tmp_path):
    """Its motion, and once it is packed all that it declares; that of FMI 2 is judged with the models."""
    verdict = tmp_path / "verdict.json"
    with shorter_validations():
        result = call("run", MODEL, "-o", tmp_path, "--fmi", fmi, "--json", verdict)
    assert result.exit_code == 0, result.output
    assert "2 runs match" in result.stdout
    content = json.loads(verdict.read_text())
    assert content["kind"] == "CoSimulation"
    assert [(other["kind"], other["passed"]) for other in content["others"]] == [("ModelExchange", True)]
    (path,) = tmp_path.glob("*.fmu")
    tree = read_archive(path)
    page = tree["documentation/index.html"].decode()
    assert "Model Exchange, integrated by CVODE" in page
    manifest = tree["extra/org.fmi-standard.fmi-ls-ref/fmi-ls-manifest.xml"].decode()
    assert "reference.csv" in manifest
    header, first, *rows = tree["extra/org.fmi-standard.fmi-ls-ref/reference.csv"].decode().splitlines()
    assert header.startswith("time,")
    assert first.startswith("0.0,")
    assert len(rows) > 100
    with nullcontext() if fmi == "3" else shorter_validations():
        again = call("validate", path, "--model", MODEL)
    assert again.exit_code == 0, again.output


@pytest.mark.repeats  # what Model Exchange alone does wrong is found in test_accurate_model_exchange
def test_a_fmu_that_moves_otherwise_in_one_kind_falls_short(tmp_path, monkeypatch):
    """Model Exchange alone is wrong: the verdict says so."""
    from mb2fmu.fmu import emit_c
    from mb2fmu.fmu.in_memory_file_tree import InMemoryFileTree

    emit = emit_c.emit_equation_sources

    def biased(program, interface, **options):
        motion = emit(program, interface, **options)
        files = dict(motion.sources.files)
        name = "sources/fmi2_model_exchange.c"
        before = b"mb2fmu_get_derivatives(instance, derivatives, nx)"
        assert before in files[name]
        files[name] = files[name].replace(before, b"mb2fmu_biased(instance, derivatives, nx)")
        bias = (
            b"static enum mb2fmu_status mb2fmu_biased(mb2fmu_instance *instance, double values[], size_t n)\n"
            b"{\n    const enum mb2fmu_status status = mb2fmu_get_derivatives(instance, values, n);\n"
            b"    values[n - 1] *= 1.001;\n    return status;\n}\n"
        )
        include = b'#include "protocol.h"\n'
        files[name] = files[name].replace(include, include + bias, 1)
        return dataclasses.replace(motion, sources=InMemoryFileTree(files))

    monkeypatch.setattr(emit_c, "emit_equation_sources", biased)
    exported = pipeline.export(MODEL, tmp_path)
    monkeypatch.undo()
    assert package.read_archive(exported.path)
    shorten_validations(monkeypatch)
    result = pipeline.validate(exported.path, MODEL).result
    assert not result.passed
    assert all(v.verdict == "passed" for v in result.variables)
    assert not result.other_interface_types[0].passed


def test_every_platform_from_one_machine(tmp_path):
    result = call("export", MODEL, "-o", tmp_path, "--platform", "x86_64-linux,aarch64-linux", "--json")
    assert result.exit_code == 0, result.output
    facts = json.loads(result.stdout)
    name = facts["model"]
    assert sorted(facts["binaries"]) == [f"binaries/aarch64-linux/{name}.so", f"binaries/linux64/{name}.so"]
    assert all(0 < size <= 200_000 for size in facts["binaries"].values())
