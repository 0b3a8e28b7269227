"""``form_fmu_interface``: decide everything that importers see, from model, equations and program.

Variables, in this order:

- ``time``: the independent variable. It is declared so that dependencies on it can be.
- Parameters: fixed or tunable as the model says; expressions of parameters are calculated parameters, tunable if any
  parameter they depend on is.
- Inputs: continuous.
- Coordinates, speeds and auxiliary states: outputs, not locals, because co-simulation tools connect and plot outputs
  only, and the motion is what a mechanism is simulated for. Those that are states are ``exact`` and have a start
  value that can be set; coordinates and speeds that follow from constraints are calculated.
- Outputs of the model: calculated.
- Derivatives: ``der(x)`` of every state, linked to it, and of every dependent speed (without a link: it is no state).
  They are locals of their own even where q' = u: an alias of a state that must not be set confuses importers.
- In FMUs of FMI 3.0 the arrays that the model declares.
- In native FMUs a fixed parameter that chooses the Co-Simulation's solver; it has no effect in Model Exchange.

A start value declared as ``guess`` is ``approx`` where a loop determines it: the FMU solves for it in Initialization
Mode. Elsewhere nothing solves for it, so it is as exact as a fixed one. Nothing is
constant that a user might want to change: numbers in the model's expressions are no variables.

Array variables of FMI 3.0, made from scalars that are described already.

Scalars keep their value references; those of arrays come behind. An input or output is in its array only, since two
inputs for one value contradict each other. Of the motion the scalars stay, because states have start values, limits and
derivatives by themselves, and the array is one more output.

Abilities of native FMUs, and the parameters that choose their solver.

FMI knows structural parameters from 3.0 on only, and they are about sizes of arrays: the solver is chosen by a fixed
parameter of an enumeration type. It acts in Co-Simulation; in Model Exchange the importer integrates.
"""

from __future__ import annotations

import dataclasses
import hashlib
import uuid
from collections.abc import Callable, Iterator, Sequence
from typing import Any, get_args

import numpy as np

from mb2fmu.compiler.events import SwitchKind, list_program_switches
from mb2fmu.compiler.program.program_result_dependencies import DependencyKind as ReadKind
from mb2fmu.compiler.program.program_result_dependencies import find_all_result_dependencies
from mb2fmu.compiler.program.scalar_program import ScalarProgram
from mb2fmu.errors import Fault, InterfaceError
from mb2fmu.fmu.integration_method_table import (
    SOLVERS,
    find_integration_method_by_kind,
    find_integration_method_by_name,
)
from mb2fmu.fmu.interface.fmu_interface import (
    DefaultExperiment,
    DisplayUnit,
    FmiDependencyKind,
    FmuCapabilities,
    FmuInterface,
    FmuSolverSettings,
    FmuTarget,
    FmuVariable,
    InterfaceUnit,
    LogCategory,
    VariableDependency,
    VariableSource,
)
from mb2fmu.fmu.interface.fmu_types_arrays_terminals import EnumerationItem, FmuArray, Terminal, TypeDefinition
from mb2fmu.fmu.interface.physical_quantities import map_units_to_quantity_types
from mb2fmu.fmu.interface.power_terminals import form_fmu_terminals
from mb2fmu.mechanics.equations.equations_of_motion import EquationsOfMotion
from mb2fmu.model.declarations.declared_content_and_experiment import DeclaredExperiment, DeclaredModelContent
from mb2fmu.model.quantity_declarations import AuxiliaryState, Coordinate, DeclaredVariable, Parameter, Speed
from mb2fmu.units import derive_rate_unit, display_unit_conversion, parse_unit
from mb2fmu.version import __version__

_ARRAY_SOURCES = frozenset({"input", "position", "velocity", "acceleration"})
"""Sources of inputs and of outputs that a model requests."""


