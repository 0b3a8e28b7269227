"""``TargetModelDescription``: what every target writes of a model beside its equations, decided once for all of them.

Names, units, start values and the default experiment come from the FMU's variables; a target prints them and changes
nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

VECTOR_MEANINGS = {"x": "states", "r": "inputs", "p": "parameters", "y": "outputs"}
"""Vectors of all targets, in the order in which they are listed, and what they hold."""


@dataclass(frozen=True, slots=True)
class TargetModelVariable:
    """A variable of the model in one of the vectors of a target.

    Attributes:
        name: In the FMU, as ``bob.x``.
        unit: In Modelica's notation; empty: none is declared.
        value: Start value, or the parameter's value.
        nominal: None: not declared.
        minimum: None: not declared.
        maximum: None: not declared.
        description: One line; may be empty.
    """

    name: str
    unit: str
    value: float = 0.0
    nominal: float | None = None
    minimum: float | None = None
    maximum: float | None = None
    description: str = ""


@dataclass(frozen=True, slots=True)
class TargetModelDescription:
    """A model as the targets write it.

    Attributes:
        name: Of the model; a C identifier.
        description: One line; may be empty.
        origin: How the equations were derived, as a clause.
        states: x, in its order, with start values on the constraints; likewise the following.
        inputs: r, with start values.
        parameters: p, the free ones, with their values.
        outputs: y.
        stop: End of the default experiment in s; it begins at 0.
        step: Communication step in s.
        steps: Number of communication steps.
        held: Inputs over each step: one row per step, or one row if they never change.
        tolerance: Relative tolerance of the experiment.
        memory: Initial discrete memory; empty where the equations have none.
    """

    name: str
    description: str
    origin: str
    states: tuple[TargetModelVariable, ...]
    inputs: tuple[TargetModelVariable, ...]
    parameters: tuple[TargetModelVariable, ...]
    outputs: tuple[TargetModelVariable, ...]
    stop: float
    step: float
    steps: int
    held: tuple[tuple[float, ...], ...]
    tolerance: float
    memory: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if len(self.held) not in (1, self.steps):
            raise ValueError(f"{len(self.held)} rows of inputs for {self.steps} steps")

    @property
    def vectors(self) -> dict[str, tuple[TargetModelVariable, ...]]:
        """What stands in each vector, by its letter (:data:`VECTOR_MEANINGS`)."""
        return dict(zip(VECTOR_MEANINGS, (self.states, self.inputs, self.parameters, self.outputs), strict=True))

    def describe_lines(self, first_index: int) -> tuple[str, ...]:
        """Return the comment that heads the source code, line by line: model, origin, vectors with units.

        Args:
            first_index: Of a vector in the target's language, 0 or 1.
        """
        return tuple(_on_one_line(line) for line in self._describe(first_index))

    def _describe(self, first_index: int) -> Iterator[str]:
        """Yield the lines of the comment."""
        yield f"{self.name}: {self.description}" if self.description else self.name
        yield f"Equations of motion by {self.origin}, written by mb2fmu; changes are lost with the next export."
        yield ""
        yield "t is the time in s. The vectors, by index:"
        for letter, quantities in self.vectors.items():
            yield f"{letter}, {VECTOR_MEANINGS[letter]}{'' if quantities else ': none'}"
            for i, quantity in enumerate(quantities, first_index):
                unit = f" in {quantity.unit}" if quantity.unit else ""
                yield f"  {i}  {quantity.name}{unit}{f': {quantity.description}' if quantity.description else ''}"


def _on_one_line(text: str) -> str:
    """Return a text without line breaks and control characters."""
    return "".join(c if c.isprintable() else " " for c in text).rstrip()
