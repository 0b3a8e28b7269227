"""Program: one hash-consed scalar graph with named entry points, stored as arrays, built once, never changed.

Node ids grow: an operand has a smaller id than the node that uses it. Inputs are nodes too (``Op.TIME``, ``Op.STATE``, …),
with their index in operand ``a``. Block statements (linear solves) read nodes and are read through ``Op.BLOCK`` nodes
(``a`` = block, ``b`` = which of its results).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum, auto
from typing import Literal

import numpy as np
import numpy.typing as npt


class Op(IntEnum):
    """What a node computes from its operands a, b, c."""

    CONSTANT = 0  # constants[a]
    TIME = auto()
    STATE = auto()  # x[a]
    INPUT = auto()  # r[a]
    PARAMETER = auto()  # p[a]
    MEMORY = auto()  # m[a], discrete
    SEED = auto()  # s[a], direction of a derivative, or generalized forces asked for
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
    LT = auto()  # comparisons and logic give 0.0 or 1.0
    LE = auto()
    EQ = auto()
    NOT = auto()
    AND = auto()
    OR = auto()
    SELECT = auto()  # b if a else c
    TABLE = auto()  # derivative number b of tables[a] at node c; a and b are plain integers
    BLOCK = auto()  # result b of blocks[a]; a and b are plain integers


@dataclass(frozen=True, slots=True)
class Layout:
    """Names of what the entry points read: time is always there; x = (q, independent u, z)."""

    states: tuple[str, ...] = ()
    inputs: tuple[str, ...] = ()
    parameters: tuple[str, ...] = ()
    memory: tuple[str, ...] = ()
    seeds: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Block:
    """A linear algebra statement.

    Attributes:
        kind: ``lu_factor`` (pivoted), ``ldlt_factor`` (symmetric positive definite, lower triangle row by row),
            ``solve`` (with the factors of block ``factor``; ``operands`` are the right-hand side).
        size: n of the n × n matrix.
        operands: Node ids.
        factor: For ``solve``: the index of its factor block; -1 otherwise.
        name: For messages when it fails.
    """

    kind: Literal["lu_factor", "ldlt_factor", "solve"]
    size: int
    operands: tuple[int, ...]
    factor: int = -1
    name: str = ""


@dataclass(frozen=True, slots=True)
class Table:
    """A piecewise polynomial of one variable: on [breaks[i], breaks[i+1]) sum_k coefficients[k, i] (x - breaks[i])^k.

    Outside the breaks the first and last pieces go on. A table with equal content is stored once.
    """

    name: str
    breaks: tuple[float, ...]
    coefficients: tuple[tuple[float, ...], ...]


@dataclass(frozen=True, slots=True)
class Entry:
    """A named entry point: ``labels[i]`` is the value of node ``results[i]``; only what they need is evaluated."""

    name: str
    labels: tuple[str, ...]
    results: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Program:
    """The scalar graph.

    Attributes:
        layout: What is read.
        op, a, b, c: One element per node; int32, -1 where an operand is not used.
        constants: Read by ``Op.CONSTANT``.
        blocks: In an order in which operands come first.
        tables: Lookup tables.
        entries: Entry points by name.
    """

    layout: Layout
    op: npt.NDArray[np.uint8]
    a: npt.NDArray[np.int32]
    b: npt.NDArray[np.int32]
    c: npt.NDArray[np.int32]
    constants: npt.NDArray[np.float64]
    blocks: tuple[Block, ...]
    tables: tuple[Table, ...]
    entries: Mapping[str, Entry]