PYTHON_FMU_TARGET = FmuTarget()
NO_TOKEN = str(uuid.UUID(int=0))
GENERATION_TOOL = f"mb2fmu {__version__}"
LOG_CATEGORIES = (
    LogCategory("logStatusWarning", "What went on in another way than asked for."),
    LogCategory("logStatusDiscard", "Steps that could not be made, and why."),
    LogCategory("logStatusError", "Calls that were refused, and why."),
)
_DEPENDENCY_KINDS: dict[ReadKind, FmiDependencyKind] = {
    ReadKind.CONSTANT: "constant",
    ReadKind.FIXED: "fixed",
    ReadKind.TUNABLE: "tunable",
    ReadKind.DEPENDENT: "dependent",
}
_MODE_DESCRIPTIONS: dict[SwitchKind, str] = {
    "relation": "1 where this is positive or true, else 0",
    "steps": "the integer that stands for this",
    "sticking": "direction of slip, 0 while it is held",
    "condition": "1 where this holds, else 0",
    "ticks": "how often this has happened; of contacts and latches the number of the one that is due, else 0",
}


def _drop_terminals_of_array_elements(
    terminals: Sequence[Terminal], arrays: Sequence[FmuArray]
) -> tuple[Terminal, ...]:
    """Return the terminals whose members are all variables of their own: elements of arrays are not."""
    gone = {name for array in arrays if array.replaces for name in array.elements}
    return tuple(each for each in terminals if gone.isdisjoint(member.variable for member in each.members))


def _declared_arrays(definition: DeclaredModelContent, variables: Sequence[FmuVariable]) -> Iterator[FmuArray]:
    """Yield the declared arrays with what their elements share; value references follow those of ``variables``."""
    known = {variable.name: variable for variable in variables}
    motion = {
        item.name for item in (*definition.coordinates, *definition.speeds, *definition.auxiliary_states)
    }  # a dependent coordinate is computed where positions are
    reference = 1 + max(variable.value_reference for variable in variables)
    for declared in definition.arrays:
        names = tuple(map(str, declared.elements))
        held = [known[name] for name in names]
        inputs = held[0].causality == "input"
        yield FmuArray(
            name=declared.name,
            value_reference=reference,
            causality="input" if inputs else "output",
            dimensions=declared.shape,
            elements=names,
            replaces=all(each.source in _ARRAY_SOURCES and each.name not in motion for each in held),
            start=tuple(float(each.start or 0.0) for each in held) if inputs else (),
            unit=_shared_attribute(held, lambda each: each.unit),
            display_unit=_shared_attribute(held, lambda each: each.display_unit),
            declared_type=_shared_attribute(held, lambda each: each.declared_type),
            minimum=_widest_bound(min, [each.minimum for each in held]),
            maximum=_widest_bound(max, [each.maximum for each in held]),
            nominal=_smallest_nominal([each.nominal for each in held]),
            description=declared.description,
        )
        reference += len(names)


def _shared_attribute(held: Sequence[FmuVariable], of: Callable[[FmuVariable], Any]) -> Any:
    """Return the attribute that all elements share, or None."""
    found = {of(each) for each in held}
    return found.pop() if len(found) == 1 else None


def _widest_bound(of: Callable[[Sequence[float]], float], bounds: Sequence[float | None]) -> float | None:
    """Return the widest bound, which all elements keep."""
    known = [bound for bound in bounds if bound is not None]
    return of(known) if len(known) == len(bounds) else None


def _smallest_nominal(nominals: Sequence[float | None]) -> float | None:
    """Return the smallest nominal value, so that a small error is small for every element."""
    return min(each or 1.0 for each in nominals) if any(nominals) else None


