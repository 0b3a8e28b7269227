"""Correct digits of x', and the digits that its data permit.

x' in doubles is compared with x' of the same equations with 60 digits. Its data are doubles too: another x' follows
where each differs by its last bit. What is lost beyond that has cancelled within the equations: the acceleration of a
light body in a heavy one's company is a small difference of large numbers (masses of 1e-6 and 1e6 kg in one
mechanism), in every formulation by joint coordinates, and no scaling of rows brings it back.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import mpmath
import numpy as np
import numpy.typing as npt

from mb2fmu.compiler.evaluation import make_evaluator
from mb2fmu.compiler.lowering.high_precision_evaluation import evaluate_high_precision
from mb2fmu.compiler.program.scalar_program import Op, ScalarProgram, read_initial_discrete_memory

Floats = npt.NDArray[np.float64]

_PERTURBATION_DRAWS = 4
_UNIT_ROUND_OFF = 2.0**-53
_MAX_DIGITS = 16.0  # digits of a double
_SMALLEST_MAGNITUDE = 1e-300


@dataclass(frozen=True, slots=True)
class RightHandSideAccuracy:
    """Digits of x' at one point.

    Attributes:
        names: Of the states.
        digits: Of each component of x' that are right, at most 16, shape (n_x,).
        data: That its data let it have, shape (n_x,).
    """

    names: tuple[str, ...]
    digits: Floats
    data: Floats

    @property
    def digits_lost(self) -> Floats:
        """Digits lost by cancellation in the equations, shape (n_x,)."""
        return np.asarray(np.maximum(0.0, self.data - self.digits))

    def __str__(self) -> str:
        """Return a sentence on the state derivative that loses the most digits."""
        worst = int(np.argmax(self.digits_lost)) if len(self.names) else -1
        if worst < 0 or self.digits_lost[worst] < 1.0:
            return "x' has all digits that its data let it have"
        return (
            f"of der({self.names[worst]}) {self.digits[worst]:.0f} digits are right where its data let it have "
            f"{self.data[worst]:.0f}: large terms cancel"
        )


def compute_right_hand_side_accuracy(
    program: ScalarProgram,
    t: float,
    x: Sequence[float] | Floats,
    r: Sequence[float] | Floats,
    p: Sequence[float] | Floats,
) -> RightHandSideAccuracy:
    """Return how many digits of x' are right at a point.

    Args:
        program: As it was lowered.
        t: Time in s.
        x: States.
        r: Inputs.
        p: Free parameters.
    """
    given = [
        np.atleast_1d(np.asarray(values, dtype=float)) for values in (t, x, r, p, read_initial_discrete_memory(program))
    ]
    kinds = (Op.TIME, Op.STATE, Op.INPUT, Op.PARAMETER, Op.MEMORY)

    def exact(values: Sequence[Floats]) -> list[mpmath.mpf]:
        return evaluate_high_precision(
            program, "rhs", {kind: each.tolist() for kind, each in zip(kinds, values, strict=True)}
        )

    expected = exact(given)
    memory = given[4] if len(given[4]) else None
    found = make_evaluator(program, "rhs")(float(given[0][0]), given[1], given[2], given[3], memory)
    generator = np.random.default_rng(7)
    spread = np.zeros(len(expected))
    for _ in range(_PERTURBATION_DRAWS):
        moved = [values * (1.0 + _UNIT_ROUND_OFF * generator.choice([-1.0, 1.0], len(values))) for values in given[:4]]
        spread = np.maximum(spread, _relative_errors(exact([*moved, given[4]]), expected))
    digits = _correct_digits(_relative_errors([mpmath.mpf(float(value)) for value in found], expected))
    return RightHandSideAccuracy(program.layout.states, digits, _correct_digits(spread))


def _relative_errors(found: Sequence[mpmath.mpf], expected: Sequence[mpmath.mpf]) -> Floats:
    """Return |found − expected| / |expected|."""
    pairs = zip(found, expected, strict=True)
    return np.array([float(abs(a - b) / max(abs(b), mpmath.mpf(_SMALLEST_MAGNITUDE))) for a, b in pairs])


def _correct_digits(error: Floats) -> Floats:
    """Return the correct decimal digits of a relative error, between 0 and 16."""
    return np.asarray(np.clip(-np.log10(np.maximum(error, 10.0**-_MAX_DIGITS)), 0.0, _MAX_DIGITS))
