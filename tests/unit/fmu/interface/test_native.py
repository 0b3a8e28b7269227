"""Native units: abilities, the solver's parameter, terminals, and the structures that both standards want."""

import dataclasses

import numpy as np
import pytest
import sympy as sm
from golden.handwritten import constrained_point, double_pendulum, native_interface, pendulum_interface

from mb2fmu.compiler.evaluation import make_evaluator
from mb2fmu.compiler.lowering import lower_equations_to_program
from mb2fmu.errors import InterfaceError
from mb2fmu.fmu.integration_method_table import SOLVERS
from mb2fmu.fmu.interface import FmuTarget, form_fmu_interface
from mb2fmu.fmu.interface.fmu_interface import FmuInterface
from mb2fmu.fmu.interface.fmu_types_arrays_terminals import Terminal, TerminalMember, TypeDefinition
from mb2fmu.fmu.interface.model_structure import assign_model_structure_indices, form_model_structure
from mb2fmu.mechanics.equations.equations_of_motion import MassMatrixDynamics
from mb2fmu.model.declarations.declared_terminals import DeclaredTerminal, DeclaredTerminalMember


def described(system=double_pendulum, fmi="3", change=lambda definition, equations: (definition, equations)):
    definition, equations = change(*system())
    program = lower_equations_to_program(equations)
    return form_fmu_interface(definition, equations, program, FmuTarget(fmi, "native")), program


def test_a_native_fmu_has_the_variables_of_a_python_fmu_and_the_solver():
    native, program = described()
    python = form_fmu_interface(*double_pendulum(), program)
    *same, solver, step = native.variables
    first = same[0].value_reference
    plain = [dataclasses.replace(v, declared_type=None, value_reference=v.value_reference - first) for v in same]
    assert (first, plain) == (1, list(python.variables))
    assert (solver.name, solver.kind, solver.causality, solver.variability) == (
        "solver",
        "enumeration",
        "parameter",
        "fixed",
    )
    assert (step.name, step.kind, step.causality, step.variability, step.unit, step.minimum, step.start) == (
        "solver_step",
        "real",
        "parameter",
        "fixed",
        "s",
        0.0,
        0.0,
    )
    assert (python.kinds, native.kinds) == (("CoSimulation",), ("ModelExchange", "CoSimulation"))


@pytest.mark.parametrize(
    ("experiment", "choice"),
    [({}, 1), ({"solver": "fixed"}, 2), ({"stiff": True}, 4)],
    ids=["adaptive", "fixed", "stiff"],
)
def test_the_solver_follows_the_experiment(experiment, choice):
    def change(definition, equations):
        run = dataclasses.replace(definition.experiment, **experiment)
        return dataclasses.replace(definition, experiment=run), equations

    interface, _ = described(change=change)
    solver = interface.named("solver")
    assert solver.start == interface.solver.solver_enumeration_value == choice
    (declared,) = (item for item in interface.types if item.name == solver.declared_type)
    assert [item.value for item in declared.items] == [row.number for row in SOLVERS]


@pytest.mark.parametrize(("name", "choice"), [(row.name, row.number) for row in SOLVERS])
def test_the_solver_chosen_at_export_comes_before_the_experiment(name, choice):
    definition, equations = double_pendulum()
    run = dataclasses.replace(definition.experiment, solver="fixed", internal_step=1e-3)
    definition = dataclasses.replace(definition, experiment=run)
    interface = form_fmu_interface(
        definition, equations, lower_equations_to_program(equations), FmuTarget("3", "native", name)
    )
    assert interface.named("solver").start == interface.solver.solver_enumeration_value == choice
    assert interface.named("solver_step").start == 1e-3
    assert interface.solver.internal_step == (1e-3 if name in ("rk4", "euler") else None)


def test_fmus_whose_motion_may_differ_in_bits_have_tokens_of_their_own():
    definition, equations = double_pendulum()
    program = lower_equations_to_program(equations)
    ways = [{}, {"compiler": "cc"}, {"fast": True}, {"compiler": "cc", "fast": True}]
    units = [form_fmu_interface(definition, equations, program, FmuTarget("3", "native", **way)) for way in ways]
    assert len({unit.token for unit in units}) == len(ways)
    assert form_fmu_interface(definition, equations, program, FmuTarget("3", "native")).token == units[0].token


def test_names_of_the_model_are_not_taken():
    def change(definition, equations):
        inputs = (dataclasses.replace(definition.inputs[0], name="solver"),)
        first, *rest = definition.coordinates
        coordinates = (dataclasses.replace(first, name="Solver"), *rest)
        return dataclasses.replace(definition, inputs=inputs, coordinates=coordinates), equations

    interface, _ = described(change=change)
    assert interface.variables_from_sources("solver")[0].name == "solver_"
    assert interface.types[-1].name == "Solver_"


