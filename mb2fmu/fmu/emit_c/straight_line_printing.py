"""Print the statements of one C function for some results of a Program.

Every value is a local constant of its own, computed by one operation, so that what C evaluates is the graph and nothing
can be associated in another way.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mb2fmu.compiler.program.scalar_program import Op
from mb2fmu.compiler.program.statement_schedule import (
    FactorizationStatement,
    NewtonStatement,
    OperationStatement,
    SineCosineStatement,
    SolveStatement,
    Statement,
    StatementScheduleGraph,
    count_factor_doubles,
)
from mb2fmu.fmu.emit_c.c_function_printing_records import CNameRegistry, PrintedCFunctionSignature, newton_body_name
from mb2fmu.fmu.emit_c.c_literals import format_c_comment, format_c_double
from mb2fmu.model.scalar_operation_table import OPERATIONS

_TEMPLATE_BY_OPERATION = {int(op): row.c for op, row in OPERATIONS.items()}
"""By the number: members of an enumeration are slow to make."""


def format_function_definition(
    prefix: str, name: str, parameters: Sequence[str], bodies: Sequence[CFunctionBodyPrinter]
) -> str:
    """Return a function with the lines of one or several bodies; it ends with return 0."""
    lines = bodies[0].lines
    if len(bodies) > 1:
        lines = [line for body in bodies for line in ("    {", *(f"    {each}" for each in body.lines), "    }")]
    unused = [set(body.unused_arguments()) for body in bodies]
    silenced = [
        f"    (void){argument};"
        for argument in bodies[0].unused_arguments()
        if all(argument in each for each in unused)
    ]
    return "\n".join(
        [format_function_signature(prefix, name, parameters), "{", *lines, *silenced, "    return 0;", "}", ""]
    )


def format_function_declaration(name: str, parameters: Sequence[str], more: str = "") -> str:
    """Return the declaration of a function that is visible in the FMU's other translation units only."""
    return (
        format_function_signature(f"MB2FMU_HIDDEN {more} int" if more else "MB2FMU_HIDDEN int", name, parameters) + ";"
    )


def format_function_signature(prefix: str, name: str, parameters: Sequence[str]) -> str:
    """Return the head of a function that returns int."""
    lines, line = [], f"{prefix} {name}("
    indent = " " * len(line)
    for i, parameter in enumerate(parameters):
        piece = f"{parameter}{',' if i < len(parameters) - 1 else ')'}"
        if len(line) + len(piece) > 118 and line.strip():
            lines.append(line.rstrip())
            line = indent
        line += f"{piece} "
    return "\n".join([*lines, line.rstrip()])


