"""Forces and torques on links, and efforts that were added along joints, in the independent import of a robot's file.

With J_v of the point and J_w of the link from that reading, a force F and a torque T add J_vᵀ F and J_wᵀ T to f. Loads
of a side file are read from that file again: what they act on, where, and the names of their inputs.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import sympy as sm
from sympy.core.function import AppliedUndef

from mb2fmu.model.supported_functions import NoEvent, Pre
from mb2fmu.validation.evaluation_plans.lambdified_scalar_functions import compile_scalar_function
from mb2fmu.validation.independent_import.independent_urdf_equations import Array, LinkMotion, Pose
from mb2fmu.validation.source_checks.source_symbol_slots import SympySourceEvaluationError

GROUND_POSE: Pose = (np.eye(3), np.zeros(3))
_DIFFERENCE_STEP = 1e-7
_DEFAULT_LOAD_WORDS: Sequence[str] = ("force",)  # of a table that does not name it


@dataclass(frozen=True, slots=True)
class LinkLoad:
    """A force at a point of a link, or a torque on it.

    Attributes:
        torque: True: a torque.
        link: It acts on.
        offset: Of the point, m, in the link's axes.
        axes: Link along whose axes the components are; empty: the ground's.
        components: Three expressions.
    """

    torque: bool
    link: str
    offset: Sequence[float]
    axes: str
    components: Sequence[sm.Expr]


@dataclass(frozen=True, slots=True)
class LoadMotionVectorSymbols:
    """Vectors of the motion that expressions contain.

    Attributes:
        quantity: ``position``, ``velocity`` or ``angular velocity``.
        link: Of which; empty: the ground.
        offset: Of the point, m, in the link's axes.
        symbols: Three.
    """

    quantity: str
    link: str
    offset: Sequence[float]
    symbols: Sequence[sm.Expr]


def read_load_tables(text: bytes) -> list[Mapping[str, Any]]:
    """Return the loads of a side file, unchanged."""
    tables = tomllib.loads(text.decode()).get("loads", [])
    return [{"frame": item} if isinstance(item, str) else item for item in tables]


def read_independent_link_loads(
    tables: Sequence[Mapping[str, Any]], names: Sequence[str], links: Iterable[str], inputs: Mapping[str, sm.Expr]
) -> list[LinkLoad]:
    """Return the loads of a side file.

    Args:
        tables: As written.
        names: Names of the loads in the FMU.
        links: Of the robot.
        inputs: Name → symbol.
    """
    known_links, loads = {*links}, []
    for table, name in zip(tables, names, strict=True):
        load_kinds = table.get("of", _DEFAULT_LOAD_WORDS)
        axes = str(table.get("axes", ""))
        for load_kind in [load_kinds] if isinstance(load_kinds, str) else dict.fromkeys(load_kinds):
            offset = table.get("offset", (0.0, 0.0, 0.0))
            numbers = offset.replace(",", " ").split() if isinstance(offset, str) else offset
            components = [inputs[f"{name}.{load_kind}.{axis}"] for axis in "xyz"]
            place = tuple(map(float, numbers))
            loads.append(
                LinkLoad(load_kind == "torque", table["frame"], place, axes if axes in known_links else "", components)
            )
    return loads


class AddedGeneralizedForces:
    """Generalized forces of added loads and efforts, in the columns of the independent import.

    Args:
        loads: On links.
        efforts: (column, expression) along the speeds.
        motion_vectors: Vectors of the motion that the expressions may contain.
        symbols: That the expressions may contain, in the order of the values.
        definitions: Further symbol that they may contain → its expression in the symbols, and in further ones.
        place_of_link: A link's name → its frame in the frame of the independent import for it.
        state_rates: Derivatives of states that were added.

    Raises:
        ValueError: If there is something in an expression that has no value here.
    """

    def __init__(
        self,
        loads: Sequence[LinkLoad],
        efforts: Sequence[tuple[int, sm.Expr]],
        motion_vectors: Sequence[LoadMotionVectorSymbols],
        symbols: Sequence[sm.Expr],
        definitions: Mapping[sm.Expr, Any],
        place_of_link: Callable[[str], Pose],
        state_rates: Sequence[sm.Expr] = (),
    ) -> None:
        self._loads, self._columns, self._place_of_link = loads, [column for column, _ in efforts], place_of_link
        self._motion_vectors = motion_vectors
        all_symbols = [*symbols, *(symbol for each in motion_vectors for symbol in each.symbols)]
        plain_symbols = {symbol: sm.Dummy(f"x{k}", real=True) for k, symbol in enumerate(all_symbols)}
        load_expressions = [*(e for _, e in efforts), *(c for load in loads for c in load.components)]
        self._first_rate = len(load_expressions)
        replaced: dict[sm.Basic, sm.Basic] = {}
        expressions = [
            _replace_symbols(sm.sympify(e), plain_symbols, definitions, replaced)
            for e in (*load_expressions, *state_rates)
        ]
        unknown_symbols = set().union(*(e.atoms(sm.Symbol, AppliedUndef, Pre) for e in expressions)) - {
            *plain_symbols.values()
        }
        if unknown_symbols:
            raise ValueError(f"{', '.join(sorted(map(str, unknown_symbols)))} has no value")
        self._values = compile_scalar_function(list(plain_symbols.values()), expressions)

    @property
    def links(self) -> dict[str, None]:
        """Links whose motions :meth:`evaluate_forces` needs."""
        names = [name for load in self._loads for name in (load.link, load.axes)]
        return dict.fromkeys(name for name in (*names, *(each.link for each in self._motion_vectors)) if name)

    def evaluate_forces(
        self, values: Sequence[float], motions: Mapping[str, LinkMotion], size: int
    ) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
        """Return the generalized forces, shape (n,), and the derivatives of added states.

        Each with the size of its terms before they cancel.

        Args:
            values: Of the symbols.
            motions: Of :attr:`links`.
            size: n.
        """
        motion_values, sizes = self.evaluate_motion_vectors(motions)
        numbers, term_sizes = self._evaluate_with_sizes(values, motion_values, sizes)
        total, total_sizes = np.zeros(size), np.zeros(size)
        for k, column in enumerate(self._columns):
            total[column] += numbers[k]
            total_sizes[column] += term_sizes[k]
        for k, load in enumerate(self._loads):
            first = len(self._columns) + 3 * k
            vector = numbers[first : first + 3]
            R, p = self._place_of_link(load.link)
            motion = motions[load.link]
            axes = motions[load.axes].R @ self._place_of_link(load.axes)[0] if load.axes else np.eye(3)
            if load.torque:
                J = motion.Jw
            else:
                arm = motion.R @ (p + R @ np.asarray(load.offset))
                J = motion.Jv + np.cross(motion.Jw, arm, axis=0)
            total += J.T @ (axes @ vector)
            total_sizes += np.abs(J.T) @ (np.abs(axes) @ term_sizes[first : first + 3])
        return (total, total_sizes), (numbers[self._first_rate :], term_sizes[self._first_rate :])

    def evaluate_motion_vectors(self, motions: Mapping[str, LinkMotion]) -> tuple[Array, Array]:
        """Return the values of what is seen of the motion, and the size of the terms that each is a sum of."""
        values, sizes = [], []
        for vector in self._motion_vectors:
            offset = np.asarray(vector.offset, dtype=float)
            if not vector.link:
                values.append(offset if vector.quantity == "position" else np.zeros(3))
                sizes.append(np.abs(values[-1]))
                continue
            R, p = self._place_of_link(vector.link)
            motion = motions[vector.link]
            arm = motion.R @ (p + R @ offset)
            value = {
                "position": motion.p + arm,
                "velocity": motion.v + np.cross(motion.w, arm),
                "angular velocity": motion.w,
            }[vector.quantity]
            size = {"position": motion.p, "velocity": motion.v, "angular velocity": motion.w}[vector.quantity]
            arm_size = (
                arm if vector.quantity == "position" else np.linalg.norm(motion.w) * np.linalg.norm(arm) * np.ones(3)
            )
            values.append(value)
            sizes.append(np.linalg.norm(size) + np.abs(arm_size))
        return np.concatenate([*values, np.zeros(0)]), np.concatenate([*sizes, np.zeros(0)])

    def _evaluate_with_sizes(self, values: Sequence[float], motion_values: Array, sizes: Array) -> tuple[Array, Array]:
        """Return all scalars and their sizes before terms cancel: a stiff spring has a small force between large ones.

        Of what is seen of the motion these are slopes (by differences) times what its round-off is a part of.
        """
        numbers = self._evaluate_real(values, motion_values)
        term_sizes = np.abs(numbers)
        for k, size in enumerate(sizes):
            step = _DIFFERENCE_STEP * (1.0 + size)
            changed_values = motion_values.copy()
            changed_values[k] += step
            term_sizes += np.abs(self._evaluate_real(values, changed_values) - numbers) / step * size
        return numbers, term_sizes

    def _evaluate_real(self, values: Sequence[float], motion_values: Array) -> Array:
        """Return all scalars.

        Raises:
            SympySourceEvaluationError: If one of them has no real value at the point.
        """
        try:
            numbers = np.array(self._values(*values, *motion_values))
        except (ArithmeticError, ValueError) as error:
            raise SympySourceEvaluationError(f"an added force or state has no value: {error}") from None
        if np.iscomplexobj(numbers) or not np.all(np.isfinite(numbers)):
            raise SympySourceEvaluationError("an added force or state has no real value")
        return np.asarray(numbers, dtype=float)


def _replace_symbols(
    part: sm.Basic,
    plain_symbols: Mapping[sm.Expr, sm.Expr],
    definitions: Mapping[sm.Expr, Any],
    replaced: dict[sm.Basic, sm.Basic],
) -> sm.Basic:
    """Return a part of an expression in the plain symbols; what makes no event is the same number.

    Args:
        part: Of an expression.
        plain_symbols: Of functions of time.
        definitions: Of symbols, which may contain each other.
        replaced: Parts that were met before, each of which stands in many places; extended.
    """
    if part not in replaced:
        if part in definitions:
            found = _replace_symbols(sm.sympify(definitions[part]), plain_symbols, definitions, replaced)
        elif part in plain_symbols:
            found = plain_symbols[part]
        else:
            arguments = [_replace_symbols(argument, plain_symbols, definitions, replaced) for argument in part.args]
            changed = part if tuple(arguments) == part.args else part.func(*arguments)
            found = arguments[0] if isinstance(part, NoEvent) else changed
        replaced[part] = found
    return replaced[part]