def form_fmu_capabilities(target: FmuTarget, *, remembers: bool = False, switches: bool = False) -> FmuCapabilities:
    """Return the abilities of such FMUs; those with discrete memory must be notified of accepted steps.

    Args:
        target: Kind of FMU.
        remembers: Something is remembered from one accepted step to the next.
        switches: The model has events.
    """
    if target.backend == "python":
        return FmuCapabilities(needs_execution_tool=True, state=True)
    new = target.fmi == "3"
    return FmuCapabilities(
        needs_execution_tool=False,
        state=True,
        model_exchange=True,
        directional_derivatives=True,
        adjoint_derivatives=new,
        input_derivatives=not new,
        output_derivative_order=1,
        intermediate_update=new,
        early_return=new,
        event_mode=new and switches,
        remembers=remembers,
    )


def form_solver_enumeration(taken: Sequence[str]) -> TypeDefinition:
    """Return the enumeration of solvers, with a name that is not in ``taken``."""
    items = tuple(EnumerationItem(row.item, row.number, row.method) for row in SOLVERS)
    return TypeDefinition(
        make_unique_variable_name("Solver", taken), items=items, description="how the Co-Simulation integrates"
    )


def form_solver_parameters(
    variables: Sequence[FmuVariable], settings: FmuSolverSettings, internal_step: float | None = None
) -> tuple[FmuVariable, ...]:
    """Return parameters for the choice of solver and its fixed step; they are placed behind ``variables``.

    Args:
        variables: Those of the model; names and value references of theirs are not taken again.
        settings: The choice at export: the start value.
        internal_step: Of the experiment in s; None: fixed steps are the communication steps.
    """
    taken = [variable.name for variable in variables]
    free = max(variable.value_reference for variable in variables) + 1
    choice = FmuVariable(
        name=make_unique_variable_name("solver", taken),
        value_reference=free,
        causality="parameter",
        variability="fixed",
        initial="exact",
        start=float(settings.solver_enumeration_value),
        source="solver",
        index=0,
        kind="enumeration",
        description="how the Co-Simulation integrates",
    )
    step = FmuVariable(
        name=make_unique_variable_name("solver_step", taken),
        value_reference=free + 1,
        causality="parameter",
        variability="fixed",
        initial="exact",
        start=0.0 if internal_step is None else float(internal_step),
        minimum=0.0,
        unit="s",
        source="solver_step",
        index=0,
        description="longest internal step of solvers with fixed steps; 0: the communication step",
    )
    return choice, step


def make_unique_variable_name(wanted: str, taken: Sequence[str]) -> str:
    """Return ``wanted``, with underscores added until the name is not in ``taken``."""
    while wanted in taken:
        wanted += "_"
    return wanted


def form_fmu_interface(
    definition: DeclaredModelContent,
    equations: EquationsOfMotion,
    program: ScalarProgram,
    target: FmuTarget = PYTHON_FMU_TARGET,
) -> FmuInterface:
    """Describe an FMU for importers: variables, units, structure, experiment.

    Args:
        definition: The checked model: names, units, bounds, start values.
        equations: Which speeds are states; the outputs.
        program: The lowered equations: dependencies.
        target: Standard and backend: what the FMU can do follows from them.

    Returns:
        The interface, its token included.

    Raises:
        InterfaceError: With everything that FMI does not allow.
    """
    faults = [*_shape_faults(definition, equations, program), *_experiment_faults(definition.experiment, target)]
    if faults:
        raise InterfaceError(f"{definition.name} cannot be described as an FMU:", faults)
    native, describer = target.backend == "native", _FmuVariableDescriber(definition, equations, program)
    solver = _choose_solver_settings(definition.experiment, target)
    variables = tuple(describer.variables(1 if target.fmi == "3" else 0))
    types: tuple[TypeDefinition, ...] = ()
    if native:
        variables, types = _declare_types(
            (*variables, *form_solver_parameters(variables, solver, definition.experiment.internal_step))
        )
    found = form_fmu_terminals(definition, equations, program, describer.force_dependencies) if native else ()
    held = tuple(_declared_arrays(definition, variables)) if target.fmi == "3" and definition.arrays else ()
    interface = FmuInterface(
        model_name=definition.name,
        model_identifier=definition.name,
        description=definition.description,
        token=NO_TOKEN,
        target=target,
        variables=variables,
        units=_list_units(variables, definition.name),
        experiment=_describe_experiment(definition.experiment),
        solver=solver,
        log_categories=LOG_CATEGORIES,
        types=types,
        terminals=_drop_terminals_of_array_elements(found, held),
        arrays=held,
        capabilities=form_fmu_capabilities(
            target, remembers=bool(program.layout.memory), switches=bool(list_program_switches(program))
        ),
        generation_tool=GENERATION_TOOL,
    )
    return dataclasses.replace(interface, token=_form_instantiation_token(interface, program))


