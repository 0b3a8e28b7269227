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

from mb2fmu.model.functions import NoEvent, Pre
from mb2fmu.validation.evaluation_plans.scalar_functions import compile_scalar_function
from mb2fmu.validation.independent_import.independent_urdf import Array, LinkMotion, Pose

GROUND_POSE: Pose = (np.eye(3), np.zeros(3))
_DIFFERENCE_STEP = 1e-7
_DEFAULT_LOAD_WORDS: Sequence[str] = ("force",)  # what a table asks for that does not say it


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
class MotionVectors:
    """What expressions name of the motion.

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
    found = tomllib.loads(text.decode()).get("loads", [])
    return [{"frame": item} if isinstance(item, str) else item for item in found]


def read_link_loads(
    tables: Sequence[Mapping[str, Any]], names: Sequence[str], links: Iterable[str], inputs: Mapping[str, sm.Expr]
) -> list[LinkLoad]:
    """Return the loads of a side file.

    Args:
        tables: As written.
        names: What each is called in the unit.
        links: Of the robot.
        inputs: Name → symbol.
    """
    known, found = {*links}, []
    for table, name in zip(tables, names, strict=True):
        words = table.get("of", _DEFAULT_LOAD_WORDS)
        axes = str(table.get("axes", ""))
        for word in [words] if isinstance(words, str) else dict.fromkeys(words):
            offset = table.get("offset", (0.0, 0.0, 0.0))
            numbers = offset.replace(",", " ").split() if isinstance(offset, str) else offset
            components = [inputs[f"{name}.{word}.{axis}"] for axis in "xyz"]
            where = tuple(map(float, numbers))
            found.append(LinkLoad(word == "torque", table["frame"], where, axes if axes in known else "", components))
    return found


class AddedGeneralizedForces:
    """The generalized forces of what was added, in the columns of the independent import.

    Args:
        loads: On links.
        efforts: (column, expression) along the speeds.
        seen: Of the motion, what the expressions may contain.
        symbols: That the expressions may contain, in the order of the values.
        known: What else they may contain → what it is in terms of the symbols, and of what else they may contain.
        place: A link's name → its frame in the frame that the independent import has for it.

    Raises:
        ValueError: If there is something in an expression that has no value here.
    """

    def __init__(
        self,
        loads: Sequence[LinkLoad],
        efforts: Sequence[tuple[int, sm.Expr]],
        seen: Sequence[MotionVectors],
        symbols: Sequence[sm.Expr],
        known: Mapping[sm.Expr, Any],
        place: Callable[[str], Pose],
    ) -> None:
        self._loads, self._columns, self._place = loads, [column for column, _ in efforts], place
        self._seen = seen
        every = [*symbols, *(symbol for each in seen for symbol in each.symbols)]
        plain = {symbol: sm.Dummy(f"x{k}", real=True) for k, symbol in enumerate(every)}
        given = [*(e for _, e in efforts), *(c for load in loads for c in load.components)]
        expressions = [_replace_symbols(sm.sympify(e), plain, known) for e in given]
        odd = set().union(*(e.atoms(sm.Symbol, AppliedUndef, Pre) for e in expressions)) - {*plain.values()}
        if odd:
            raise ValueError(f"{', '.join(sorted(map(str, odd)))} has no value")
        self._values = compile_scalar_function(list(plain.values()), expressions)

    @property
    def links(self) -> dict[str, None]:
        """Links whose motions :meth:`forces` needs."""
        names = [name for load in self._loads for name in (load.link, load.axes)]
        return dict.fromkeys(name for name in (*names, *(each.link for each in self._seen)) if name)

    def forces(self, values: Sequence[float], motions: Mapping[str, LinkMotion], size: int) -> tuple[Array, Array]:
        """Return the generalized forces, shape (n,), and the size of their terms before they cancel.

        Args:
            values: Of the symbols.
            motions: Of :attr:`links`.
            size: n.
        """
        seen, sizes = self._motion(motions)
        numbers, before_cancelling = self._with_sizes(values, seen, sizes)
        total, before = np.zeros(size), np.zeros(size)
        for k, column in enumerate(self._columns):
            total[column] += numbers[k]
            before[column] += before_cancelling[k]
        for k, load in enumerate(self._loads):
            first = len(self._columns) + 3 * k
            vector = numbers[first : first + 3]
            R, p = self._place(load.link)
            m = motions[load.link]
            axes = motions[load.axes].R @ self._place(load.axes)[0] if load.axes else np.eye(3)
            if load.torque:
                J = m.Jw
            else:
                arm = m.R @ (p + R @ np.asarray(load.offset))
                J = m.Jv + np.cross(m.Jw, arm, axis=0)
            total += J.T @ (axes @ vector)
            before += np.abs(J.T) @ (np.abs(axes) @ before_cancelling[first : first + 3])
        return total, before

    def _motion(self, motions: Mapping[str, LinkMotion]) -> tuple[Array, Array]:
        """Return the values of what is seen of the motion, and the size of the terms that each is a sum of."""
        found, sizes = [], []
        for each in self._seen:
            offset = np.asarray(each.offset, dtype=float)
            if not each.link:
                found.append(offset if each.quantity == "position" else np.zeros(3))
                sizes.append(np.abs(found[-1]))
                continue
            R, p = self._place(each.link)
            m = motions[each.link]
            arm = m.R @ (p + R @ offset)
            value = {"position": m.p + arm, "velocity": m.v + np.cross(m.w, arm), "angular velocity": m.w}[
                each.quantity
            ]
            size = {"position": m.p, "velocity": m.v, "angular velocity": m.w}[each.quantity]
            more = arm if each.quantity == "position" else np.linalg.norm(m.w) * np.linalg.norm(arm) * np.ones(3)
            found.append(value)
            sizes.append(np.linalg.norm(size) + np.abs(more))
        return np.concatenate([*found, np.zeros(0)]), np.concatenate([*sizes, np.zeros(0)])

    def _with_sizes(self, values: Sequence[float], seen: Array, sizes: Array) -> tuple[Array, Array]:
        """Return all scalars and their sizes before terms cancel: a stiff spring has a small force between large ones.

        Of what is seen of the motion these are slopes (by differences) times what its round-off is a part of.
        """
        numbers = np.array(self._values(*values, *seen), dtype=float)
        before = np.abs(numbers)
        for k, size in enumerate(sizes):
            step = _DIFFERENCE_STEP * (1.0 + size)
            moved = seen.copy()
            moved[k] += step
            before += np.abs(np.array(self._values(*values, *moved), dtype=float) - numbers) / step * size
        return numbers, before


def _replace_symbols(expression: sm.Expr, plain: Mapping[sm.Expr, sm.Expr], known: Mapping[sm.Expr, Any]) -> sm.Expr:
    """Return an expression in the plain symbols; what makes no event is the same number."""
    for _ in known:
        expression = expression.xreplace(known)
    return expression.replace(NoEvent, lambda inner: inner).xreplace(plain)
