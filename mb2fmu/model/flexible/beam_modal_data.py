"""Modal data of a straight uniform beam: families of modes at common stations, along any axis of the body's frame."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from mb2fmu.errors import Fault, ModelError
from mb2fmu.model.flexible.beam_modes import (
    END_KINDS,
    SERIES_MARGIN,
    BeamModeConstants,
    BeamModeFamily,
    compute_bending_modes,
    compute_torsion_or_extension_modes,
    foreshortening,
    list_beam_mode_families,
    lobatto_stations,
)
from mb2fmu.model.flexible.beam_section import BeamSection
from mb2fmu.model.flexible.modal_data import FlexibleBodyModalData, convert_frequency_limit_to_hertz, make_modal_data

Array = npt.NDArray[np.float64]
BeamTheory: TypeAlias = Literal["euler-bernoulli", "timoshenko"]
THEORIES = ("euler-bernoulli", "timoshenko")

MAX_FAMILY_MODES = 30
"""Modes of one family: higher ones are far beyond beam theory, and stiff."""

ROUNDING_AT_ENDS = 1e-12
"""Share of a field's largest value below which its value at an end is a rounding error."""


_NO_ROOM_TO_SHORTEN = (
    "both ends are held along the beam, so it cannot shorten: bending stretches it, by a force of third order",
    "give ends=('clamped', 'pinned'), whose tip slides; or foreshortening=False for deflections far below its depth",
)
"""Fault of foreshortening where no end is free to follow, and its remedy."""


@dataclass(frozen=True, slots=True)
class BeamProperties:
    """A straight uniform beam; see ``FlexibleBody.beam`` for the meaning of each.

    Attributes:
        length: m.
        E: Pa.
        rho: kg/m³.
        section: Area and moments.
        G: Pa; None where nothing shears.
        theory: Of :data:`THEORIES`.
        rotary_inertia: Whether sections have rotational inertia.
        axis: ``x``, ``y`` or ``z``.
        ends: (root, tip).
    """

    length: float
    E: float
    rho: float
    section: BeamSection
    G: float | None
    theory: str
    rotary_inertia: bool
    axis: str
    ends: tuple[str, str]

    @property
    def axially_held(self) -> tuple[bool, bool]:
        """Whether root and tip are held along the beam; a pinned tip slides."""
        root, tip = self.ends
        return root != "free", tip == "clamped" or (tip == "pinned" and root == "free")

    def line_stiffness(self, kind: str, direction: int) -> BeamModeConstants:
        """Return the constants of a family: its kind, and the local axis of its displacement (1: y, 2: z)."""
        section = self.section
        if kind == "bending":
            second = section.I_z if direction == 1 else section.I_y
            sheared = self.theory == "timoshenko" and self.G is not None
            shear = section.shear_coefficient * (self.G or 0.0) * section.area if sheared else math.inf
            rotary = self.rho * second if self.rotary_inertia else 0.0
            return BeamModeConstants(self.E * second, self.rho * section.area, shear, rotary)
        if kind == "torsion":
            return BeamModeConstants(
                (self.G or 0.0) * section.torsional_stiffness_constant, self.rho * section.polar_moment
            )
        return BeamModeConstants(self.E * section.area, self.rho * section.area)

    def modes(self, kind: str, direction: int, count: int, places: Array) -> BeamModeFamily:
        """Return the lowest modes of a family at places along the beam."""
        line = self.line_stiffness(kind, direction)
        if kind == "bending":
            return compute_bending_modes(line, self.length, self.ends, count, places)
        return compute_torsion_or_extension_modes(line, self.length, self.axially_held, count, places)