def test_the_two_standards_promise_what_they_know():
    old, new = described(fmi="2")[0].capabilities, described(fmi="3")[0].capabilities
    assert (old.adjoint_derivatives, old.intermediate_update, old.early_return, old.input_derivatives) == (
        False,
        False,
        False,
        True,
    )
    assert (new.adjoint_derivatives, new.intermediate_update, new.early_return, new.input_derivatives) == (
        True,
        True,
        True,
        False,
    )
    assert old.output_derivative_order == new.output_derivative_order == 1


def test_every_target_has_a_token_of_its_own():
    definition, equations = double_pendulum()
    program = lower_equations_to_program(equations)
    targets = [FmuTarget("2", "python"), FmuTarget("2", "native"), FmuTarget("3", "native")]
    assert len({form_fmu_interface(definition, equations, program, target).token for target in targets}) == 3


def test_fmus_of_python_are_for_fmi_2_only():
    with pytest.raises(InterfaceError, match=r"FMI 2\.0 only"):
        FmuTarget("3", "python")
    with pytest.raises(InterfaceError, match="leave it out"):
        FmuTarget("2", "python", "rk4")


def influence(program, variable, known):
    """By how much the variable moves when the known does, at some point away from any symmetry."""
    x, r, p = [0.7, -0.4, 0.9, 0.3], [0.2], [1.0, 0.7, 0.8, 0.6, 9.81]
    vectors = {"state": list(x), "input": list(r), "parameter": list(p)}
    vectors[known.source][known.index] += 0.01
    if variable.source == "state":
        return vectors["state"][variable.index] - x[variable.index]
    f = make_evaluator(program, variable.source, [variable.index])
    return float((f(0.0, vectors["state"], vectors["input"], vectors["parameter"]) - f(0.0, x, r, p))[0])


@pytest.mark.parametrize("fmi", ["2", "3"])
def test_dependencies_are_what_finite_differences_find(fmi):
    """FMI 2: inputs and states; FMI 3: parameters too; at the start in both: all that is exact."""
    interface, program = described(fmi=fmi)
    number = assign_model_structure_indices(interface)
    by_number = {number[variable.name]: variable for variable in interface.variables}
    structure = form_model_structure(interface)
    known = {
        "later": interface.variables_from_sources("state", "input")
        if fmi == "2"
        else interface.variables_from_sources("state", "input", "parameter"),
        "start": interface.variables_from_sources("state", "input", "parameter"),
    }
    lists = {"later": (*structure.outputs, *structure.derivatives), "start": structure.initial_unknowns}
    for when, unknowns in lists.items():
        for unknown in unknowns:
            moved = [number[v.name] for v in known[when] if influence(program, by_number[unknown.index], v) != 0.0]
            assert unknown.dependencies == tuple(sorted(moved)), (when, by_number[unknown.index].name)
            assert len(unknown.kinds) == len(unknown.dependencies)
    assert {kind for unknown in structure.initial_unknowns for kind in unknown.kinds} <= {"constant", "dependent"}


def test_derivatives_are_in_the_order_of_the_states():
    interface, _ = described(constrained_point)
    names = {variable.value_reference: variable for variable in interface.variables}
    order = [names[unknown.index].derivative_of for unknown in form_model_structure(interface).derivatives]
    assert order == [variable.name for variable in interface.variables_from_sources("state")]
    assert [variable.index for variable in interface.variables_from_sources("state")] == list(range(len(order)))


def test_a_state_that_is_an_output_depends_on_itself():
    interface, _ = described()
    reference = interface.named("first.q").value_reference
    (unknown,) = (u for u in form_model_structure(interface).outputs if u.index == reference)
    assert (unknown.dependencies, unknown.kinds) == ((reference,), ("constant",))


def with_forcing(change):
    """The double pendulum with another right-hand side; ``change`` gets it and the input's symbol."""

    def changed(definition, equations):
        torque = equations.r[0]
        forcing = sm.ImmutableMatrix(change(equations.dynamics.forcing, torque))
        dynamics = MassMatrixDynamics(equations.dynamics.mass_matrix, forcing)
        return definition, dataclasses.replace(equations, dynamics=dynamics)

    return changed


def test_an_input_that_works_on_one_coordinate_is_a_terminal():
    interface, _ = described()
    (terminal,) = interface.terminals
    assert terminal.name == "tau"
    assert terminal.members == (
        TerminalMember("tau", "tau", "inflow"),
        TerminalMember("phi", "first.q", "signal"),
        TerminalMember("w", "first.u", "signal"),
    )


