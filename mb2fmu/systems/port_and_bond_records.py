"""A resolved system: components, their connected variables, links, bonds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

SteppingMethod = Literal["jacobi", "gauss-seidel"]
EXTRAPOLATION_ORDERS = (0, 1, 2)


@dataclass(frozen=True, slots=True)
class ComponentPort:
    """One connected or recorded variable of a component.

    Attributes:
        component: Index into the components.
        name: Name of the variable in its FMU.
        reference: Value reference.
        unit: Unit of measure by the FMU; empty without one.
    """

    component: int
    name: str
    reference: int
    unit: str = ""


@dataclass(frozen=True, slots=True)
class PortLink:
    """inputs[target] = factor * outputs[source] + offset, ``delay`` ago; indices into the coupling's ports.

    Attributes:
        source: Index of an output.
        target: Index of an input.
        factor: Factor of the value.
        offset: Offset of the value.
        delay: Delay in s; 0: none.
        start: Value that arrives before the first sent value.
    """

    source: int
    target: int
    factor: float = 1.0
    offset: float = 0.0
    delay: float = 0.0
    start: float = 0.0


@dataclass(frozen=True, slots=True)
class PowerBondVariable:
    """A variable of a power bond: an input or an output, in SI units after ``factor``.

    Attributes:
        kind: ``input`` or ``output``.
        index: Into the coupling's inputs or outputs.
        factor: SI units per unit of the variable.
        rate: True: the time derivative of the variable is used (a position stands for its velocity).
    """

    kind: Literal["input", "output"]
    index: int
    factor: float = 1.0
    rate: bool = False


@dataclass(frozen=True, slots=True)
class PowerBondSide:
    """Power into one component = sign * effort * flow, in W."""

    component: int
    effort: PowerBondVariable
    flow: PowerBondVariable
    sign: float = 1.0


@dataclass(frozen=True, slots=True)
class PowerBond:
    """A connection over which power flows: the sum over all sides is zero if the coupling is exact."""

    name: str
    sides: tuple[PowerBondSide, ...]


@dataclass(frozen=True, slots=True)
class SystemWiring:
    """Ports, links and feedthrough of a system: all data of its numerics.

    Attributes:
        components: Names.
        inputs: Connected inputs.
        outputs: Connected and recorded outputs.
        links: One per connected input that a component feeds.
        feedthrough: (input, output) of one component: the output depends on the input at the same moment.
        bonds: Power connections.

    Raises:
        ValueError: If an input has two sources, or a pair of ``feedthrough`` belongs to two components.
    """

    components: tuple[str, ...]
    inputs: tuple[ComponentPort, ...]
    outputs: tuple[ComponentPort, ...]
    links: tuple[PortLink, ...]
    feedthrough: frozenset[tuple[int, int]] = frozenset()
    bonds: tuple[PowerBond, ...] = ()

    def __post_init__(self) -> None:
        targets = [link.target for link in self.links]
        if len(set(targets)) != len(targets):
            raise ValueError("an input has two sources")
        if any(
            self.inputs[input_index].component != self.outputs[output_index].component
            for input_index, output_index in self.feedthrough
        ):
            raise ValueError("feedthrough is within one component")

    def input_name(self, index: int) -> str:
        """Return ``component.variable`` of an input."""
        port = self.inputs[index]
        return f"{self.components[port.component]}.{port.name}"

    def output_name(self, index: int) -> str:
        """Return ``component.variable`` of an output."""
        port = self.outputs[index]
        return f"{self.components[port.component]}.{port.name}"

    def inputs_of(self, component: int) -> tuple[int, ...]:
        """Return indices of a component's inputs."""
        return tuple(index for index, port in enumerate(self.inputs) if port.component == component)

    def outputs_of(self, component: int) -> tuple[int, ...]:
        """Return indices of a component's outputs."""
        return tuple(index for index, port in enumerate(self.outputs) if port.component == component)


def _find_feedthrough_inputs(wiring: SystemWiring, output: int) -> tuple[str, ...]:
    """Return connected inputs on which a connected output depends at the same instant, as ``component.variable``.

    A master that passes the output on before it sets these inputs passes on an old value.
    """
    linked_inputs = {link.target for link in wiring.links if not link.delay}
    return tuple(
        wiring.input_name(input_index)
        for input_index, output_index in sorted(wiring.feedthrough)
        if output_index == output and input_index in linked_inputs
    )


def list_inputs_with_scaled_connections(wiring: SystemWiring) -> tuple[str, ...]:
    """Return the inputs whose connections have a factor or an offset, as ``component.variable``."""
    return tuple(wiring.input_name(link.target) for link in wiring.links if (link.factor, link.offset) != (1.0, 0.0))


def find_outputs_read_before_inputs(wiring: SystemWiring) -> dict[int, str]:
    """Return output index → warning for masters that read this output before its inputs are set."""
    warnings = {}
    for source in sorted({link.source for link in wiring.links if not link.delay}):
        if input_names := _find_feedthrough_inputs(wiring, source):
            warnings[source] = (
                f"{wiring.output_name(source)} depends on {', '.join(input_names)} at the same moment: "
                "read it after they are set, else an old value is passed on"
            )
    return warnings


@dataclass(frozen=True, slots=True, kw_only=True)
class CommunicationStepSettings:
    """Settings of the stepping.

    Attributes:
        step: Communication step in s; the first one if ``accuracy`` is given.
        method: ``jacobi``: all components with inputs from the past; ``gauss-seidel``: one after another, later ones
            with what earlier ones have just given.
        order: Order of the polynomials that inputs follow over a step: 0 held, 1 lines, 2 parabolas.
        passes: Largest number of iterations of one step; more than one needs components that can restore a state.
        converged: Iterations end when inputs at the step's end change by less than this, relative to their size.
        jacobian: Iterations are Newton steps with the interface Jacobian, not repeated substitution.
        accuracy: None: steps of one size. Else steps are chosen so that the inputs' error over one step stays below
            this, of their own size; needs components that can go back and step by any size.
        longest: Longest communication step in s with ``accuracy``; None: a hundred times ``step``.
        substeps: Steps of a component over one communication step, if it cannot follow polynomials by itself.
        loops: ``refuse`` algebraic loops, or ``solve`` them by Newton's method at each communication point.
        unstable: ``refuse`` couplings that are predicted to explode, or ``run`` them.
        sequence: Names of components in the order of ``gauss-seidel``; (): by their dependencies.
    """

    step: float
    method: SteppingMethod = "gauss-seidel"
    order: int = 1
    passes: int = 1
    converged: float = 1e-9
    jacobian: bool = False
    accuracy: float | None = None
    longest: float | None = None
    substeps: int = 1
    loops: Literal["refuse", "solve"] = "refuse"
    unstable: Literal["refuse", "run"] = "refuse"
    sequence: tuple[str, ...] = ()

    @property
    def needs_rollback(self) -> bool:
        """Whether components must be able to return to an earlier state."""
        return self.passes != 1 or self.accuracy is not None