def make_beam_modal_data(
    properties: BeamProperties,
    modes: Mapping[str, int] | Sequence[str],
    up_to: float | str | None,
    *,
    foreshortening: bool,
    damping: Any,
    stations: Sequence[float],
    where: str,
) -> FlexibleBodyModalData:
    """Return the modal data of a beam.

    Args:
        properties: Of the beam.
        modes: Family → number of modes, or names of families.
        up_to: Frequency limit in Hz, or text with a unit.
        foreshortening: Whether bending shortens it.
        damping: As ``FlexibleBody`` takes it.
        stations: Further nodes, m from the root.
        where: ``file:line`` for messages.

    Raises:
        ModelError: With every fault.
    """
    faults = [*_property_faults(properties), *_mode_faults(properties, modes, up_to), *_station_faults(stations)]
    if not faults and foreshortening and all(properties.axially_held) and any("bending" in name for name in modes):
        faults.append(_NO_ROOM_TO_SHORTEN)
    if faults:
        raise ModelError("the beam cannot be used:", [Fault(what, where, remedy) for what, remedy in faults])
    axis = "xyz".index(properties.axis)
    kinds = list_beam_mode_families(axis)
    counts = _count_modes(properties, modes, up_to, kinds, where)
    nodes = 2 * (2 * max(counts.values()) + SERIES_MARGIN) + 6
    quadrature, weights = lobatto_stations(nodes, properties.length)
    places, mass = _merge_stations(quadrature, weights, stations)
    fields = _BeamModeFields.empty(sum(counts.values()), len(places))
    first = 0
    for family, count in counts.items():
        kind, direction = kinds[family]
        if not count:
            continue
        shapes = properties.modes(kind, direction, count, places)
        part = slice(first, first + count)
        fields.add_mode_family(kind, direction, part, shapes)
        if kind == "bending" and foreshortening:
            slopes = properties.modes(kind, direction, count, quadrature).slopes
            fields.add_foreshortening(part, _shortening(slopes, quadrature, weights, properties, places))
        first += count
    fields.zero_end_round_off()
    turned = properties.rotary_inertia and np.any(fields.rotations)
    of_second_order = foreshortening and (turned or np.any(fields.second_order))
    section, rho = properties.section, properties.rho
    moments = rho * np.array([section.polar_moment, section.I_y, section.I_z])
    local = np.zeros((len(places), 3))
    local[:, 0] = places
    return make_modal_data(
        nodes=np.roll(local, axis, axis=-1),
        mass=rho * section.area * mass,
        modes=np.roll(fields.displacements, axis, axis=-1),
        stiffness=fields.stiffness,
        damping=damping,
        rotations=np.roll(fields.rotations, axis, axis=-1),
        rotational_inertia=np.roll(mass[:, None] * moments, axis, axis=-1) if properties.rotary_inertia else None,
        second_order=np.roll(fields.second_order, axis, axis=-1) if of_second_order else None,
        where=where,
    )


@dataclass(frozen=True, slots=True)
class _BeamModeFields:
    """Fields of all modes in local axes: x along the beam."""

    stiffness: Array
    displacements: Array
    rotations: Array
    second_order: Array

    @classmethod
    def empty(cls, m: int, n: int) -> _BeamModeFields:
        """Return fields that are zero."""
        return cls(np.zeros(m), np.zeros((m, n, 3)), np.zeros((m, n, 3)), np.zeros((m, m, n, 3)))

    def add_mode_family(self, kind: str, direction: int, part: slice, shapes: BeamModeFamily) -> None:
        """Write the modes of one family; displacement along z turns the section about -y."""
        self.stiffness[part] = shapes.stiffness
        if kind == "torsion":
            self.rotations[part, :, 0] = shapes.deflections
            return
        self.displacements[part, :, direction] = shapes.deflections
        if kind == "bending":
            about, sign = (2, 1.0) if direction == 1 else (1, -1.0)
            self.rotations[part, :, about] = sign * shapes.rotations

    def zero_end_round_off(self) -> None:
        """Write zeros for rounding errors at the ends: an end that is held lies in the frame."""
        for array in (self.displacements, self.rotations, self.second_order):
            size = np.max(np.abs(array), axis=(-2, -1), keepdims=True)
            for end in (slice(0, 1), slice(-1, None)):
                values = array[..., end, :]
                array[..., end, :] = np.where(np.abs(values) > ROUNDING_AT_ENDS * size, values, 0.0)

    def add_foreshortening(self, part: slice, shortening: Array) -> None:
        """Write the displacement -½ ∫ w'² dx of bending in one plane."""
        self.second_order[part, part, :, 0] = -shortening


def _shortening(slopes: Array, quadrature: Array, weights: Array, properties: BeamProperties, places: Array) -> Array:
    """Return the foreshortening of a family at places along the beam."""
    return foreshortening(slopes, quadrature, weights, properties.axially_held, places)


def _merge_stations(quadrature: Array, weights: Array, stations: Sequence[float]) -> tuple[Array, Array]:
    """Return nodes along the beam in ascending order with their lengths; further ones have none."""
    length = float(quadrature[-1])
    extra = [x for x in stations if not np.any(np.isclose(quadrature, x, rtol=0.0, atol=1e-12 * length))]
    places, shares = np.concatenate([quadrature, extra]), np.concatenate([weights, np.zeros(len(extra))])
    order = np.argsort(places, kind="stable")
    return places[order], shares[order]


