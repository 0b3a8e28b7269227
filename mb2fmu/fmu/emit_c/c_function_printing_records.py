"""Inputs and outputs of function printing: signatures, the names of one FMU, printed text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from mb2fmu.compiler.program.scalar_program import Op


@dataclass(frozen=True, slots=True)
class PrintedCFunctionSignature:
    """Name and arguments of a function to print.

    Attributes:
        name: Of the function.
        parameters: Of each the C declaration, ``const double x[]``; ``double work[]`` is one of them.
        leaves: What is read for each kind of leaf, ``{Op.STATE: "x"}``.
        zeros: Lvalues that are set to zero.
        batch: Values are vectors, one lane per instance (runtime/batch.h); ``mb2fmu_words lost[]`` is one of the
            parameters.
        compiled_quickly: It is evaluated so seldom that it is compiled quickly, apart: other translation units know it.
    """

    name: str
    parameters: tuple[str, ...]
    leaves: dict[Op, str]
    zeros: tuple[str, ...] = ()
    batch: bool = False
    compiled_quickly: bool = False

    @property
    def stem(self) -> str:
        """The name without the common prefix of equations."""
        return self.name.removeprefix("equations_")

    @property
    def c_function_name(self) -> str:
        """Name of the function in C."""
        return f"MB2FMU_UNIT(any_{self.stem})" if self.compiled_quickly else self.name

    @property
    def linkage(self) -> str:
        """Beginning of the function's definition."""
        return "int" if self.compiled_quickly else "static int"

    @property
    def real_type(self) -> str:
        """C type of a value."""
        return "mb2fmu_reals" if self.batch else "double"

    @property
    def arguments(self) -> tuple[str, ...]:
        """Names of the parameters."""
        return tuple(parameter.split()[-1].removesuffix("[]") for parameter in self.parameters)


@dataclass(slots=True)
class CNameRegistry:
    """Names shared by the functions of one FMU.

    Attributes:
        prepared: Place in w of nodes that depend on parameters only.
        tables: (table, order of the derivative) → stem of the names of its arrays, in the order of first use.
        failures: What is wrong when a solve fails, as a clause; what it returns is its place, counted from 1.
        pivots: Name of the linear solve of nodes that must be positive.
        divisors: Name of the linear solve of nodes that must not be zero.
        domains: What is wrong, as a clause, where a node is not positive.
        body_work: Doubles that the body of each Newton block needs in ``work``.
        stem: Of names that this program's tables have.
    """

    prepared: dict[int, int] = field(default_factory=dict)
    tables: dict[tuple[int, int], str] = field(default_factory=dict)
    failures: dict[str, int] = field(default_factory=dict)
    pivots: dict[int, str] = field(default_factory=dict)
    divisors: dict[int, str] = field(default_factory=dict)
    domains: dict[int, str] = field(default_factory=dict)
    body_work: dict[int, int] = field(default_factory=dict)
    stem: str = "model"

    def table_stem(self, index: int, order: int) -> str:
        """Return the stem of the names of a table's arrays."""
        return self.tables.setdefault((index, order), f"{self.stem}_table_{index}_{order}")

    def singular_failure(self, name: str) -> int:
        """Return the failure number of this linear solve."""
        return self.domain_failure(f"the matrix of {name} is singular")

    def no_solution_failure(self, name: str) -> int:
        """Return the failure number of a Newton solve without a solution."""
        return self.domain_failure(f"no solution is found for {name}")

    def other_branch_failure(self, name: str) -> int:
        """Return the failure number of a Newton solve that ends on another branch."""
        head, colon, rest = name.partition(":")
        return self.domain_failure(
            f"a solution is found for {head} on another branch of the assembly only{colon}{rest}"
        )

    def contradiction_failure(self, name: str, rows: Sequence[str]) -> int:
        """Return the failure number of contradicting equations; ``work`` then holds the residual of each row.

        Lines behind the clause are the names of the rows.
        """
        return self.domain_failure(
            "\n".join([f"no solution is found for {name}: they contradict each other and stay open", *rows])
        )

    def domain_failure(self, wrong: str) -> int:
        """Return the failure number of a violated clause."""
        return self.failures.setdefault(wrong, len(self.failures) + 1)


def newton_body_name(index: int) -> str:
    """Return the name of the function of a Newton block's body."""
    return f"model_body_{index}"


def newton_work_size(n: int) -> int:
    """Return the number of doubles in Newton's work for n unknowns: MB2FMU_NEWTON_WORK of runtime/linear_algebra.h."""
    return (11 + 2 * n) * n


@dataclass(frozen=True, slots=True)
class PrintedCFunctionPart:
    """One part of a long function, which may stand in another translation unit.

    Attributes:
        prototype: Its declaration.
        text: Its definition; ends with a line break.
        weight: How many values it computes.
    """

    prototype: str
    text: str
    weight: int


@dataclass(frozen=True, slots=True)
class PrintedCFunction:
    """A printed function.

    Attributes:
        name: Of the function.
        text: Definition; ends with a line break.
        weight: How many values it computes itself.
        parts: What it calls one after the other.
        work: Doubles it needs in ``work``.
        prototype: Its declaration if other translation units know it.
    """

    name: str
    text: str
    weight: int
    parts: tuple[PrintedCFunctionPart, ...] = ()
    work: int = 0
    prototype: str = ""

    @property
    def total_value_count(self) -> int:
        """Number of values that the function and its parts compute."""
        return self.weight + sum(part.weight for part in self.parts)