def _form_instantiation_token(interface: FmuInterface, program: ScalarProgram) -> str:
    """Return a UUID made from the whole interface (but its token) and the whole program."""
    digest = hashlib.sha256()
    lists: dict[int, bytes] = {}  # of dependencies, which many variables share
    for variable in interface.variables:
        key = id(variable.dependencies)
        if key not in lists:
            lists[key] = repr(variable.dependencies).encode()
        digest.update(repr(dataclasses.replace(variable, dependencies=())).encode())
        digest.update(hashlib.sha256(lists[key]).digest())
    others = {field.name for field in dataclasses.fields(interface)} - {"token", "variables"}
    digest.update(repr([(name, getattr(interface, name)) for name in sorted(others)]).encode())
    for part in (program, *program.bodies):
        for array in (part.op, part.a, part.b, part.c, part.constants):
            digest.update(np.ascontiguousarray(array).astype(array.dtype.newbyteorder("<")).tobytes())
        entries = [part.entries[name] for name in sorted(part.entries)]
        digest.update(repr((part.layout, part.blocks, part.tables, entries)).encode())
    return str(uuid.UUID(bytes=digest.digest()[:16], version=5))


class _FmuVariableDescriber:
    """Makes the variables, one kind after the other."""

    def __init__(self, definition: DeclaredModelContent, equations: EquationsOfMotion, program: ScalarProgram) -> None:
        self._definition = definition
        self._equations = equations
        self._program = program
        self._free = [parameter for parameter in definition.parameters if not parameter.calculated]
        self._calculated = [parameter for parameter in definition.parameters if parameter.calculated]
        self._states: list[Coordinate | Speed | AuxiliaryState] = [
            *(definition.coordinates[i] for i in equations.q_independent),
            *(definition.speeds[i] for i in equations.u_independent),
            *definition.auxiliary_states,
        ]
        self._fixed = [i for i, parameter in enumerate(self._free) if not parameter.tunable]
        self._known = {
            "time": ["time"],
            "states": [state.name for state in self._states],
            "inputs": [item.name for item in definition.inputs],
            "parameters": [parameter.name for parameter in self._free],
        }
        self._place = {state.name: i for i, state in enumerate(self._states)}
        self._guessed = {
            state.name
            for state, symbol in zip(self._states, equations.states, strict=True)
            if symbol in equations.solved_start_states
        }
        self._dependencies = self._all_dependencies()

    def variables(self, first: int) -> Iterator[FmuVariable]:
        """Yield all variables in the order of their value references.

        Args:
            first: Value reference of the first one. In FMI 3 dependencies are value references, in FMI 2 they are
                places counted from 1, and importers exist that take the ones for the others: from 1 on they are the
                same.
        """
        parts = (
            *(self._time(), self._parameters(), self._inputs(), self._motion(), self._outputs(), self._derivatives()),
            self._switches(),
        )
        everything = [variable for part in parts for variable in part]
        order = {variable.name: i for i, variable in enumerate(everything)}
        ordered: dict[int, tuple[VariableDependency, ...]] = {}  # what many variables share stays shared
        for reference, variable in enumerate(everything, start=first):
            on = variable.dependencies
            if id(on) not in ordered:
                ordered[id(on)] = tuple(sorted(on, key=lambda dependency: order[dependency.on]))
            further = self._by_modes if (variable.source, variable.index) in self._moded else ()
            yield dataclasses.replace(
                variable, value_reference=reference, dependencies=ordered[id(on)], start_dependencies=further
            )

    def _time(self) -> Iterator[FmuVariable]:
        """Yield the independent variable, reference 0, in s."""
        yield FmuVariable(
            name="time",
            value_reference=0,
            causality="independent",
            initial=None,
            unit="s",
            description="simulation time",
            source="time",
        )

    def _parameters(self) -> Iterator[FmuVariable]:
        """Yield all parameters in the order of the model, free and calculated ones."""
        for parameter in self._definition.parameters:
            yield self._calculated_parameter(parameter) if parameter.calculated else self._parameter(parameter)

    def _parameter(self, parameter: Parameter) -> FmuVariable:
        """Return a free parameter; it can be changed during the run if it is tunable."""
        return dataclasses.replace(
            _describe_quantity(parameter, "parameter", self._free.index(parameter)),
            causality="parameter",
            variability="tunable" if parameter.tunable else "fixed",
            initial="exact",
            start=float(parameter.value),
        )

    def _calculated_parameter(self, parameter: Parameter) -> FmuVariable:
        """Return a calculated parameter; it is tunable if it depends on any tunable one."""
        index = self._program.entries["prepare"].labels.index(str(parameter.symbol))
        on = self._dependencies["prepare"][index]
        fixed = {self._free[i].name for i in self._fixed}
        return dataclasses.replace(
            _describe_quantity(parameter, "prepare", index),
            causality="calculatedParameter",
            variability="fixed" if all(dependency.on in fixed for dependency in on) else "tunable",
            dependencies=on,
        )

    def _inputs(self) -> Iterator[FmuVariable]:
        """Yield the inputs, each with the value that it has until it is set."""
        for i, item in enumerate(self._definition.inputs):
            yield dataclasses.replace(
                _describe_quantity(item, "input", i), causality="input", initial="exact", start=float(item.start)
            )

    def _motion(self) -> Iterator[FmuVariable]:
        """Yield coordinates, speeds and auxiliary states; dependent ones are locals, the others continuous states."""
        definition, equations = self._definition, self._equations
        dependent = [definition.speeds[i] for i in equations.u_dependent]
        placed = [definition.coordinates[i] for i in equations.q_dependent]
        first = sum(output.level == "position" for output in equations.outputs)
        motion: tuple[Coordinate | Speed | AuxiliaryState, ...] = (
            *definition.coordinates,
            *definition.speeds,
            *definition.auxiliary_states,
        )
        for item in motion:
            if item in dependent:
                index = dependent.index(item)
                on = self._dependencies["dependent_speeds"][index]
                yield dataclasses.replace(_describe_quantity(item, "dependent_speeds", index), dependencies=on)
            elif item in placed:
                index = first + placed.index(item)  # they stand after the outputs
                on = self._dependencies["position"][index]
                yield dataclasses.replace(_describe_quantity(item, "position", index), dependencies=on)
            else:
                yield self._state(item, self._place[item.name])

    def _state(self, item: Coordinate | Speed | AuxiliaryState, index: int) -> FmuVariable:
        """Return a continuous state; a start value that is a guess has initial="approx" and its dependencies."""
        state = dataclasses.replace(_describe_quantity(item, "state", index), initial="exact", start=float(item.start))
        if item.name not in self._guessed:
            return state
        on = tuple(each for each in self._dependencies["initialize"][index] if each.on not in self._guessed)
        return dataclasses.replace(state, initial="approx", dependencies=on)

    def _outputs(self) -> Iterator[FmuVariable]:
        """Yield the outputs with unit, nominal value and dependencies."""
        for output in self._equations.outputs:
            index = self._program.entries[output.level].labels.index(output.name)
            yield FmuVariable(
                name=output.name,
                value_reference=0,
                causality="output",
                initial="calculated",
                unit=output.unit,
                display_unit=output.display_unit,
                nominal=_optional_float(output.nominal),
                description=output.description,
                source=output.level,
                index=index,
                dependencies=self._dependencies[output.level][index],
            )

    def _derivatives(self) -> Iterator[FmuVariable]:
        """Yield der(x) of each state, then derivatives of dependent speeds, which are no der() of a state."""
        for i, state in enumerate(self._states):
            yield self._derivative(state, "rhs", i, state.name)
        for i in self._equations.u_dependent:
            yield self._derivative(self._definition.speeds[i], "accelerations", i, None)

    def _switches(self) -> Iterator[FmuVariable]:
        """Yield event indicators, then modes."""
        switches = list_program_switches(self._program)
        margins = len(self._program.entries["indicators"].results) if switches else 0
        for i, switch in enumerate(switches[:margins]):
            yield FmuVariable(
                name=f"event_indicator[{i + 1}]",
                value_reference=0,
                causality="local",
                initial="calculated",
                description=f"event indicator: positive as long as the mode of {switch.name} is right",
                source="indicators",
                index=i,
                dependencies=self._dependencies["indicators"][i],
            )
        for i, switch in enumerate(switches):
            yield FmuVariable(
                name=f"mode[{i + 1}]",
                value_reference=0,
                causality="local",
                variability="discrete",
                initial="calculated",
                description=f"{_MODE_DESCRIPTIONS[switch.kind]}: {switch.name}",
                source="mode",
                index=i,
            )

    def _derivative(self, of: DeclaredVariable, source: VariableSource, index: int, state: str | None) -> FmuVariable:
        """Return a derivative; `state` names the state that it belongs to, None if there is none."""
        return FmuVariable(
            name=f"der({of.name})",
            value_reference=0,
            causality="local",
            initial="calculated",
            unit=derive_rate_unit(of.unit),
            description=f"time derivative of {of.name}",
            derivative_of=state,
            source=source,
            index=index,
            dependencies=self._dependencies[source][index],
        )

    def _all_dependencies(self) -> dict[str, list[tuple[VariableDependency, ...]]]:
        """Return the dependencies of each entry point's results; equal ones are one object."""
        names = ("initialize", "surfaces", "equations", *get_args(VariableSource))
        entries = [name for name in names if name in self._program.entries]
        found = find_all_result_dependencies(self._program, entries, self._fixed)
        self.force_dependencies = found.pop("equations", ())
        lists = {id(each): each for several in found.values() for each in several}
        described = {
            key: tuple(
                VariableDependency(self._known[item.group][item.index], _DEPENDENCY_KINDS[item.kind])
                for item in each
                if item.group != "memory"  # where Newton's method begins is nothing that its solution depends on
            )
            for key, each in lists.items()
        }
        first = len(self._program.layout.memory) - len(list_program_switches(self._program))  # modes come behind
        self._moded = {
            (entry, i)
            for entry, several in found.items()
            for i, each in enumerate(several)
            if any(item.group == "memory" and item.index >= first for item in each)
        }
        on = {item.on for each in found.get("surfaces", []) for item in described[id(each)]}
        self._by_modes = tuple(VariableDependency(name) for name in sorted(on))
        return {entry: [described[id(each)] for each in several] for entry, several in found.items()}


