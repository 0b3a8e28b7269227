"""The names by which the Python runtime knows the operations of a Program."""

from __future__ import annotations

from mb2fmu.program.program import Op

OPERATOR = {Op.ADD: "+", Op.SUB: "-", Op.MUL: "*", Op.DIV: "/"}
"""Printed between their operands."""

RUNTIME_NAME = {
    Op.POW: "power",
    Op.ABS: "absolute",
    Op.CEIL: "ceil",
    Op.MIN: "minimum",
    Op.MAX: "maximum",
    Op.LT: "less",
    Op.LE: "less_equal",
    Op.EQ: "equal",
    Op.NOT: "logical_not",
    Op.AND: "logical_and",
    Op.OR: "logical_or",
    **{
        op: op.name.lower()
        for op in (
            *(Op.SQRT, Op.EXP, Op.LOG, Op.SIN, Op.COS, Op.TAN, Op.ASIN, Op.ACOS, Op.ATAN, Op.ATAN2, Op.SINH, Op.COSH),
            *(Op.TANH, Op.ASINH, Op.ACOSH, Op.ATANH, Op.SIGN, Op.FLOOR, Op.ERF, Op.SELECT),
        )
    },
}
"""Printed as a call."""
