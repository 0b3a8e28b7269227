"""An entry point of a program as CasADi's own expressions, so that CasADi differentiates it by its own rules.

Solves are CasADi's: small matrices by cofactors, others by its symbolic QR; Newton's method is its root finder, which
is differentiated by the implicit function theorem.
"""

from __future__ import annotations

import casadi as ca

from mb2fmu.compiler.program.program_pruning import find_needed_nodes
from mb2fmu.compiler.program.scalar_program import Op, ScalarProgram, read_initial_discrete_memory

LEAVES = {Op.TIME: "t", Op.MEMORY: "m", Op.STATE: "x", Op.INPUT: "r", Op.PARAMETER: "p"}
PLAIN = {
    Op.ADD: lambda a, b: a + b, Op.SUB: lambda a, b: a - b, Op.MUL: lambda a, b: a * b, Op.DIV: lambda a, b: a / b,
    Op.NEG: lambda a: -a, Op.POW: lambda a, b: a**b, Op.ABS: ca.fabs, Op.MIN: ca.fmin, Op.MAX: ca.fmax,
    Op.ATAN2: ca.atan2, Op.HYPOT: lambda a, b: ca.sqrt(a * a + b * b), Op.LT: lambda a, b: a < b,
    Op.LE: lambda a, b: a <= b, Op.EQ: lambda a, b: a == b, Op.NOT: ca.logic_not, Op.AND: ca.logic_and,
    Op.OR: ca.logic_or, Op.SELECT: ca.if_else,
}  # fmt: skip


def graph_function(program: ScalarProgram, entry: str) -> ca.Function:
    """F(t, x, r, p) of CasADi's scalar expressions, or of matrix expressions where Newton's method is in it."""
    _, blocks = find_needed_nodes(program, program.entries[entry].results)
    kind = ca.MX if any(blocks[i] and block.kind == "newton" for i, block in enumerate(program.blocks)) else ca.SX
    layout = program.layout
    sizes = {"t": 1, "x": len(layout.states), "r": len(layout.inputs), "p": len(layout.parameters)}
    given = {name: kind.sym(name, size) for name, size in sizes.items()}
    walker = Walker(program, kind, {**given, "m": kind(ca.DM(list(read_initial_discrete_memory(program))))})
    results = walker.results(entry)
    return ca.Function("F", [given[name] for name in sizes], [results], [*sizes], ["y"])


class Walker:
    """Nodes as expressions."""

    def __init__(self, program: ScalarProgram, kind: type, given: dict[str, object]) -> None:
        self.program, self.kind, self.given = program, kind, given
        self.nodes: dict[int, object] = {}
        self.blocks: dict[int, object] = {}

    def results(self, entry: str) -> object:
        """All results of an entry point, one below the other."""
        wanted = self.program.entries[entry].results
        mask, _ = find_needed_nodes(self.program, wanted)
        for node in mask.nonzero()[0].tolist():
            self.nodes[node] = self.value(node)
        return ca.vertcat(*(self.nodes[node] for node in wanted)) if wanted else self.kind(0, 1)

    def value(self, node: int) -> object:
        program, op, index = self.program, Op(int(self.program.op[node])), int(self.program.a[node])
        if op is Op.CONSTANT:
            return self.kind(float(program.constants[index]))
        if op in LEAVES:
            return self.given[LEAVES[op]][index]
        if op is Op.BLOCK:
            return self.block(index)[int(program.b[node])]
        operands = [self.nodes[operand] for operand in program.operands(node)]
        if op is Op.TABLE:
            return self.table(index, int(program.b[node]), operands[0])
        return PLAIN[op](*operands) if op in PLAIN else getattr(ca, op.name.lower())(*operands)

    def table(self, index: int, order: int, x: object) -> object:
        """Pieces chosen from the left."""
        table = self.program.tables[index].derivative(order)
        result = None
        for i, start in enumerate(table.breaks[:-1]):
            piece = sum(row[i] * (x - start) ** k for k, row in enumerate(table.coefficients))
            result = piece if result is None else ca.if_else(x >= start, piece, result)
        return result

    def block(self, index: int) -> object:
        if index not in self.blocks:
            block = self.program.blocks[index]
            self.blocks[index] = self.newton(index) if block.kind == "newton" else self.solve(index)
        return self.blocks[index]

    def solve(self, index: int) -> object:
        block = self.program.blocks[index]
        factor = self.program.blocks[block.factor]
        assert factor.kind != "least_norm_factor", "CasADi has no solutions of least norm"
        n, entries = factor.size, [self.nodes[node] for node in factor.operands]
        right = ca.vertcat(*(self.nodes[node] for node in block.operands))

        def place(i: int, j: int) -> int:
            low, high = sorted((i, j))
            return high * (high + 1) // 2 + low if factor.symmetric else i * n + j

        matrix = ca.vertcat(*(ca.horzcat(*(entries[place(i, j)] for j in range(n))) for i in range(n)))
        return ca.solve(matrix, right)

    def newton(self, index: int) -> object:
        block = self.program.blocks[index]
        body, n = self.program.bodies[block.body], block.size
        theta = ca.vertcat(*(self.nodes[node] for node in block.operands[:-n]))
        guess = ca.vertcat(*(self.nodes[node] for node in block.operands[-n:]))
        y, fixed = ca.SX.sym("y", n), ca.SX.sym("theta", theta.numel())
        given = {"t": ca.SX(0), "x": y, "p": fixed, "r": ca.SX(0, 1)}
        residual = ca.Function("residual", [y, fixed], [Walker(body, ca.SX, given).results("residual")])
        finder = ca.rootfinder("finder", "newton", residual, {"abstol": 1e-15, "abstolStep": 1e-15, "max_iter": 30,
                                                              "error_on_fail": False})  # fmt: skip
        return finder(guess, theta)
