"""Names of nodes for messages: the expression, as far as it is short.

What is an output of the model has the output's name.
"""

from __future__ import annotations

from collections.abc import Mapping

from mb2fmu.compiler.program.program import Op, Program

LONGEST = 60
_INFIX = {Op.ADD: " + ", Op.SUB: " - ", Op.MUL: "*", Op.DIV: "/", Op.LT: " < ", Op.LE: " <= ", Op.EQ: " == "}
_DEEPEST = 6


def expression_name(program: Program, node: int) -> str:
    """Return the expression in one line; parts that are too long are ``…``."""
    text = _name(program, node, _DEEPEST, _output_names(program))
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def surface_name(program: Program, node: int) -> str:
    """Return the condition that is true where a switch's mode is 1: of a <= b, b < a."""
    if program.op[node] != Op.LE:
        return expression_name(program, node)
    names = _output_names(program)
    text = " < ".join(_name(program, int(side[node]), _DEEPEST - 1, names) for side in (program.b, program.a))
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def _name(  # noqa: PLR0911 (one kind of node after the other)
    program: Program, node: int, depth: int, outputs: Mapping[int, str]
) -> str:
    """Return a node as text, at most `depth` operations deep; … stands for what is deeper or a block."""
    op, a = Op(program.op[node]), int(program.a[node])
    layout = program.layout
    leaves = {Op.STATE: layout.states, Op.INPUT: layout.inputs, Op.PARAMETER: layout.parameters}
    if op is Op.CONSTANT:
        return f"{program.constants[a]:.6g}"
    if op is Op.TIME:
        return "time"
    if op in leaves:
        return leaves[op][a]
    if op is Op.MEMORY:
        return layout.memory[a]
    if node in outputs:
        return outputs[node]
    if depth == 0 or op is Op.BLOCK:
        return "…"
    parts = [_name(program, operand, depth - 1, outputs) for operand in program.operands(node)]
    if op is Op.LT and parts[0] == "0" and program.op[program.b[node]] == Op.NEG:
        parts = [parts[1].removeprefix("-"), "0"]
    if op is Op.NEG:
        return f"-{parts[0]}"
    if op in _INFIX:
        text = _INFIX[op].join(parts)
        return text if depth == _DEEPEST else f"({text})"
    name = {Op.ABS: "abs", Op.TABLE: "table"}.get(op, op.name.lower())
    return f"{name}({', '.join(parts)})"


def _output_names(program: Program) -> dict[int, str]:
    """Return node → the first output that it is."""
    entry = program.entries.get("outputs")
    return {} if entry is None else dict(reversed(list(zip(entry.results, entry.labels, strict=True))))
