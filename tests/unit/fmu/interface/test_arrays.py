"""Arrays of a model: what may be declared, and how an FMU of FMI 3.0 describes them."""

from __future__ import annotations

import pytest
import sympy as sm
from sympy.physics.mechanics import Particle, Point, ReferenceFrame, System, dynamicsymbols

from mb2fmu import Model, pipeline
from mb2fmu.errors import ModelError
from mb2fmu.fmu.interface import FmuInterface, FmuTarget, form_fmu_interface
from mb2fmu.fmu.interface.model_structure import assign_model_structure_indices, form_model_structure


def two_masses() -> Model:
    """Two particles along x, each with a force; the second one's mass is a parameter."""
    (x, y), (u, v), (f, g) = dynamicsymbols("x y"), dynamicsymbols("u v"), dynamicsymbols("f g")
    m, t = sm.Symbol("m"), dynamicsymbols._t
    frame, origin = ReferenceFrame("N"), Point("O")
    system = System(frame=frame, fixed_point=origin)
    origin.set_vel(frame, 0)
    for place, speed, force, mass in ((x, u, f, sm.Integer(2)), (y, v, g, m)):
        point = origin.locatenew(f"P{place}", place * frame.x)
        point.set_vel(frame, speed * frame.x)
        system.add_bodies(Particle(f"B{mass}", point, mass))
        system.add_loads((point, force * frame.x))
    system.q_ind, system.u_ind = [x, y], [u, v]
    system.add_kdes(x.diff(t) - u, y.diff(t) - v)
    model = Model("two", system)
    model.parameter(m, 3.0, unit="kg")
    for symbol, unit in ((f, "N"), (g, "N")):
        model.input(symbol, start=0.5, unit=unit, min=-4.0 if symbol == f else -7.0)
    for symbol in (x, y):
        model.coordinate(symbol, 0.1, unit="m")
    for symbol in (u, v):
        model.speed(symbol, 0.0, unit="m/s")
    return model


def described(model: Model, fmi: str = "3") -> FmuInterface:
    derivation = pipeline.derive(model)
    return form_fmu_interface(derivation.definition, derivation.equations, derivation.program, FmuTarget(fmi, "native"))  # type: ignore[arg-type]


def with_arrays() -> Model:
    model = two_masses()
    model.array("force", ["f", "g"])
    model.array("state", ["x", "u", "y", "v"], shape=(2, 2))
    model.array("rate", ["der(u)", "der(v)"])
    return model


@pytest.fixture(scope="module")
def interface() -> FmuInterface:
    return described(with_arrays())


def test_inputs_stand_in_the_array_only_and_the_motion_beside(interface: FmuInterface) -> None:
    plain = {variable.name: variable.value_reference for variable in described(two_masses()).variables}
    assert {variable.name: variable.value_reference for variable in interface.scalars} == {
        name: reference for name, reference in plain.items() if name not in {"f", "g"}
    }
    force, state, rate = interface.arrays
    assert [each.value_reference for each in interface.arrays] == [len(plain) + k for k in (1, 3, 7)]
    assert (force.causality, state.causality, rate.causality) == ("input", "output", "output")
    assert (force.start, force.unit, force.minimum, force.maximum) == ((0.5, 0.5), "N", -7.0, None)
    assert state.unit is None
    assert state.element_names == ("state[1,1]", "state[1,2]", "state[2,1]", "state[2,2]")


def test_an_array_depends_on_what_its_elements_depend_on(interface: FmuInterface) -> None:
    number = assign_model_structure_indices(interface)
    force, state, rate = (array.value_reference for array in interface.arrays)
    found = form_model_structure(interface)
    outputs = {each.index: dict(zip(each.dependencies, each.kinds, strict=True)) for each in found.outputs}
    assert outputs[state] == {number[name]: "constant" for name in ("x", "y", "u", "v")}
    assert set(outputs[rate]) == {number["m"], force}
    assert outputs[rate][force] != "constant"  # of the second mass it is not
    derivatives = {each.index: dict(zip(each.dependencies, each.kinds, strict=True)) for each in found.derivatives}
    assert derivatives[number["der(u)"]] == {force: "constant"}
    start = {each.index: each.dependencies for each in found.initial_unknowns}
    assert start[state] == tuple(sorted(number[name] for name in ("x", "y", "u", "v")))
    assert number["f"] == number["g"] == force


def test_terminals_of_inputs_that_are_in_an_array_are_gone(interface: FmuInterface) -> None:
    assert {terminal.name for terminal in described(two_masses()).terminals} == {"f", "g"}
    assert interface.terminals == ()


def test_fmus_of_fmi_2_have_the_scalars() -> None:
    assert described(with_arrays(), "2").arrays == ()
    assert described(with_arrays(), "2").scalars == described(with_arrays(), "2").variables


WRONG = {
    "which the model does not have": ("a", ["nobody"], None),
    "mixes": ("a", ["f", "x"], None),
    "cannot be called 'x'": ("x", ["f", "g"], None),
    "cannot be called 'm'": ("m", ["f", "g"], None),
    "cannot be called 'a b'": ("a b", ["f", "g"], None),
    "has 2 elements, and the shape": ("a", ["f", "g"], (2, 2)),
    "has 0 elements": ("a", [], None),
    "more than once": ("a", ["f", "f"], None),
}


@pytest.mark.parametrize("said", list(WRONG))
def test_arrays_that_cannot_be_are_refused(said: str) -> None:
    model, (name, elements, shape) = two_masses(), WRONG[said]
    model.array(name, elements, shape=shape)
    with pytest.raises(ModelError, match="cannot be used") as caught:
        pipeline.derive(model)
    assert any(said in fault.what for fault in caught.value.faults)


def test_what_a_switch_looks_at_has_no_constant_factor_at_the_start() -> None:
    """x mod 2 jumps where x does not: its factor was called constant. The auditor had found it."""
    model = two_masses()
    x = dynamicsymbols("x")
    model.output("wrapped", sm.Mod(x, 2), "m")
    model.output("plain", 3 * x, "m")
    interface = described(model)
    numbers = {variable.name: variable.value_reference for variable in interface.variables}
    structure = form_model_structure(interface)

    def kind(unknowns, name: str) -> str:
        unknown = next(each for each in unknowns if each.index == numbers[name])
        return dict(zip(unknown.dependencies, unknown.kinds, strict=True))[numbers["x"]]

    assert kind(structure.initial_unknowns, "wrapped") == "dependent"
    assert kind(structure.initial_unknowns, "plain") == "constant"