@pytest.mark.parametrize("sign", [1, -1])
def test_the_power_that_flows_in_is_the_product_of_flow_and_speed(sign):
    """Whatever the input adds to u' M u' (the rate of the kinetic energy) is input times speed, or minus that."""
    change = with_forcing(lambda f, torque: f.subs(torque, sign * torque))
    interface, program = described(change=change)
    (terminal,) = interface.terminals
    x, p = np.array([0.7, -0.4, 0.9, 0.3]), [1.0, 0.7, 0.8, 0.6, 9.81]
    M = make_evaluator(program, "equations", [0, 1, 2, 3])(0.0, x, [0.0], p).reshape(2, 2)
    rhs = make_evaluator(program, "rhs")
    added = rhs(0.0, x, [0.2], p) - rhs(0.0, x, [0.0], p)
    speed = x[interface.named(terminal.members[-1].variable).index]
    assert x[2:] @ M @ added[2:] == pytest.approx((0.2 if terminal.members[0].kind == "inflow" else -0.2) * speed)


def test_an_input_that_takes_power_out_is_an_outflow():
    change = with_forcing(lambda f, torque: f.subs(torque, -torque))
    (terminal,) = described(change=change)[0].terminals
    assert [member.kind for member in terminal.members] == ["outflow", "signal", "signal"]


def test_forces_are_reported_from_torques():
    (terminal,) = described(constrained_point)[0].terminals
    assert [(member.name, member.variable) for member in terminal.members] == [("f", "F"), ("s", "q1"), ("v", "u1")]


@pytest.mark.parametrize(
    "change",
    [
        with_forcing(lambda f, torque: f.subs(torque, 2 * torque)),
        with_forcing(lambda f, torque: f.subs(torque, torque**2)),
        with_forcing(lambda f, torque: [f[0], f[1] - torque]),
        with_forcing(lambda f, torque: f.subs(torque, torque * sm.cos(sm.Symbol("q1")))),
        with_forcing(lambda f, torque: f.subs(torque, 0)),
        lambda d, e: (dataclasses.replace(d, inputs=(dataclasses.replace(d.inputs[0], unit="N"),)), e),
    ],
    ids=["geared", "square", "between two links", "inclined", "none", "no power"],
)
def test_what_can_be_mistaken_is_no_terminal(change):
    assert described(change=change)[0].terminals == ()


def test_terminals_that_the_model_declares_come_first_and_leave_their_inputs_no_other():
    members = (DeclaredTerminalMember("torque", "tau", "inflow"), DeclaredTerminalMember("angle", "second.q"))

    def change(definition, equations):
        hand = DeclaredTerminal("hand", members, "where it is held")
        return dataclasses.replace(definition, terminals=(hand,)), equations

    wanted = (
        TerminalMember("torque", "tau", "inflow"),
        TerminalMember("angle", "second.q", "signal"),
    )
    assert described(change=change)[0].terminals == (Terminal("hand", wanted, "where it is held"),)


def broken(**changes):
    return dataclasses.replace(native_interface("3"), **changes)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda s: {"types": s.types[:-1]}, "its type 'Solver' is not declared"),
        (lambda s: {"types": (*s.types, TypeDefinition("q"))}, "has the name of another type or of a variable"),
        (lambda s: {"types": (*s.types, TypeDefinition("New", "New", "furlong"))}, "'furlong' is not declared"),
        (
            lambda s: {"variables": (*s.variables[:-2], dataclasses.replace(s.variables[-2], start=99.0))},
            "99.0 is no value of Solver",
        ),
        (
            lambda s: {"variables": (dataclasses.replace(s.variables[0], declared_type="Mass"), *s.variables[1:])},
            "is not that of its type Mass",
        ),
        (lambda s: {"terminals": (*s.terminals, *s.terminals)}, "2 terminals have this name"),
        (
            lambda _: {"terminals": (Terminal("t", (TerminalMember("w", "der(q)"),)),)},
            "no variable that can be connected",
        ),
        (
            lambda _: {"terminals": (Terminal("t", (TerminalMember("w", "q"), TerminalMember("w", "u"))),)},
            "two members have one name",
        ),
    ],
)
def test_laws_of_types_and_terminals(make, message):
    with pytest.raises(InterfaceError) as caught:
        broken(**make(native_interface("3")))
    assert message in str(caught.value)


def test_fmus_by_hand_are_sound():
    assert isinstance(native_interface("2"), FmuInterface)
    assert pendulum_interface().kinds == ("CoSimulation",)