def _describe_quantity(quantity: DeclaredVariable, source: VariableSource, index: int) -> FmuVariable:
    """Return an output with the attributes common to all quantities."""
    return FmuVariable(
        name=quantity.name,
        value_reference=0,
        causality="output",
        initial="calculated",
        unit=quantity.unit,
        display_unit=quantity.display_unit,
        minimum=_optional_float(quantity.minimum),
        maximum=_optional_float(quantity.maximum),
        nominal=_optional_float(quantity.nominal),
        description=quantity.description,
        source=source,
        index=index,
    )


def _declare_types(
    variables: tuple[FmuVariable, ...],
) -> tuple[tuple[FmuVariable, ...], tuple[TypeDefinition, ...]]:
    """Return the variables with their declared types, and these types."""
    types = map_units_to_quantity_types(variables)
    enumerated = form_solver_enumeration(
        [*(variable.name for variable in variables), *(item.name for item in types.values())]
    )
    typed = tuple(
        dataclasses.replace(
            variable,
            declared_type=enumerated.name
            if variable.kind == "enumeration"
            else (types[variable.unit].name if variable.unit in types else None),
        )
        for variable in variables
    )
    return typed, (*types.values(), enumerated)


def _optional_float(value: float | None) -> float | None:
    """Return a value as a float; None stays None."""
    return None if value is None else float(value)


