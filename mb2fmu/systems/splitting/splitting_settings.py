"""``SplittingSettings``: filter, stiffness, damping and delay of a cut, and known start values."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import sympy as sm

from mb2fmu.errors import Fault
from mb2fmu.mechanics.mechanism.records.mechanism_records import Mechanism
from mb2fmu.model.quantity_declarations import AuxiliaryState, Coordinate, Input, Speed
from mb2fmu.systems.wired_system import CouplingError


@dataclass(frozen=True)
class SplittingSettings:
    """Settings of a cut.

    Attributes:
        bandwidth: Bandwidth of the filter that motion passes through, rad/s.
        stiffness: Of a bushing, force per violation of its constraint; at a joint along each axis (N/m). Of a line: its
            impedance divided by its delay. 0, here and in the next three: :func:`choose_bushing_stiffness` gives it.
        damping: Damping of a bushing, force per rate of the violation (N·s/m).
        angular_stiffness: Angular stiffness of a bushing or line at a joint, about each axis (N·m/rad).
        angular_damping: Angular damping of a bushing at a joint, about each axis (N·m·s/rad).
        delay: Delay of a line, s.
        flange_mass: Mass of the flange at a bushing or line, kg.
        flange_inertia: Moment of inertia of the flange, kg·m². None: :func:`choose_bushing_stiffness` gives it.
        initial_accelerations: Speed → u' at the start, where it is known.
        state_starts: State → its value at the start, where guesses were solved for.
        initial_reactions: Joint → force and torque of the inner side on the outer one at the start, in N, shape (6,).
    """

    bandwidth: float = 400.0
    stiffness: float = 0.0
    damping: float = 0.0
    angular_stiffness: float = 0.0
    angular_damping: float = 0.0
    delay: float = 1e-3
    flange_mass: float = 0.0
    flange_inertia: float | None = None
    initial_accelerations: Mapping[str, float] = field(default_factory=dict)
    state_starts: Mapping[str, float] = field(default_factory=dict)
    initial_reactions: Mapping[str, tuple[float, ...]] = field(default_factory=dict)

    def start_values(self, mechanism: Mechanism) -> dict[sm.Symbol, sm.Expr]:
        """Return everything that expressions of a mechanism contain → its number at the start."""
        declarations = mechanism.declared
        values: dict[sm.Symbol, sm.Expr] = {mechanism.t: sm.Float(0.0)}
        free_parameter_values = [parameter.value for parameter in declarations.parameters if not parameter.calculated]
        for symbol, value in zip(mechanism.p, free_parameter_values, strict=True):
            values[symbol] = sm.Float(float(value))
        declared_variables: tuple[Coordinate | Speed | AuxiliaryState | Input, ...] = (
            *declarations.coordinates, *declarations.speeds, *declarations.auxiliary_states, *declarations.inputs,
        )  # fmt: skip
        start_list: list[float] = [variable.start for variable in declared_variables]
        for symbol, start in zip((*mechanism.q, *mechanism.u, *mechanism.z, *mechanism.r), start_list, strict=True):
            values[symbol] = sm.Float(self.state_starts.get(symbol.name, start))
        for assignment in mechanism.calculated_parameters:
            values[assignment.symbol] = assignment.expression.xreplace(values)
        return values


PHASES_PER_STEP = {"bushing": 0.37, "line": 0.1}
"""Frequency of a part of mean mass (of the lightest, on a line) on an element that nobody chose, times the
communication step or the delay."""
LARGEST_PHASE_OF_LIGHTEST = 1.0
"""Of the lightest part on a bushing: beyond it steps err more, and take more passes (8 at 1.0, 10 at 1.3)."""
DAMPING_RATIO = 0.2
"""Damping ratio of that motion."""
PARASITIC_FRACTION = 1e-3
"""Of a part's moment of inertia: what the flange adds, where nobody chose its own."""
LARGEST_FLANGE_INERTIA = 1e-4  # kg·m², and that of parts without inertia


