"""Write solutions of Newton's method so that they can be differentiated like other nodes.

At a solution y of F(y, theta) = 0 one more step of Newton's method,

    y − F_y⁻¹ F(y, theta),

changes nothing but the last digits, and its derivative with y and F_y held as numbers is −F_y⁻¹ F_theta, which is what
the implicit function theorem says dy is. So this one step is written out as nodes, y and F_y wrapped in ``Op.FROZEN``,
and every rule of differentiation, forward and in reverse, applies as it is. After one step first derivatives are exact;
a derivative of these would miss that F_y changes. With the same frozen F_y a second step makes second derivatives
exact, too: near theta, where y is off by O(d), one step leaves O(d²), and the next one, whose matrix is off by O(d),
leaves O(d³). So the rates of what sticks, which are first derivatives within x', take two.

Where F_y has no full rank y is the solution in a space that depends on theta (``constraints``, redundant rows). Then
the body's entry point ``jacobian`` is F_y with the space's complement added, which gives steps within the space, and
``turned`` gives y with the derivatives that it has for the space turning: the step is taken from there.
"""

from __future__ import annotations

from collections.abc import Sequence

from mb2fmu.compiler.numerics.linear_solve import FactoredLinearSystem
from mb2fmu.compiler.program.program_builder import ProgramBuilder
from mb2fmu.compiler.program.program_copy import CopiedProgramNodes
from mb2fmu.compiler.program.program_pruning import find_needed_nodes
from mb2fmu.compiler.program.scalar_program import EquationSolveBlock, Op, ScalarProgram


def make_newton_solutions_differentiable(
    program: ScalarProgram, entry: str, order: int = 1
) -> tuple[ScalarProgram, str]:
    """Return the program with an entry point added that takes last steps after every solution of Newton's method.

    Args:
        program: Any.
        entry: Name of the entry point to be differentiated.
        order: Of the derivatives that are to be exact; so many steps are taken.

    Returns:
        The program and the new entry point's name; both as they were if it needs no Newton block.
    """
    if not program.bodies:
        return program, entry
    _, blocks = find_needed_nodes(program, program.entries[entry].results)
    if not any(blocks[i] and block.kind == "newton" for i, block in enumerate(program.blocks)):
        return program, entry
    builder = ProgramBuilder(program.layout)
    CopiedProgramNodes(program, builder)
    smooth = _ProgramCopyWithNewtonSteps(program, builder, order)
    old, name = program.entries[entry], f"smooth_{entry}"
    builder.entry(name, old.labels, [smooth.node[node] for node in old.results])
    return builder.build(), name


class _ProgramCopyWithNewtonSteps(CopiedProgramNodes):
    """A copy with the last steps.

    Args:
        program: Any.
        builder: Takes the nodes.
        order: How many steps.
    """

    def __init__(self, program: ScalarProgram, builder: ProgramBuilder, order: int) -> None:
        self._order = order
        super().__init__(program, builder, entries=())

    def _newton(self, block: EquationSolveBlock) -> list[int]:
        """Replace a solution by Newton steps from its frozen value; their derivatives are the implicit function's."""
        b, n = self.builder, block.size
        y = [b.unary(Op.FROZEN, node) for node in super()._newton(block)]
        body = self.program.bodies[block.body]
        theta = [self.node[node] for node in block.operands[:-n]]
        if "turned" in body.entries:
            frozen = _InlinedNewtonBody(body, b, y, theta)
            y = [frozen.node[node] for node in body.entries["turned"].results]
        inside = _InlinedNewtonBody(body, b, y, theta)
        residual = [inside.node[node] for node in body.entries["residual"].results]
        slopes = [b.unary(Op.FROZEN, inside.node[node]) for node in body.entries["jacobian"].results]
        rows = [slopes[i * n : i * n + n] for i in range(n)]
        added = body.entries["regularization"].results if "regularization" in body.entries else ()
        system = _RegularizedNewtonSolve(
            b,
            FactoredLinearSystem(b, rows, f"the derivative of {block.name}"),
            [b.unary(Op.FROZEN, inside.node[node]) for node in added],
        )
        y = _subtract_step(b, y, system.solve(residual))
        for _ in range(self._order - 1):
            again = _InlinedNewtonBody(body, b, y, theta)
            y = _subtract_step(b, y, system.solve([again.node[node] for node in body.entries["residual"].results]))
        return y


class _RegularizedNewtonSolve:
    """Steps by a regularized matrix, F_y + R, corrected once: s + (F_y + R)⁻¹ R s is off by the square of R F_y⁻¹ only.

    Args:
        builder: Takes the nodes.
        system: F_y + R.
        added: The diagonal of R; (): nothing was added.
    """

    def __init__(self, builder: ProgramBuilder, system: FactoredLinearSystem, added: Sequence[int]) -> None:
        self._builder, self._system, self._added = builder, system, added

    def solve(self, residual: Sequence[int]) -> list[int]:
        """Return F_y⁻¹ F."""
        b, step = self._builder, self._system.solve(residual)
        if all(b.is_zero(e) for e in self._added):
            return step
        weak = self._system.solve([b.mul(e, x) for e, x in zip(self._added, step, strict=True)])
        return [b.add(x, y) for x, y in zip(step, weak, strict=True)]


def _subtract_step(b: ProgramBuilder, y: Sequence[int], step: Sequence[int]) -> list[int]:
    """Subtract a step from y."""
    return [b.sub(value, change) for value, change in zip(y, step, strict=True)]


class _InlinedNewtonBody(CopiedProgramNodes):
    """The body of a Newton block, copied among the nodes of its program."""

    def __init__(self, body: ScalarProgram, builder: ProgramBuilder, y: Sequence[int], theta: Sequence[int]) -> None:
        self._given = {Op.STATE: y, Op.PARAMETER: theta}
        super().__init__(body, builder, entries=())

    def _leaf(self, op: Op, index: int) -> int:
        """Return the node given in place of a variable."""
        return self._given[op][index]