def _list_units(variables: Sequence[FmuVariable], model: str) -> tuple[InterfaceUnit, ...]:
    """Return every unit and display unit in use, in the order of first use."""
    shown: dict[str, dict[str, DisplayUnit]] = {}
    faults = []
    for variable in variables:
        if variable.kind == "enumeration":
            continue
        try:
            parse_unit(variable.unit)
            entry = shown.setdefault(variable.unit, {})
            if variable.display_unit is not None:
                factor, offset = display_unit_conversion(variable.unit, variable.display_unit)
                entry[variable.display_unit] = DisplayUnit(variable.display_unit, factor, offset)
        except ValueError as error:
            faults.append(Fault(str(error), variable.name))
    if faults:
        raise InterfaceError(f"{model} cannot be described as an FMU:", faults)
    parsed = {name: parse_unit(name) for name in shown}
    return tuple(
        InterfaceUnit(name, unit.factor, unit.offset, unit.whole_exponents, tuple(shown[name].values()))
        for name, unit in parsed.items()
    )


def _describe_experiment(experiment: DeclaredExperiment) -> DefaultExperiment:
    """Return the default experiment, from 0 s on."""
    return DefaultExperiment(0.0, float(experiment.stop), float(experiment.step), float(experiment.tolerance))


def _choose_solver_settings(experiment: DeclaredExperiment, target: FmuTarget) -> FmuSolverSettings:
    """Return the settings of the chosen solver, or of the one that the experiment requests."""
    if target.solver is not None:
        kind = find_integration_method_by_name(target.solver).kind
    elif experiment.solver == "fixed":
        kind = "fixed"
    else:
        kind = "implicit" if experiment.stiff else "explicit"
    step = _optional_float(experiment.internal_step) if find_integration_method_by_kind(kind).fixed else None
    return FmuSolverSettings(kind, float(experiment.tolerance), step)


def _experiment_faults(experiment: DeclaredExperiment, target: FmuTarget) -> Iterator[Fault]:
    """Yield why the experiment does not fit the chosen solver."""
    if experiment.solver == "fixed" and experiment.stiff and target.solver is None:
        yield Fault(
            "the fixed-step solver is explicit, and the model is said to be stiff",
            "experiment",
            "leave out solver='fixed' or stiff=True",
        )


def _shape_faults(
    definition: DeclaredModelContent, equations: EquationsOfMotion, program: ScalarProgram
) -> Iterator[Fault]:
    """Yield faults where model, equations and program do not belong together."""
    pairs = {
        "coordinates": (len(definition.coordinates), len(equations.q)),
        "speeds": (len(definition.speeds), len(equations.u)),
        "auxiliary states": (len(definition.auxiliary_states), len(equations.z)),
        "free parameters": (sum(not each.calculated for each in definition.parameters), len(program.layout.parameters)),
        "inputs": (len(definition.inputs), len(program.layout.inputs)),
        "states": (len(equations.states), len(program.layout.states)),
    }
    for name, (declared, found) in pairs.items():
        if declared != found:
            yield Fault(f"the model declares {declared} {name}, the equations have {found}")