def _count_modes(
    properties: BeamProperties,
    modes: Mapping[str, int] | Sequence[str],
    up_to: float | str | None,
    kinds: Mapping[str, tuple[str, int]],
    where: str,
) -> dict[str, int]:
    """Return family → number of modes; those below the frequency limit where there is one.

    Raises:
        ModelError: If none is below it.
    """
    limit = math.inf if up_to is None else 2.0 * math.pi * convert_frequency_limit_to_hertz(up_to)
    counts = {}
    for family in modes:
        wanted = modes[family] if isinstance(modes, Mapping) else MAX_FAMILY_MODES
        if math.isfinite(limit):
            kind, direction = kinds[family]
            frequencies = properties.modes(kind, direction, wanted, np.array([0.0, properties.length])).frequencies
            wanted = int(np.sum(frequencies <= limit))
        counts[family] = wanted
    if not any(counts.values()):
        remedy = "give a higher limit, or numbers of modes such as {'bending_y': 2}"
        fault = Fault(f"up_to is {up_to!r}, and no mode of {', '.join(counts)} is below", where, remedy)
        raise ModelError("the beam cannot be used:", [fault])
    return counts


def _property_faults(properties: BeamProperties) -> Iterator[tuple[str, str]]:
    """Yield numbers and words that no beam has."""
    section = properties.section
    numbers: dict[str, Any] = {"length": properties.length, "E": properties.E, "rho": properties.rho}
    if isinstance(section, BeamSection):
        numbers |= {f"section.{name}": getattr(section, name) for name in ("area", "I_y", "I_z", "shear_coefficient")}
        if section.torsion_constant is not None:
            numbers["section.torsion_constant"] = section.torsion_constant
    else:
        yield f"section is {section!r}", "give a BeamSection, such as BeamSection.circle(0.01)"
    if properties.G is not None:
        numbers["G"] = properties.G
    for name, value in numbers.items():
        if not (isinstance(value, int | float | np.number) and 0.0 < value < math.inf):
            yield f"{name} is {value!r}", f"give a number > 0 as {name}, in SI units"
    if properties.theory not in THEORIES:
        yield f"theory is {properties.theory!r}", f"take one of {', '.join(THEORIES)}"
    if properties.theory == "timoshenko" and properties.G is None:
        yield "the theory of Timoshenko needs the shear modulus", "give G=…, in Pa"
    if properties.axis not in ("x", "y", "z"):
        yield f"axis is {properties.axis!r}", "take 'x', 'y' or 'z'"
    if len(properties.ends) != 2 or any(end not in END_KINDS for end in properties.ends):
        yield f"ends are {properties.ends!r}", f"give (root, tip), each one of {', '.join(END_KINDS)}"


def _mode_faults(
    properties: BeamProperties, modes: Mapping[str, int] | Sequence[str], up_to: float | str | None
) -> Iterator[tuple[str, str]]:
    """Yield families that a beam does not have, and numbers of modes that make no sense."""
    axis = properties.axis if properties.axis in ("x", "y", "z") else "x"
    known = list_beam_mode_families("xyz".index(axis))
    if isinstance(modes, str) or not len(modes):
        yield f"modes is {modes!r}", f"name families with their numbers, such as {{'{next(iter(known))}': 2}}"
        return
    strange = [family for family in modes if family not in known]
    yield from ((f"a beam along {axis} has no modes {family!r}", f"take {', '.join(known)}") for family in strange)
    for family, count in modes.items() if isinstance(modes, Mapping) else ():
        if not isinstance(count, int) or not 1 <= count <= MAX_FAMILY_MODES:
            yield f"{family} has {count!r} modes", f"give a number from 1 to {MAX_FAMILY_MODES}"
    if "torsion" in modes and properties.G is None:
        yield "torsion needs the shear modulus", "give G=…, in Pa"
    if "torsion" in modes and not properties.rotary_inertia:
        yield "torsion turns sections without inertia", "leave rotary_inertia=False out"
    if not isinstance(modes, Mapping) and up_to is None:
        yield "modes are named, not counted", "give up_to='200 Hz', or a number for each family"
    if up_to is not None and not _is_frequency(up_to):
        yield f"up_to is {up_to!r}", "give a frequency > 0 in Hz, or text such as '200 Hz'"


def _is_frequency(up_to: float | str) -> bool:
    """Return whether a limit is a frequency above zero."""
    try:
        return 0.0 < convert_frequency_limit_to_hertz(up_to) < math.inf
    except ValueError:
        return False


def _station_faults(stations: Sequence[float]) -> Iterator[tuple[str, str]]:
    """Yield stations that are no finite distances."""
    wrong = [x for x in stations if not (isinstance(x, int | float | np.number) and math.isfinite(x))]
    if wrong:
        yield f"stations are {wrong!r}", "give distances from the root in m"
