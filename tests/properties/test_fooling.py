"""No FMU with a planted fault passes, no right one fails; ``scripts/plant_faults`` plants many more."""

from __future__ import annotations

import dataclasses
import json

import pytest
from planted import command, conditional, graph, reading, runtime
from planted.command import Record, Store, table
from planted.fault import Mutant, Subject, subjects
from planted.planting import all_mutants
from planted.validation_verdict import _derived, judge

from mb2fmu.fmu import emit_c, interface


@pytest.fixture(scope="module")
def models() -> dict[str, Subject]:
    """Everything that faults are planted in, by name; nothing is derived before it is asked for."""
    return {subject.name: subject for subject in subjects()}


def the(subject: Subject, kind: str, level: str, place: str = "") -> Mutant:
    """The first fault of a kind whose place contains a word."""
    found = [m for m in all_mutants(subject) if (m.kind, m.level) == (kind, level) and place in m.place]
    assert found, f"{subject.name} has no place for {kind} in {level}"
    return found[0]


@pytest.mark.parametrize(
    ("model", "kind", "level", "place"),
    [
        pytest.param("cart_pole", "inertia dropped", "reading", "pole", marks=pytest.mark.repeats),
        pytest.param("cart_pole", "parameter index", "program", "in the place of", marks=pytest.mark.repeats),
        # As in test_held_faults, as what is wrong after a parameter changed:
        pytest.param("cart_pole", "input one step late", "sources", "", marks=pytest.mark.repeats),
        pytest.param("cart_pole", "dependency", "description", "", marks=pytest.mark.repeats),
        pytest.param(
            "simple_pendulum",
            "wrong after a parameter changed",
            "program",
            "l stays at its default",
            marks=pytest.mark.repeats,
        ),
        pytest.param("snakeboard", "output as read", "reading", "front_force", marks=pytest.mark.repeats),
        ("rigid_body", "rotation of a frame", "reading", "B: mounted askew by 0.05 rad about z"),
        pytest.param("cart_pole", "start value", "interface", "force", marks=pytest.mark.repeats),
        # The auditor finds adjoints that are wrong, in test_mutants; test_held_faults what is wrong in some calls only:
        pytest.param(
            "simple_pendulum",
            "adjoint in some calls only",
            "sources",
            "of one unknown alone",
            marks=pytest.mark.repeats,
        ),
        pytest.param(
            "simple_pendulum", "directional derivative in some calls only", "sources", "", marks=pytest.mark.repeats
        ),
    ],
)
def test_no_wrong_fmu_passes(models, tmp_path, model, kind, level, place):
    mutant = the(models[model], kind, level, place)
    verdict = judge(models[model], mutant, tmp_path)
    assert verdict.outcome == "found", f"{mutant.place}: {verdict}"
    assert verdict.by


def test_what_changes_nothing_is_not_counted(models, tmp_path):
    # A pendulum swings alike about every level axis, whichever of them reading takes; a particle has no inertia.
    pendulum = models["cart_pole"]
    mutant = next(
        m
        for m in reading.mutants(pendulum)
        if m.kind == "inertia entry" and m.place == "pole: moment about x times 1.3"
    )
    assert judge(pendulum, mutant, tmp_path).outcome == "equivalent"


@pytest.mark.repeats  # as scripts/plant_faults, which counts by it
def test_a_fault_of_reading_adds_nothing_but_itself(models):
    """What the formulation adds to what was read is added once; else every such fault seems to change something."""
    linkage = models["andrews"]
    fault = next(mutant for mutant in reading.mutants(linkage) if mutant.kind == "potential")
    derivation, effect = _derived(linkage, fault)
    assert derivation.program.layout == linkage.derivation.program.layout
    assert effect == 0.0  # no output asks for the potential energy, and the spring's force is another expression


def test_a_model_that_cannot_be_planted_in_is_an_error_and_the_others_go_on(monkeypatch, tmp_path, capsys):
    def refused():
        raise ValueError("this model cannot be made")

    monkeypatch.setattr(command, "subjects", lambda: [Subject("bad", refused), Subject("next", refused)])
    store = tmp_path / "found.jsonl"
    assert command.main(["--store", str(store)]) == 1
    records = [json.loads(line) for line in store.read_text().splitlines()]
    assert [(r["model"], r["outcome"], r["by"]) for r in records] == [
        (name, "error", "ValueError: this model cannot be made") for name in ("bad", "next")
    ]
    shown = capsys.readouterr().out
    assert "0 right FMUs, 0 false alarms; 2 errors." in shown
    assert shown.count(command.NOTHING_PLANTED) == 4  # as it goes, and in the table


@pytest.mark.parametrize("fmi", ["2", "3"])
def test_every_fault_of_the_runtime_has_its_place(models, fmi):
    """A change of the runtime that moves such a place must move the fault with it."""
    subject = models["cart_pole"]
    d = subject.derivation
    target = interface.FmuTarget(fmi=fmi, backend="native", solver=None)
    described = interface.form_fmu_interface(d.definition, d.equations, d.program, target)
    right = emit_c.emit_equation_sources(d.program, described, adjoint=True)
    found = [*runtime.mutants(subject), *(m for m in conditional.mutants(subject) if m.level == "sources")]
    assert len({m.kind for m in found}) >= 8
    for mutant in found:
        assert mutant.change(right).sources != right.sources, mutant.place


def test_a_changed_result_is_the_only_change(models):
    program = models["simple_pendulum"].derivation.program
    wrong = graph.with_result(program, "rhs", 1, graph.scaled(1.5))
    assert graph.effect(models["simple_pendulum"], program, wrong, entries=("rhs",)) == pytest.approx(0.5)
    assert graph.effect(models["simple_pendulum"], program, wrong, entries=("position", "velocity")) == 0.0


def test_the_count_goes_on_where_it_was(tmp_path):
    store = Store(tmp_path / "out" / "found.jsonl")
    store.load(())
    found = Record("a", "sign", "reading", "here", "2", "found", "calls: x")
    survived = dataclasses.replace(found, place="there", outcome="survived", by="")
    right = Record("a", "none", "none", "the right unit", "3", "passed")
    for record in (found, survived, right):
        store.add(record)
    again = Store(store.path)
    again.load(("survived",))
    assert set(again.found) == {found.key, right.key}
    text = table([found, survived, right])
    assert "| sign | 2 | 1 | calls 1 | 0 | 0 |" in text
    assert "1 models; 1 right FMUs, 0 false alarms; 0 errors." in text
    assert "| a | reading | sign | there | survived" in text
