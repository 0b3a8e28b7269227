"""``OPERATIONS``: one row per scalar operation, with everything that the stages need of it.

A new function is a member of :class:`Op` and a row. From the row come: arity and laws of folding (``program``), the
derivative and where it does not exist (``derivatives``), which class of SymPy it is (``lowering``), its code in C for
one instance and for many, and in Modelica, its value with any number of digits, its name in reports, its cost, and the
line that the documentation has for it. ``function`` names it in all other languages: ``python_runtime.py`` has three
functions of Python of that name, each target one; ``c_file`` is a file of ``emit_c/operations`` with the function that
``c`` calls, if it is not one of ``runtime/elementary.h``. Tests over all rows compare these with each other.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import IntEnum, auto
from types import MappingProxyType
from typing import Any, Literal, Protocol

import mpmath


class Op(IntEnum):
    """Operation of a node on its operands a, b, c."""

    CONSTANT = 0  # constants[a]
    TIME = auto()
    STATE = auto()  # x[a]
    INPUT = auto()  # r[a]
    PARAMETER = auto()  # p[a]
    MEMORY = auto()  # m[a], discrete
    SEED = auto()  # s[a], direction of a derivative, or generalized forces requested
    ADD = auto()
    SUB = auto()
    MUL = auto()
    DIV = auto()
    NEG = auto()
    POW = auto()  # general a ** b; small integer powers are products
    SQRT = auto()
    EXP = auto()
    LOG = auto()
    SIN = auto()
    COS = auto()
    TAN = auto()
    ASIN = auto()
    ACOS = auto()
    ATAN = auto()
    ATAN2 = auto()
    SINH = auto()
    COSH = auto()
    TANH = auto()
    ASINH = auto()
    ACOSH = auto()
    ATANH = auto()
    ABS = auto()
    SIGN = auto()
    FLOOR = auto()
    CEIL = auto()
    MIN = auto()
    MAX = auto()
    ERF = auto()
    FROZEN = auto()  # a, but a number to whoever differentiates (see smoothing)
    LT = auto()  # comparisons and logic give 0.0 or 1.0
    LE = auto()
    EQ = auto()
    NOT = auto()
    AND = auto()
    OR = auto()
    SELECT = auto()  # b if a else c
    TABLE = auto()  # derivative number b of tables[a] at node c; a and b are plain integers
    BLOCK = auto()  # result b of blocks[a]; a and b are plain integers
    HYPOT = auto()


LEAF_OPERATIONS = frozenset(Op(i) for i in range(Op.CONSTANT, Op.SEED + 1))
"""Read something; operand ``a`` is the index of what they read."""


class _DerivativeNodeWriter(Protocol):
    """Protocol: writes the nodes of a derivative (``ProgramBuilder``)."""

    def constant(self, value: float) -> int:
        """Return a number."""
        ...

    def add(self, a: int, b: int) -> int:
        """Return a + b."""
        ...

    def sub(self, a: int, b: int) -> int:
        """Return a − b."""
        ...

    def mul(self, a: int, b: int) -> int:
        """Return a b."""
        ...

    def div(self, a: int, b: int) -> int:
        """Return a / b."""
        ...

    def neg(self, a: int) -> int:
        """Return −a."""
        ...

    def power(self, a: int, b: int) -> int:
        """Return a ** b."""
        ...

    def unary(self, op: Op, a: int) -> int:
        """Return a function of one argument."""
        ...

    def binary(self, op: int, a: int, b: int) -> int:
        """Return a function of two arguments."""
        ...

    def select(self, condition: int, a: int, b: int) -> int:
        """Return a where the condition is not 0, else b."""
        ...


DerivativeRule = Callable[[_DerivativeNodeWriter, Sequence[int], int], int]
"""A partial derivative as a node, from the operands and the value of the operation."""


@dataclass(frozen=True, slots=True)
class ScalarOperation:
    """One scalar operation.

    Attributes:
        op: Its number.
        arity: Number of operands.
        slopes: Partial derivatives by each operand. Empty: it has rules of its own in both modes (sums, quotients,
            choices), or is ``flat``.
        flat: Its derivative is 0 wherever it exists.
        sympy: Name of the class of SymPy (of ``sympy``, else of ``sympy.codegen.cfunctions``) that it is; empty where
            expressions of several forms become it (``compiler/lowering/sympy_lowering.py``).
        meaning: The line of the documentation for this function; empty where it is listed with others of its kind.
        notation: Its name in mathematical notation, if that is not SymPy's.
        infix: The sign between its operands, in all languages.
        function: Name of the function in the runtimes of Python and of the targets, of which a target may rename some.
        c: C expression of its operands ``{0}``, ``{1}``, ``{2}``.
        c_file: File of ``fmu/emit_c/operations`` with the function that ``c`` calls; FMUs that do not use it do not
            have it. Empty: the runtime has it.
        of_lanes: ``runtime/batch.h`` has a function ``mb2fmu_each_…`` of its own for all lanes at once.
        modelica: Modelica expression of its operands; empty: Modelica has none. Choices stand in ``noEvent``, which
            switches of the model lose.
        digits: The function with any number of digits.
        exact: Doubles give the nearest double already, on every machine.
        cost: In additions of a compiled FMU (``scripts/bench_cost``).
        parity: Of a function of one argument: f(−x) = −f(x), or f(−x) = f(x).
        symmetric: f(a, b) = f(b, a).
        hazard: ``edge``: it may have a finite value without a finite slope at the end of where it is defined;
            ``pole``: it may give infinity where all operands are finite; ``large``: the value may overflow.
        never_negative: The value is at least 0.
    """

    op: Op
    arity: int
    slopes: tuple[DerivativeRule, ...] = ()
    flat: bool = False
    sympy: str = ""
    meaning: str = ""
    notation: str = ""
    infix: str = ""
    function: str = ""
    c: str = ""
    c_file: str = ""
    of_lanes: bool = False
    modelica: str = ""
    digits: Callable[..., Any] = mpmath.mpf
    exact: bool = False
    cost: float = 1.0
    parity: Literal["odd", "even", ""] = ""
    symmetric: bool = False
    hazard: Literal["edge", "pole", "large", ""] = ""
    never_negative: bool = False

    def __post_init__(self) -> None:
        assert len(self.slopes) in {0, self.arity}, f"{self.op.name}: one slope per operand"
        assert not (self.flat and self.slopes), f"{self.op.name}: flat, with slopes"
        assert not self.parity or self.arity == 1, f"{self.op.name}: only functions of one argument are odd or even"
        assert not self.symmetric or self.arity == 2, f"{self.op.name}: only functions of two arguments are symmetric"


def _comparison_value(holds: Callable[[Any, Any], bool]) -> Callable[[Any, Any], Any]:
    """Return the row of a comparison that gives 0 or 1."""
    return lambda a, b: mpmath.mpf(holds(a, b))


def _arithmetic_row(
    op: Op, sign: str, digits: Callable[..., Any], slopes: tuple[DerivativeRule, ...] = (), cost: float = 1.0
) -> ScalarOperation:
    """Return the row of a sum, difference, product or quotient."""
    text = f"{{0}} {sign} {{1}}"
    hazard: Literal["pole", ""] = "pole" if op is Op.DIV else ""
    return ScalarOperation(
        op,
        2,
        slopes,
        infix=sign,
        c=text,
        modelica=text,
        digits=digits,
        exact=True,
        cost=cost,
        hazard=hazard,
    )


def _function_row(op: Op, cost: float, *slopes: DerivativeRule, **facts: Any) -> ScalarOperation:
    """Return the row of a function with one name in SymPy, C, Python and mpmath.

    Args:
        op: Its number.
        cost: In additions.
        slopes: One per operand.
        facts: What else is to be said, or to be said otherwise.
    """
    name, arity = op.name.lower(), len(slopes)
    operands = ", ".join(f"{{{i}}}" for i in range(arity))
    known: dict[str, Any] = {
        "sympy": name,
        "function": name,
        "c": f"mb2fmu_{name}({operands})",
        "modelica": f"{name}({operands})",
        "digits": facts.get("digits") or getattr(mpmath, name),
    }
    return ScalarOperation(op, arity, slopes, cost=cost, **(known | facts))


def _step_function_row(
    op: Op, function: str, digits: Callable[..., Any], *, arity: int = 1, **facts: Any
) -> ScalarOperation:
    """Return the row of a function with jumps; its derivative is 0 elsewhere, and it is exact in doubles."""
    name = op.name.lower()
    operands = ", ".join(f"{{{i}}}" for i in range(arity))
    known: dict[str, Any] = {"c": f"mb2fmu_{name}({operands})"}
    return ScalarOperation(op, arity, flat=True, function=function, digits=digits, exact=True, **(known | facts))


def _modelica_choice(condition: str, then: str, otherwise: str) -> str:
    """Return a choice of Modelica without events: the branch is that of the present values."""
    return f"noEvent(if {condition} then {then} else {otherwise})"


_MODELICA_MAXIMUM = _modelica_choice("{1} > {0}", "{1}", "{0}")


# --- slopes that are more than a line --------------------------------------------------------------------------------


def _constant_one(b: _DerivativeNodeWriter) -> int:
    """Return the constant 1."""
    return b.constant(1.0)


def _power_by_base(b: _DerivativeNodeWriter, x: Sequence[int], _value: int) -> int:
    """Return ∂(a^b)/∂a = b · a^(b − 1)."""
    return b.mul(x[1], b.power(x[0], b.sub(x[1], _constant_one(b))))


def _power_by_exponent(b: _DerivativeNodeWriter, x: Sequence[int], value: int) -> int:
    """a**b ln a, which goes to 0 with a**b."""
    slope = b.mul(value, b.unary(Op.LOG, x[0]))
    zero = b.constant(0.0)
    return b.select(b.binary(Op.EQ, value, zero), zero, slope)


def _sum_of_squares(b: _DerivativeNodeWriter, x: Sequence[int]) -> int:
    """Return x² + y²."""
    return b.add(b.mul(x[0], x[0]), b.mul(x[1], x[1]))


def _inverse_root(b: _DerivativeNodeWriter, square: int) -> int:
    """Return 1 / √…."""
    return b.div(_constant_one(b), b.unary(Op.SQRT, square))


def _error_function_slope(b: _DerivativeNodeWriter, x: Sequence[int], _value: int) -> int:
    """Return 2/√π exp(−x²)."""
    square = b.mul(x[0], x[0])
    return b.mul(b.constant(2.0 / math.sqrt(math.pi)), b.unary(Op.EXP, b.neg(square)))


def _slope_by_square(then: Callable[[_DerivativeNodeWriter, int], int]) -> DerivativeRule:
    """Return a slope that depends on the square of the operand."""
    return lambda b, x, _value: then(b, b.mul(x[0], x[0]))


def _slope_by_value_square(then: Callable[[_DerivativeNodeWriter, int], int]) -> DerivativeRule:
    """Return a slope that depends on the square of the value."""
    return lambda b, _x, value: then(b, b.mul(value, value))


_OPERATION_ROWS = (
    # --- arithmetic: sums and quotients have rules of differentiation of their own
    _arithmetic_row(Op.ADD, "+", lambda a, b: a + b),
    _arithmetic_row(Op.SUB, "-", lambda a, b: a - b),
    _arithmetic_row(Op.MUL, "*", lambda a, b: a * b, (lambda _b, x, _value: x[1], lambda _b, x, _value: x[0])),
    _arithmetic_row(Op.DIV, "/", lambda a, b: a / b, cost=2.0),
    ScalarOperation(
        Op.NEG, 1, (lambda b, _x, _value: b.constant(-1.0),), c="-{0}", modelica="-({0})",
        digits=lambda a: -a, exact=True,
    ),
    _function_row(
        Op.POW, 280.0, _power_by_base, _power_by_exponent,
        sympy="", function="power", modelica="({0}) ^ ({1})", digits=mpmath.power,
        hazard="edge",
    ),
    # --- elementary functions
    _function_row(
        Op.SQRT, 4.0, lambda b, _x, value: b.div(b.constant(0.5), value),
        sympy="Sqrt", c="sqrt({0})", of_lanes=True, exact=True, hazard="edge", never_negative=True,
    ),
    _function_row(Op.EXP, 55.0, lambda _b, _x, value: value, hazard="large", never_negative=True),
    _function_row(Op.LOG, 130.0, lambda b, x, _value: b.div(_constant_one(b), x[0]), notation="ln",
                  hazard="pole"),
    _function_row(Op.SIN, 10.0, lambda b, x, _value: b.unary(Op.COS, x[0]), parity="odd"),
    _function_row(Op.COS, 10.0, lambda b, x, _value: b.neg(b.unary(Op.SIN, x[0])), parity="even"),
    _function_row(Op.TAN, 70.0, _slope_by_value_square(lambda b, square: b.add(_constant_one(b), square)),
                  parity="odd"),
    _function_row(
        Op.ASIN, 30.0, _slope_by_square(lambda b, square: _inverse_root(b, b.sub(_constant_one(b), square))),
        notation="arcsin", parity="odd", hazard="edge",
    ),
    _function_row(
        Op.ACOS, 30.0, _slope_by_square(lambda b, square: b.neg(_inverse_root(b, b.sub(_constant_one(b), square)))),
        notation="arccos", hazard="edge",
    ),
    _function_row(
        Op.ATAN, 55.0, _slope_by_square(lambda b, square: b.div(_constant_one(b), b.add(_constant_one(b), square))),
        notation="arctan", parity="odd",
    ),
    _function_row(
        Op.ATAN2,
        100.0,
        lambda b, x, _value: b.div(x[1], _sum_of_squares(b, x)),
        lambda b, x, _value: b.neg(b.div(x[0], _sum_of_squares(b, x))),
        meaning="angle of the point (x, y), arguments (y, x)",
        hazard="edge",
    ),
    _function_row(
        Op.HYPOT,
        25.0,
        lambda b, x, value: b.div(x[0], value),
        lambda b, x, value: b.div(x[1], value),
        c_file="hypot.h", symmetric=True, never_negative=True, hazard="edge", modelica="sqrt(({0}) ^ 2 + ({1}) ^ 2)",
        meaning="√(x² + y²) without overflow (of `sympy.codegen.cfunctions`)",
    ),
    _function_row(Op.SINH, 130.0, lambda b, x, _value: b.unary(Op.COSH, x[0]), parity="odd", hazard="large"),
    _function_row(
        Op.COSH, 130.0, lambda b, x, _value: b.unary(Op.SINH, x[0]),
        parity="even", hazard="large", never_negative=True,
    ),
    _function_row(Op.TANH, 130.0, _slope_by_value_square(lambda b, square: b.sub(_constant_one(b), square)),
                  parity="odd"),
    _function_row(Op.ASINH, 180.0,
                  _slope_by_square(lambda b, square: _inverse_root(b, b.add(square, _constant_one(b)))), parity="odd",
        modelica="log({0} + sqrt(({0}) ^ 2 + 1.0))"),
    _function_row(
        Op.ACOSH, 280.0, _slope_by_square(lambda b, square: _inverse_root(b, b.sub(square, _constant_one(b)))),
        hazard="edge", modelica="log({0} + sqrt(({0}) ^ 2 - 1.0))",
    ),
    _function_row(
        Op.ATANH, 180.0, _slope_by_square(lambda b, square: b.div(_constant_one(b), b.sub(_constant_one(b), square))),
        parity="odd", hazard="pole", modelica="0.5 * log((1.0 + {0}) / (1.0 - {0}))",
    ),
    _function_row(Op.ERF, 25.0, _error_function_slope, parity="odd", modelica=""),
    # --- kinks: the derivative is that of the branch taken
    _function_row(
        Op.ABS, 1.0, lambda b, x, _value: b.unary(Op.SIGN, x[0]),
        sympy="Abs", function="absolute", c="fabs({0})", of_lanes=True, digits=abs, exact=True, parity="even",
        never_negative=True, meaning="absolute value", modelica=_modelica_choice("{0} < 0.0", "-({0})", "{0}"),
    ),
    ScalarOperation(
        Op.MIN, 2, function="minimum", c="mb2fmu_min({0}, {1})", digits=min, exact=True,
        symmetric=True, modelica=_modelica_choice("{1} < {0}", "{1}", "{0}"),
    ),
    ScalarOperation(
        Op.MAX, 2, function="maximum", c="mb2fmu_max({0}, {1})", digits=max, exact=True,
        symmetric=True, modelica=_MODELICA_MAXIMUM,
    ),
    ScalarOperation(
        Op.SELECT, 3, function="select", c="({0} != 0.0) ? {1} : {2}", of_lanes=True,
        digits=lambda condition, a, b: a if condition != 0 else b, exact=True,
        modelica=_modelica_choice("{0} > 0.5", "{1}", "{2}"),
    ),
    # --- jumps, comparisons, logic
    _step_function_row(
        Op.SIGN, "sign", mpmath.sign, cost=4.0, sympy="sign", notation="sgn", parity="odd", meaning="−1, 0 or 1",
        modelica=_modelica_choice("{0} > 0.0", "1.0", _modelica_choice("{0} < 0.0", "-1.0", "0.0")),
    ),
    _step_function_row(Op.FLOOR, "floor", mpmath.floor, sympy="floor", modelica="noEvent(floor({0}))"),
    _step_function_row(Op.CEIL, "ceil", mpmath.ceil, sympy="ceiling", modelica="noEvent(ceil({0}))"),
    _step_function_row(
        Op.LT, "less", _comparison_value(lambda a, b: a < b), arity=2, c="({0} < {1}) ? 1.0 : 0.0",
        modelica=_modelica_choice("{0} < {1}", "1.0", "0.0"),
    ),
    _step_function_row(
        Op.LE, "less_equal", _comparison_value(lambda a, b: a <= b), arity=2, c="({0} <= {1}) ? 1.0 : 0.0",
        modelica=_modelica_choice("{0} <= {1}", "1.0", "0.0"),
    ),
    _step_function_row(
        Op.EQ, "equal", _comparison_value(lambda a, b: a == b), arity=2, c="({0} == {1}) ? 1.0 : 0.0",
        modelica=_modelica_choice("{0} <= {1} and {0} >= {1}", "1.0", "0.0"),  # of Reals Modelica has no ==
        symmetric=True,
    ),
    _step_function_row(
        Op.NOT, "logical_not", lambda a: 1 - a, sympy="Not", c="1.0 - {0}",
        modelica="1.0 - {0}",
    ),
    _step_function_row(
        Op.AND, "logical_and", lambda a, b: a * b, arity=2, c="{0} * {1}",
        symmetric=True, modelica="{0} * {1}",
    ),
    _step_function_row(
        Op.OR, "logical_or", max, arity=2, c="mb2fmu_max({0}, {1})", symmetric=True,
        modelica=_MODELICA_MAXIMUM,
    ),
    ScalarOperation(Op.FROZEN, 1, flat=True, c="{0}", modelica="{0}", digits=lambda a: a, exact=True),
)  # fmt: skip

OPERATIONS = MappingProxyType({row.op: row for row in _OPERATION_ROWS})
"""All of them but what reads something (:data:`LEAF_OPERATIONS`), tables and blocks."""

assert len(OPERATIONS) == len(_OPERATION_ROWS), "one row per operation"
assert set(Op) == set(OPERATIONS) | LEAF_OPERATIONS | {Op.TABLE, Op.BLOCK}, "a row for each operation"


def find_operations_by_attribute(wanted: Callable[[ScalarOperation], object]) -> frozenset[Op]:
    """Return the operations whose rows ``wanted`` accepts, by their attributes."""
    return frozenset(op for op, row in OPERATIONS.items() if wanted(row))
