"""describe(): what importers see follows from model, equations and program."""

import dataclasses

import pytest
import sympy as sm
from golden.handwritten import constrained_point, double_pendulum

from mb2fmu.compiler.evaluation import make_evaluator
from mb2fmu.compiler.lowering import lower_equations_to_program
from mb2fmu.compiler.program.scalar_program import Op, ScalarProgram
from mb2fmu.errors import InterfaceError
from mb2fmu.fmu.interface import form_fmu_interface
from mb2fmu.fmu.interface.model_structure import assign_model_structure_indices, form_model_structure


def described(system, **experiment):
    definition, equations = system()
    definition = dataclasses.replace(definition, experiment=dataclasses.replace(definition.experiment, **experiment))
    program = lower_equations_to_program(equations)
    return form_fmu_interface(definition, equations, program), program


def test_order_and_causality():
    interface, _ = described(double_pendulum)
    assert [(v.name, v.causality, v.variability, v.initial) for v in interface.variables] == [
        ("time", "independent", "continuous", None),
        ("m1", "parameter", "tunable", "exact"),
        ("m2", "parameter", "tunable", "exact"),
        ("l1", "parameter", "fixed", "exact"),
        ("l2", "parameter", "fixed", "exact"),
        ("g", "parameter", "fixed", "exact"),
        ("m", "calculatedParameter", "tunable", "calculated"),
        ("tau", "input", "continuous", "exact"),
        ("first.q", "output", "continuous", "exact"),
        ("second.q", "output", "continuous", "exact"),
        ("first.u", "output", "continuous", "exact"),
        ("second.u", "output", "continuous", "exact"),
        ("tip.x", "output", "continuous", "calculated"),
        ("tip.v", "output", "continuous", "calculated"),
        ("angular", "output", "continuous", "calculated"),
        ("der(first.q)", "local", "continuous", "calculated"),
        ("der(second.q)", "local", "continuous", "calculated"),
        ("der(first.u)", "local", "continuous", "calculated"),
        ("der(second.u)", "local", "continuous", "calculated"),
    ]


def test_dependent_speeds_are_calculated_and_no_states():
    interface, _ = described(constrained_point)
    speed = interface.named("u2")
    assert (speed.initial, speed.start, speed.source) == ("calculated", None, "dependent_speeds")
    assert [v.name for v in interface.variables_from_sources("state")] == ["q1", "q2", "u1", "z"]
    assert interface.named("der(u2)").derivative_of is None
    assert {v.name: v.derivative_of for v in interface.variables_from_sources("rhs")} == {
        f"der({name})": name for name in ("q1", "q2", "u1", "z")
    }


def test_units_of_derivatives_and_display_units():
    interface, _ = described(double_pendulum)
    assert interface.named("der(first.u)").unit == "rad/s2"
    units = {unit.name: unit for unit in interface.units}
    assert dict(units["N.m"].powers) == {"kg": 1, "m": 2, "s": -2}
    (degree,) = units["rad"].display_units
    assert degree.name == "deg"
    assert degree.factor == pytest.approx(180.0 / sm.pi.evalf(20), rel=1e-15)


def test_sources_point_at_what_computes_them():
    """Every computed variable's label in its entry point is its own name, or its symbol's."""
    interface, program = described(constrained_point)
    for variable in interface.variables_from_sources("rhs", "accelerations", "dependent_speeds", "prepare", "position"):
        label = program.entries[variable.source].labels[variable.index]
        assert variable.name in (label, f"der({label})")


def test_feedthrough_is_shown_and_nothing_else():
    interface, _ = described(double_pendulum)
    index = assign_model_structure_indices(interface)
    structure = form_model_structure(interface)
    seen = {item.index: item.dependencies for item in structure.outputs}
    assert seen[index["angular"]] == (index["tau"],)
    assert seen[index["tip.x"]] == seen[index["tip.v"]] == seen[index["first.q"]] == ()
    assert [item.index for item in structure.outputs] == [
        index[v.name] for v in interface.variables if v.causality == "output"
    ]


