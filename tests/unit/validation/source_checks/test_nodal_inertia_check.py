"""Flexible bodies against their nodes: right ones agree to round-off, planted faults of the reduction are found."""

from __future__ import annotations

import dataclasses
import functools

import numpy as np
import pytest
import sympy as sm
from flexible_bodies import free_body, pinned_body, random_arrays
from mechanisms import mechanism_of
from representatives import by_night

from mb2fmu import FlexibleBody
from mb2fmu.model import check_model
from mb2fmu.model.flexible.modal_data import FlexibleBodyModalData
from mb2fmu.validation.independent_checks import check_flexible_bodies
from mb2fmu.validation.source_checks.nodal_inertia_check import compute_nodal_inertia_errors


@functools.cache
def parts():
    body = FlexibleBody("arm", **random_arrays(n=9))
    model = pinned_body(body)
    return check_model(model), mechanism_of(model), body


def worst(definition, mechanism, body) -> float:
    return max(ratio for ratio, _ in compute_nodal_inertia_errors(definition, mechanism, body))


def test_the_parts_have_the_inertia_of_the_nodes():
    definition, mechanism, body = parts()
    assert worst(definition, mechanism, body) < 0.01
    (check,) = check_flexible_bodies(definition, mechanism)
    assert check.verdict == "passed"
    assert check.points == 9


@pytest.mark.repeats  # by day a pinned one, above
def test_a_free_body_has_the_inertia_of_its_nodes():
    body = FlexibleBody("body", **random_arrays(4, n=2))
    model = free_body(body)
    assert worst(check_model(model), mechanism_of(model), body) < 0.01


def _one_mode_heavier(mechanism):
    bodies = list(mechanism.bodies)
    bodies[-1] = dataclasses.replace(bodies[-1], mass=bodies[-1].mass * sm.Float(1.01))
    return dataclasses.replace(mechanism, bodies=tuple(bodies))


def _damping_in_the_wrong_mode(mechanism):
    swapped = {sm.Symbol("arm_damping1", real=True): sm.Symbol("arm_damping2", real=True)}
    swapped |= {b: a for a, b in swapped.items()}
    loads = []
    for load in mechanism.loads:
        terms = tuple((f, tuple(c.xreplace(swapped) for c in v)) for f, v in load.force)
        loads.append(dataclasses.replace(load, force=terms))
    assert any(a.force != b.force for a, b in zip(loads, mechanism.loads, strict=True))
    return dataclasses.replace(mechanism, loads=tuple(loads))


def _body_read_as_a_particle(mechanism):
    bodies = [dataclasses.replace(body, frame=-1, inertia=None) for body in mechanism.bodies]
    assert bodies != list(mechanism.bodies)
    return dataclasses.replace(mechanism, bodies=tuple(bodies))


@pytest.mark.parametrize("plant", [_one_mode_heavier, _body_read_as_a_particle, _damping_in_the_wrong_mode])
def test_faults_of_masses_and_loads_are_found(plant):
    definition, mechanism, body = parts()
    assert worst(definition, plant(mechanism), body) > 100.0


def _another_node(data):
    modes = data.modes.copy()
    modes[0, [1, 2]] = modes[0, [2, 1]]
    return {"modes": modes}


NODAL_FAULTS = {
    "a mode's shape is 1 % off": lambda data: {"modes": data.modes * np.array([1.01, 1.0])[:, None, None]},
    "the shape of another node": _another_node,
    "a sign in the second-order field": lambda data: {"second_order": -data.second_order},
    "sections turn too little": lambda data: {"rotations": 0.99 * data.rotations},
    "a node's mass": lambda data: {"mass": 1.001 * data.mass},
}


@pytest.mark.parametrize("fault", NODAL_FAULTS)
def test_faults_of_the_reduction_are_found(fault, monkeypatch):
    """The body's parts were reduced from one set of arrays, its nodes are of another."""
    definition, mechanism, body = parts()
    monkeypatch.setattr(body, "data", dataclasses.replace(body.data, **NODAL_FAULTS[fault](body.data)))
    assert worst(definition, mechanism, body) > 100.0
    (check,) = check_flexible_bodies(definition, mechanism)
    assert check.verdict == "failed"
    assert "arm" in check.reason


@pytest.mark.parametrize("factor", [-1.0, *by_night(0.0)])
def test_sections_of_another_second_order_are_found(factor, monkeypatch):
    """Their arms turn to the wrong side, or grow as those of first order do."""
    right = FlexibleBodyModalData._second_order_arms
    monkeypatch.setattr(FlexibleBodyModalData, "_second_order_arms", lambda data, psi: factor * right(data, psi))
    body = FlexibleBody("arm", **random_arrays(n=3, m=1))
    model = pinned_body(body)
    assert worst(check_model(model), mechanism_of(model), body) > 100.0