def choose_bushing_stiffness(
    settings: SplittingSettings,
    mechanism: Mechanism,
    part_of_body: Sequence[int],
    step: float,
    method: Literal["bushing", "line"] = "bushing",
) -> SplittingSettings:
    """Choose stiffness for elements without one, such that the steps resolve it.

    A bushing gives way by F / k, F being what the parts exchange, and the steps err by about as much as k h² is of a
    mass that it moves: with unequal parts neither is that of the lightest one. So a mass of the parts' geometric mean
    has 0.37 rad of its motion on a bushing within a step, and the lightest part 1 rad at most. That is where both
    errors are alike: of three FMUs of a chain of equal links the largest error is 3.2e-2 at 0.1 rad, 5.9e-4 at 0.37 and
    1.2e-3 at 0.5; of links of 1, 0.2 and 3 kg, by the lightest one's, 1.6e-2 at 0.4 rad, 3.0e-3 at 0.8 (0.39 of the
    mean), 2.5e-3 at 1.0 and 5.0e-3 at 1.3: no stiffness gives 1e-3 there, half the step does. Half or two and a half
    times the damping is worse. A line has a hundredth of the lightest part's mass as parasitic inertia, k T² = 0.01 m.
    The flange's own inertia is a thousandth of the smallest of a part: behind a link of 0.2 kg and 0.5 m, 1e-4 kg·m²
    made speeds 3e-3 wrong at any step.

    Args:
        settings: Settings, with zeros where nothing was chosen.
        mechanism: The whole mechanism.
        part_of_body: Number of the part of each body.
        step: Communication step or delay in s.
        method: The element.

    Raises:
        CouplingError: If something must be chosen, and the bodies of a part have no mass.
    """
    start_values = settings.start_values(mechanism)
    mass_of_part: dict[int, float] = {}
    inertia_of_part: dict[int, float] = {}
    for body, part in zip(mechanism.bodies, part_of_body, strict=True):
        mass_of_part[part] = mass_of_part.get(part, 0.0) + float(body.mass.xreplace(start_values))
        largest_moment = (
            0.0
            if body.inertia is None
            else max(float(body.inertia[axis, axis].xreplace(start_values)) for axis in range(3))
        )
        inertia_of_part[part] = inertia_of_part.get(part, 0.0) + largest_moment
    smallest_mass, smallest_inertia = (
        min(mass_of_part.values(), default=0.0),
        min(inertia_of_part.values(), default=0.0),
    )
    if not (settings.stiffness and settings.damping) and not smallest_mass > 0.0:
        fault = Fault("a part has no mass, so no stiffness follows from it", "--stiffness", "give it, and --damping")
        raise CouplingError(f"{mechanism.declared.name} cannot be cut:", [fault])
    flange_inertia = settings.flange_inertia
    if flange_inertia is None:
        flange_inertia = min(PARASITIC_FRACTION * smallest_inertia or math.inf, LARGEST_FLANGE_INERTIA)
    phase = PHASES_PER_STEP[method]
    moved_mass = phase**2 * smallest_mass
    if method == "bushing" and smallest_mass > 0.0:
        mean_mass = math.exp(sum(map(math.log, mass_of_part.values())) / len(mass_of_part))
        moved_mass = min(phase**2 * mean_mass, LARGEST_PHASE_OF_LIGHTEST**2 * smallest_mass)
    stiffness = settings.stiffness or moved_mass / step**2
    angular_stiffness = settings.angular_stiffness or phase**2 * max(smallest_inertia, flange_inertia) / step**2
    return replace(
        settings,
        stiffness=stiffness,
        damping=settings.damping or 2.0 * DAMPING_RATIO * math.sqrt(stiffness * smallest_mass),
        angular_stiffness=angular_stiffness,
        angular_damping=settings.angular_damping
        or 2.0 * DAMPING_RATIO * math.sqrt(angular_stiffness * max(smallest_inertia, flange_inertia)),
        flange_inertia=flange_inertia,
    )