def test_initial_unknowns_are_complete_and_of_allowed_kinds():
    interface, _ = described(constrained_point)
    structure = form_model_structure(interface)
    index = assign_model_structure_indices(interface)
    assert {item.index for item in structure.initial_unknowns} == {
        index[name] for name in ("u2", "der(q1)", "der(q2)", "der(u1)", "der(z)")
    }
    exact = {index[v.name] for v in interface.variables if v.initial == "exact"} | {index["time"]}
    for item in structure.initial_unknowns:
        assert set(item.dependencies) <= exact
        assert set(item.kinds) <= {"constant", "dependent"}
        assert list(item.dependencies) == sorted(item.dependencies)
    by_index = {item.index: item for item in structure.initial_unknowns}
    rate = by_index[index["der(z)"]]
    assert dict(zip(rate.dependencies, rate.kinds, strict=True)) == {
        index["T"]: "dependent",
        index["F"]: "dependent",
        index["z"]: "dependent",
    }
    assert by_index[index["der(q1)"]].kinds == ("constant",)


def test_dependencies_agree_with_finite_differences():
    """A known that is not listed has no influence; one that is has some."""
    interface, program = described(double_pendulum)
    x, r, p = [0.7, -0.4, 0.9, 0.3], [0.2], [1.0, 0.7, 0.8, 0.6, 9.81]
    known = [
        *interface.variables_from_sources("state"),
        *interface.variables_from_sources("input"),
        *interface.variables_from_sources("parameter"),
    ]
    for variable in interface.variables_from_sources("position", "velocity", "acceleration", "rhs", "prepare"):
        f = make_evaluator(program, variable.source, [variable.index])
        base = f(0.0, x, r, p)
        listed = {dependency.on for dependency in variable.dependencies}
        for item in known:
            vectors = {"state": list(x), "input": list(r), "parameter": list(p)}
            vectors[item.source][item.index] += 0.01
            moved = f(0.0, vectors["state"], vectors["input"], vectors["parameter"])
            assert (moved != base).any() == (item.name in listed), (variable.name, item.name)


def test_token_is_of_the_content():
    first, program = described(double_pendulum)
    again, _ = described(double_pendulum)
    assert first == again
    other, _ = described(double_pendulum, stop=3.0)
    assert other.token != first.token
    definition, equations = double_pendulum()
    fields = {field.name: getattr(program, field.name) for field in dataclasses.fields(ScalarProgram)}
    op = program.op.copy()
    op[op == Op.ADD] = Op.SUB
    touched = ScalarProgram(**fields | {"op": op})
    assert form_fmu_interface(definition, equations, touched).token != first.token


def test_solver_follows_the_experiment():
    assert described(double_pendulum)[0].solver.kind == "explicit"
    assert described(double_pendulum, stiff=True)[0].solver.kind == "implicit"
    fixed = described(double_pendulum, solver="fixed", internal_step=1e-3)[0].solver
    assert (fixed.kind, fixed.internal_step) == ("fixed", 1e-3)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: dataclasses.replace(d, coordinates=d.coordinates[:1]), "1 coordinates, the equations have 2"),
        (
            lambda d: dataclasses.replace(d, experiment=dataclasses.replace(d.experiment, solver="fixed", stiff=True)),
            "said to be stiff",
        ),
        (
            lambda d: dataclasses.replace(d, inputs=(dataclasses.replace(d.inputs[0], name="time"),)),
            "time: 2 variables have this name",
        ),
        (
            lambda d: dataclasses.replace(d, inputs=(dataclasses.replace(d.inputs[0], unit="furlong"),)),
            "furlong",
        ),
        (
            lambda d: dataclasses.replace(d, inputs=(dataclasses.replace(d.inputs[0], display_unit="deg"),)),
            "cannot show",
        ),
    ],
)
def test_faults(change, message):
    definition, equations = double_pendulum()
    with pytest.raises(InterfaceError) as caught:
        form_fmu_interface(change(definition), equations, lower_equations_to_program(equations))
    assert message in str(caught.value)