class CFunctionBodyPrinter:
    """The lines of one function.

    Args:
        graph: Of the program.
        signature: What leaves are called.
        names: Of the FMU.
        places: Values that are read from ``work``, and factors that live there: place by node, and by ~block.
        angles: Places of the sines and of the cosines of angles that live there.
    """

    def __init__(
        self,
        graph: StatementScheduleGraph,
        signature: PrintedCFunctionSignature,
        names: CNameRegistry,
        places: dict[int, int] | None = None,
        angles: Mapping[SineCosineStatement, tuple[int, int]] | None = None,
    ) -> None:
        self.lines: list[str] = []
        self._graph = graph
        self._program = graph.program
        self._signature = signature
        self._names = names
        self._places = places if places is not None else {}
        self._angle_places = angles or {}
        self._local: dict[int, str] = {}
        self._factors: dict[int, str] = {}
        self._count = 0
        self._solves = 0
        self._angles = 0
        self._used: set[str] = set()

    def unused_arguments(self) -> list[str]:
        """Return arguments that no statement reads or writes."""
        return [argument for argument in self._signature.arguments if argument not in self._used]

    def add(self, statement: Statement) -> None:
        """Print a statement after its operands."""
        match statement:
            case OperationStatement():
                self._add_operation(statement.node, statement.reads)
            case SineCosineStatement():
                self._add_angles(statement)
            case FactorizationStatement():
                self._add_factor(statement)
            case SolveStatement():
                self._add_solve(statement)
            case NewtonStatement():
                self._add_iterate(statement)

    def store(self, target: str, node: int) -> None:
        """Print ``target = value of node;``."""
        self._used.add(target.partition("[")[0])
        self.lines.append(f"    {target} = {self._operand(node)};")

    def copy(self, target: tuple[str, int, int], source: tuple[str, int, int], count: int) -> None:
        """Print a copy of numbers; of both arrays the name, the first place and the step are given."""
        self._used.update((target[0], source[0]))
        left, right = (f"{array}[{first} + {step} * k]" for array, first, step in (target, source))
        self.lines += [f"    for (int k = 0; k < {count}; k++) {{", f"        {left} = {right};", "    }"]

    def clear(self, targets: Sequence[str]) -> None:
        """Print ``target = 0.0;`` for each target."""
        self._used.update(target.partition("[")[0] for target in targets)
        self.lines += [f"    {target} = 0.0;" for target in targets]

    def print_early_return(self, argument: str, number: int) -> None:
        """Print the return of success where an argument is that number."""
        self._used.add(argument)
        self.lines += [f"    if ({argument} == {number}) {{", "        return 0;", "    }"]

    # --- values ------------------------------------------------------------------------------------------------------

    def _add_operation(self, node: int, reads: Sequence[int]) -> None:
        """Print a declaration of an operation's value: nearly all lines are such ones, and few need more."""
        local = self._local
        operands = [local[read] if read in local else self._operand(read) for read in reads]
        template, names = _TEMPLATE_BY_OPERATION.get(self._graph.op[node]), self._names
        is_required = node in names.pivots or node in names.divisors or node in names.domains
        if template is None or is_required or self._signature.batch:
            self._define(node, self._expression(node, operands))
            self._require(node)
            return
        name = local[node] = f"v{self._count}"
        self._count += 1
        self.lines.append(f"    const double {name} = {template.format(*operands)};")

    def _new(self, node: int) -> str:
        """Return a new local name for a node."""
        name = self._local[node] = f"v{self._count}"
        self._count += 1
        return name

    def _define(self, node: int, text: str, remark: str = "") -> None:
        """Print a declaration of a node's value."""
        self.lines.append(f"    {self._declared(node, text)};{remark}")

    def _declared(self, node: int, text: str) -> str:
        """Return the declaration of a value; a batch marks lanes where it fails."""
        if self._signature.batch and (node in self._names.pivots or node in self._names.domains):
            text = f"mb2fmu_each_positive({text}, {self._lost()})"
        elif self._signature.batch and node in self._names.divisors:
            text = f"mb2fmu_each_divisor({text}, {self._lost()})"
        return f"const {self._signature.real_type} {self._new(node)} = {text}"

    def _operand(self, node: int) -> str:
        """Return the C text of a node: a number, or its local, loaded first from `work`, `w` or an argument."""
        name = self._local.get(node)
        if name is not None:
            return name
        program = self._program
        if self._graph.op[node] == Op.CONSTANT:
            return self._number(float(program.constants[program.a[node]]))
        if node in self._places:
            self._used.add("work")
            self._define(node, f"work[{self._places[node]}]")
        elif node in self._names.prepared:
            self._used.add("w")
            self._define(node, f"w[{self._names.prepared[node]}]")
        else:
            self._load(node)
        return self._local[node]

    def _number(self, value: float) -> str:
        """Return a number in C; in a batch, the same in all lanes."""
        return f"mb2fmu_all({format_c_double(value)})" if self._signature.batch else format_c_double(value)

    def _load(self, node: int) -> None:
        """Print the load of a leaf from its argument, with the variable's name as a comment."""
        op, index = Op(self._graph.op[node]), int(self._program.a[node])
        array = self._signature.leaves[op]
        self._used.add(array)
        layout = self._program.layout
        known = {Op.STATE: layout.states, Op.INPUT: layout.inputs, Op.PARAMETER: layout.parameters}
        remark = f" {format_c_comment(known[op][index])}" if op in known else ""
        self._define(node, array if op is Op.TIME else f"{array}[{index}]", remark)
        self._require(node)

    def _expression(self, node: int, operands: Sequence[str]) -> str:
        """Return the C text of an operation; a batch calls the function over lanes unless C has an operator."""
        op = Op(self._graph.op[node])
        if op is Op.TABLE:
            stem = self._names.table_stem(int(self._program.a[node]), int(self._program.b[node]))
            each = "each_" if self._signature.batch else ""
            return f"mb2fmu_{each}lookup(&{stem}, {operands[0]})"
        row = OPERATIONS[op]
        if self._signature.batch and not (row.infix or op in {Op.NEG, Op.FROZEN}):
            return f"mb2fmu_each_{op.name.lower()}({', '.join(operands)})"
        return row.c.format(*operands)

    def _add_angles(self, statement: SineCosineStatement) -> None:
        """Print sines and cosines: one call for one angle, one for several, one per angle in a batch."""
        if statement in self._angle_places:
            self._keep_angles(statement)
            return
        angles = [self._operand(angle) for angle in statement.reads]
        if self._signature.batch:
            for angle, sine, cosine in zip(angles, statement.sines, statement.cosines, strict=True):
                self._add_lanes_of_angle(angle, sine, cosine)
            return
        if len(angles) == 1:
            self._add_angle(angles[0], statement.sines[0], statement.cosines[0])
            return
        n, k = len(angles), self._angles
        self._angles += 1
        self.lines.append(f"    const double a{k}[{n}] = {{{', '.join(angles)}}};")
        self.lines.append(f"    double sin{k}[{n}], cos{k}[{n}];")
        self.lines.append(f"    mb2fmu_sincos_each({n}, a{k}, sin{k}, cos{k});")
        for i in range(n):
            for function, nodes in (("sin", statement.sines), ("cos", statement.cosines)):
                if nodes[i] >= 0:
                    self._define(nodes[i], f"{function}{k}[{i}]")

    def _keep_angles(self, statement: SineCosineStatement) -> None:
        """Print sines and cosines that stay in ``work``; angles stored as a row already are read from there."""
        sines, cosines = self._angle_places[statement]
        n, first = len(statement.reads), statement.reads[0]
        op, index = Op(self._graph.op[first]), int(self._program.a[first])
        following = [(op, index + i) for i in range(n)]
        if op is Op.STATE and [(self._graph.op[a], int(self._program.a[a])) for a in statement.reads] == following:
            self._used.add(self._signature.leaves[op])
            angles = f"{self._signature.leaves[op]} + {index}"
        else:
            angles = f"a{self._angles}"
            operands = ", ".join(self._operand(angle) for angle in statement.reads)
            self.lines.append(f"    const {self._signature.real_type} {angles}[{n}] = {{{operands}}};")
            self._angles += 1
        self._used.add("work")
        name = "mb2fmu_each_sincos_of" if self._signature.batch else "mb2fmu_sincos_each"
        self.lines.append(f"    {name}({n}, {angles}, work + {sines}, work + {cosines});")

    def _add_lanes_of_angle(self, angle: str, sine: int, cosine: int) -> None:
        """Print sine and cosine of one angle over the lanes of a batch."""
        k = self._angles
        self._angles += 1
        self.lines.append(f"    mb2fmu_reals sin{k}, cos{k};")
        self.lines.append(f"    mb2fmu_each_sincos({angle}, &sin{k}, &cos{k});")
        for name, node in ((f"sin{k}", sine), (f"cos{k}", cosine)):
            if node >= 0:
                self._define(node, name)

    def _add_angle(self, angle: str, sine: int, cosine: int) -> None:
        """Print sine, cosine or both of one angle; a node of −1 is not requested."""
        if cosine < 0:
            self._define(sine, f"mb2fmu_sin({angle})")
        elif sine < 0:
            self._define(cosine, f"mb2fmu_cos({angle})")
        else:
            names = self._new(sine), self._new(cosine)
            self.lines.append(f"    double {names[0]}, {names[1]};")
            self.lines.append(f"    mb2fmu_sincos({angle}, &{names[0]}, &{names[1]});")

    # --- linear solves -----------------------------------------------------------------------------------------------

    def _require(self, node: int) -> None:
        """Print the return of a failure where a written-out linear system is singular, or a node leaves its domain."""
        if self._signature.batch:
            return
        names, value = self._names, self._local[node]
        if node in names.pivots:
            self._refuse(f"!({value} > 0.0 && {value} < MB2FMU_INFINITY)", names.pivots[node])
        elif node in names.divisors:
            self._refuse(f"!(fabs({value}) > 0.0 && fabs({value}) < MB2FMU_INFINITY)", names.divisors[node])
        if node in names.domains:
            clause = names.domains[node]
            self._give_up(f"!({value} > 0.0 && {value} < MB2FMU_INFINITY)", clause, names.domain_failure(clause))

    def _refuse(self, condition: str, name: str) -> None:
        """Print the return of "singular system" where a condition holds."""
        self._give_up(condition, name, self._names.singular_failure(name))

    def _give_up(self, condition: str, name: str, number_of_failure: int) -> None:
        """Print the return of a failure number where a condition holds."""
        self.lines += [
            f"    if ({condition}) {{",
            f"        return {number_of_failure}; {format_c_comment(name)}",
            "    }",
        ]

    def _lost(self) -> str:
        """Return the argument in which a batch marks lanes where something failed."""
        self._used.add("lost")
        return "lost"

    def _marks(self) -> tuple[str, ...]:
        """Return the further argument of calls that may fail in some lanes."""
        return (self._lost(),) if self._signature.batch else ()

    def _check(self, function: str, arguments: str, name: str) -> None:
        """Print a call that may fail, and the return of its failure; in a batch, the callee marks the lanes."""
        call = f"{self._algebra(function)}({arguments})"
        if self._signature.batch:
            self.lines.append(f"    {call};")
        else:
            self._refuse(f"{call} != 0", name)

    def _algebra(self, function: str) -> str:
        """Return a function's name in runtime/linear_algebra.h, or that of its batch version in batch_algebra.h."""
        return f"mb2fmu_each_{function}" if self._signature.batch else f"mb2fmu_{function}"

    def _factor(self, index: int) -> str:
        """Return the C name of a block's factors; in a later part they are read from `work`."""
        if index not in self._factors:
            self._used.add("work")
            name = self._factors[index] = f"f{len(self._factors)}"
            self.lines.append(f"    {self._signature.real_type} *const {name} = work + {self._places[~index]};")
        return self._factors[index]

    def _add_factor(self, statement: FactorizationStatement) -> None:
        """Print the factorization of a block, with its failure number where it is singular."""
        block = self._program.blocks[statement.block]
        entries = [self._operand(node) for node in statement.reads]
        if ~statement.block in self._places:
            name = self._factor(statement.block)
        else:
            name = self._factors[statement.block] = f"f{len(self._factors)}"
            self.lines.append(
                f"    {self._signature.real_type} {name}[{count_factor_doubles(block.kind, block.size)}];"
            )
        self.lines += [f"    {name}[{i}] = {entry};" for i, entry in enumerate(entries)]
        sizes = (str(block.size), *((str(block.rank),) if block.rank >= 0 else ()))
        self._check(block.kind, ", ".join((*sizes, name, *self._marks())), block.name)

    def _add_solve(self, statement: SolveStatement) -> None:
        """Print a solve with factors that exist; the right side becomes the solution in place."""
        block = self._program.blocks[statement.block]
        kind = self._program.blocks[block.factor].kind.replace("factor", "solve")
        right = [self._operand(node) for node in statement.reads]
        factor = self._factor(block.factor)
        name = f"s{self._solves}"
        self._solves += 1
        self.lines.append(f"    {self._signature.real_type} {name}[{block.size}] = {{{', '.join(right)}}};")
        self.lines.append(f"    {self._algebra(kind)}({block.size}, {factor}, {name});")
        for node, result in zip(statement.nodes, statement.results, strict=True):
            self._define(node, f"{name}[{result}]")

    def _add_iterate(self, statement: NewtonStatement) -> None:
        """Print Newton's iteration of a block; it fails with no solution, another branch, or contradicting rows."""
        block = self._program.blocks[statement.block]
        operands = [self._operand(node) for node in statement.reads]
        theta, guess = operands[: -block.size], operands[-block.size :]
        k, n, real = self._solves, block.size, self._signature.real_type
        self._solves += 1
        self.lines.append(
            f"    const {real} theta{k}[{max(1, len(theta))}] = {{{', '.join(theta) or self._number(0.0)}}};"
        )
        self.lines.append(f"    {real} s{k}[{n}] = {{{', '.join(guess)}}};")
        closing = f"theta{k} + {len(theta) - 2 * n}" if block.rows else "NULL"
        arguments = (
            *(str(n), newton_body_name(block.body), f"theta{k}", closing, f"s{k}"),
            *self._marks(),
            self._factor(statement.block),
        )
        call = f"{self._algebra('newton')}({', '.join(arguments)})"
        if self._signature.batch:
            self.lines.append(f"    {call};")
        else:
            none, other = self._names.no_solution_failure(block.name), self._names.other_branch_failure(block.name)
            self.lines.append(f"    const int n{k} = {call};")
            self._give_up(f"n{k} == 1", block.name, none)
            self._give_up(f"n{k} == 2", block.name, other)
            if block.rows:
                remark = format_c_comment(block.name)
                self.lines += [
                    f"    if (n{k} == 3) {{",
                    f"        for (int i = 0; i < {n}; i++) {{",
                    f"            work[i] = s{k}[i];",
                    "        }",
                    f"        return {self._names.contradiction_failure(block.name, block.rows)}; {remark}",
                    "    }",
                ]
        for node, result in zip(statement.nodes, statement.results, strict=True):
            self._define(node, f"s{k}[{result}]")
