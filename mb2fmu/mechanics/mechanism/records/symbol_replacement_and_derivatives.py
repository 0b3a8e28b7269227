"""Plain symbols for the user's functions of time, and q' = K u + k0 from the kinematic differential equations."""
# ruff: noqa: SLF001 - SymPy keeps its symbol of time in a private attribute

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import sympy as sm
from sympy.core.function import AppliedUndef
from sympy.physics.mechanics import dynamicsymbols
from sympy.polys.matrices import DomainMatrix
from sympy.polys.matrices.exceptions import DMNonInvertibleMatrixError
from sympy.utilities.iterables import connected_components

from mb2fmu.errors import Fault, MechanismError
from mb2fmu.mechanics.equations.equations_of_motion import KinematicEquations
from mb2fmu.model.checks.expression_symbols import differentiate_by_time
from mb2fmu.model.expression_traversal import partial_derivative

KINEMATICS_HEADLINE = "the kinematic differential equations cannot be used:"


@dataclass(frozen=True, slots=True)
class DynamicsymbolMap:
    """Translates expressions in functions of time into expressions in plain symbols.

    Attributes:
        to_plain: q(t), u(t), z(t), r(t), constraint forces → symbols; q', q'', u' → expressions.
        to_dynamic: The inverse translation for q, u, z, r, auxiliary speeds and constraint forces.
    """

    to_plain: dict[sm.Basic, sm.Expr]
    to_dynamic: dict[sm.Basic, sm.Expr]

    def __call__(self, expression: sm.Basic) -> sm.Expr:
        """Return the expression in plain symbols.

        Raises:
            MechanismError: If an undeclared function of time or derivative remains.
        """
        expression = sm.sympify(expression)
        translated = self.to_plain.get(expression, expression)
        if not translated.args:  # a number or a symbol, as most are
            return translated
        plain = replace_symbols(expression, self.to_plain)
        untranslated = plain.atoms(AppliedUndef, sm.Derivative)
        if untranslated and any(isinstance(atom, sm.Derivative) for atom in untranslated):
            # a derivative of an expression (P.vel(N) of a user's own function): carry it out, then translate again
            plain = plain.doit().xreplace(self.to_plain)
            untranslated = plain.atoms(AppliedUndef, sm.Derivative)
        untranslated = {atom for atom in untranslated if dynamicsymbols._t in atom.free_symbols}
        if untranslated:
            names = ", ".join(sorted(map(str, untranslated)))
            remedy = "declare it as coordinate, speed, state or input; derivatives of inputs are inputs of their own"
            raise MechanismError(
                "an expression cannot be read:", [Fault(f"{names} is not declared", str(plain)[:80], remedy)]
            )
        return _guard_switched_powers(plain) if plain.has(sm.Heaviside) else plain


def plain_symbols(symbols: Iterable[sm.Expr], taken_names: set[str]) -> tuple[sm.Symbol, ...]:
    """Return a plain symbol per function of time (or q' that serves as a speed), named like it; extend the names."""
    result = []
    for symbol in symbols:
        name = f"{symbol.expr.func.__name__}_dot" if isinstance(symbol, sm.Derivative) else symbol.func.__name__
        name = symbol.name if isinstance(symbol, sm.Symbol) else name
        while name in taken_names:
            name += "_"
        taken_names.add(name)
        result.append(sm.Symbol(name))
    return tuple(result)


def _is_scaled_symbol(term: sm.Expr) -> bool:
    """Return whether it is a number, or a symbol times a number."""
    return bool(term.is_Number or term.is_Symbol or (term.is_Mul and term.as_coeff_Mul()[1].is_Symbol))


def time_derivative(expression: sm.Expr, q: Sequence[sm.Symbol], q_dot: Sequence[sm.Expr], t: sm.Symbol) -> sm.Expr:
    """Return d/dt of an expression of q and t, with q' given."""
    free = expression.free_symbols
    if not free:
        return sm.S.Zero
    total = sum(
        (
            partial_derivative(expression, coordinate) * rate
            for coordinate, rate in zip(q, q_dot, strict=True)
            if coordinate in free
        ),
        sm.S.Zero,
    )
    return total + expression.diff(t) if t in free else total


def total_time_derivative(expression: sm.Expr, rates: Mapping[sm.Symbol, sm.Expr]) -> sm.Expr:
    """Return d/dt of an expression of symbols whose rates are given (``Mechanism.rates``)."""
    free = expression.free_symbols
    return sum(
        (partial_derivative(expression, symbol) * rate for symbol, rate in rates.items() if symbol in free), sm.S.Zero
    )


def coordinate_rates(kinematics: KinematicEquations, u: Sequence[sm.Symbol]) -> tuple[sm.Expr, ...]:
    """Return q' = K u + k0, row by row, from the entries of K that are not zero."""
    rates = [[sm.sympify(offset)] for offset in kinematics.offset]
    for (row, column), entry in sorted(kinematics.matrix.todok().items()):
        rates[row].append(entry * u[column])
    return tuple(sm.Add(*terms) for terms in rates)


def jacobian(rows: sm.MatrixBase, symbols: Sequence[sm.Symbol]) -> sm.Matrix:
    """Return the derivatives of a column, shape (rows, symbols); absent symbols are skipped."""
    column = {symbol: column_index for column_index, symbol in enumerate(symbols)}
    entries = {
        (row_index, column[symbol]): partial_derivative(row, symbol)
        for row_index, row in enumerate(rows)
        for symbol in row.free_symbols & column.keys()
    }
    return sm.Matrix(sm.SparseMatrix(len(rows), len(symbols), entries))


def differentiate_along_rates(expression: sm.Expr, rates: Mapping[sm.Symbol, sm.Expr]) -> sm.Expr:
    """Return the sum of d(expression)/d(symbol) times the symbol's rate, in one pass over the expression's graph.

    SymPy's ``diff`` visits every occurrence of a subexpression, once per symbol.
    """
    derivatives: dict[sm.Basic, sm.Expr] = {}
    stack = [expression]
    while stack:
        node = stack[-1]
        if node in derivatives:
            stack.pop()
        elif isinstance(node, sm.Symbol):
            derivatives[stack.pop()] = rates.get(node, sm.S.Zero)
        elif not _is_elementary(node):
            derivatives[stack.pop()] = _chain_rule(node, derivatives, rates)
        elif missing := [argument for argument in node.args if argument not in derivatives]:
            stack += missing
        else:  # SymPy's free_symbols would visit every occurrence of what is below
            moves = any(derivatives[argument] is not sm.S.Zero for argument in node.args)
            derivatives[stack.pop()] = _chain_rule(node, derivatives, rates) if moves else sm.S.Zero
    return derivatives[expression]


def _is_elementary(node: sm.Basic) -> bool:
    """Return whether the chain rule for this node is implemented here."""
    return isinstance(node, (sm.Add, sm.Mul, sm.Pow, sm.sin, sm.cos, sm.tan))


def _chain_rule(node: sm.Expr, derivatives: Mapping[sm.Basic, sm.Expr], rates: Mapping[sm.Symbol, sm.Expr]) -> sm.Expr:
    """Return the time derivative of a node from those of its arguments; sums, products and powers unexpanded."""
    if isinstance(node, sm.Add):
        return sm.Add(*(derivatives[argument] for argument in node.args))
    if isinstance(node, sm.Mul):
        factors = list(node.args)
        if len(factors) == 2 and factors[0].is_Number and derivatives[factors[1]].is_Symbol:
            # A modal coordinate times a number: SymPy would look long whether this can be written otherwise.
            return node._new_rawargs(factors[0], derivatives[factors[1]])
        moving = [i for i, argument in enumerate(factors) if derivatives[argument] != 0]
        return sm.Add(*(sm.Mul(*factors[:i], derivatives[factors[i]], *factors[i + 1 :]) for i in moving))
    if isinstance(node, sm.Pow) and derivatives[node.exp] == 0:
        return node.exp * node.base ** (node.exp - 1) * derivatives[node.base]
    if isinstance(node, (sm.sin, sm.cos, sm.tan)):
        return node.fdiff(1) * derivatives[node.args[0]]
    return sm.Add(*(node.diff(symbol) * rates[symbol] for symbol in sorted(node.free_symbols & rates.keys(), key=str)))


def solve_kinematic_equations(
    equations: Sequence[sm.Expr], q: Sequence[sm.Expr], u: Sequence[sm.Expr], plain: dict[sm.Basic, sm.Expr]
) -> KinematicEquations:
    """Return K and k0 of q' = K u + k0.

    The coefficient matrix of q' is solved block by block (coordinates that meet in an equation form a block), small
    blocks by their adjugate with a simplified determinant, so that Euler angles give their textbook form.

    Args:
        equations: Expressions that vanish, linear in q' and u, functions of time.
        q: Coordinates (functions of time).
        u: Speeds (functions of time, or q' themselves).
        plain: Translation of q, u to plain symbols (without q').

    Raises:
        MechanismError: If they are not linear, or do not determine every q'.
    """
    q_dot = [differentiate_by_time(coordinate) for coordinate in q]
    if list(u) == q_dot:
        return KinematicEquations(sm.ImmutableMatrix.eye(len(q)), sm.ImmutableMatrix.zeros(len(q), 1))
    substitutes = {rate: sm.Dummy(f"d{i}") for i, rate in enumerate(q_dot)}
    definitions_of_speeds = [
        substitutes[speed] - plain[speed] for speed in u if speed in substitutes
    ]  # speeds that are q' themselves
    rows = sm.Matrix(
        [
            *(_evaluate_derivatives(sm.sympify(equation), substitutes).xreplace(plain) for equation in equations),
            *definitions_of_speeds,
        ]
    )
    rate_symbols = [substitutes[rate] for rate in q_dot]
    speeds = [plain[speed] for speed in u]
    rate_matrix, speed_matrix = jacobian(rows, rate_symbols), jacobian(rows, speeds)
    remainder = rows.xreplace(dict.fromkeys([*rate_symbols, *speeds], sm.S.Zero))
    unknown = (rate_matrix.free_symbols | speed_matrix.free_symbols) & {*rate_symbols, *speeds}
    if unknown:
        raise MechanismError(
            "the kinematic differential equations cannot be used:",
            [
                Fault(
                    f"they are not linear in {', '.join(sorted(map(str, unknown)))}",
                    remedy="write them linear in q' and u",
                )
            ],
        )
    K: dict[tuple[int, int], sm.Expr] = {}
    k0 = sm.zeros(len(q), 1)
    speeds_in_equation: list[set[int]] = [set() for _ in range(speed_matrix.rows)]  # speeds in each equation
    for i, j in speed_matrix.todok():
        speeds_in_equation[i].add(j)
    for equation_rows, columns in _find_blocks(rate_matrix, q):
        block = rate_matrix.extract(equation_rows, columns)
        inverse = -_invert_block(block, [str(q[c]) for c in columns])
        moving = sorted(set().union(*(speeds_in_equation[row] for row in equation_rows)))
        solved = inverse * speed_matrix.extract(equation_rows, moving)
        K |= {(columns[i], moving[j]): entry for (i, j), entry in solved.todok().items()}
        if any(remainder[row, 0] != 0 for row in equation_rows):
            offset = inverse * remainder.extract(equation_rows, [0])
            for i, column in enumerate(columns):
                k0[column, 0] = offset[i, 0]
    matrix = sm.ImmutableMatrix(sm.SparseMatrix(len(q), len(u), K))
    return KinematicEquations(matrix, sm.ImmutableMatrix(k0))


def _evaluate_derivatives(equation: sm.Expr, substitutes: Mapping[sm.Basic, sm.Expr]) -> sm.Expr:
    """Return the equation in stand-ins of q', with remaining derivatives carried out."""
    replaced = equation.xreplace(substitutes)
    if all(_is_scaled_symbol(term) for term in sm.Add.make_args(replaced)):
        return replaced
    return equation.doit().xreplace(substitutes) if replaced.has(sm.Derivative) else replaced.doit()


def invert_block_matrix(matrix: sm.MatrixBase) -> sm.ImmutableMatrix:
    """Return the inverse of a square matrix, diagonal block by diagonal block (after permutation).

    Raises:
        MechanismError: If it is singular.
    """
    size = matrix.rows
    names = [sm.Symbol(f"q{i + 1}") for i in range(size)]
    inverse = sm.zeros(size, size)
    for rows, columns in _find_blocks(sm.Matrix(matrix), names):
        block = _invert_block(sm.Matrix(matrix).extract(rows, columns), [str(names[c]) for c in columns])
        for i, column in enumerate(columns):
            for j, row in enumerate(rows):
                inverse[column, row] = block[i, j]
    return sm.ImmutableMatrix(inverse)


def _find_blocks(matrix: sm.MatrixBase, q: Sequence[sm.Expr]) -> list[tuple[list[int], list[int]]]:
    """Return (rows, columns) of the diagonal blocks into which ``matrix`` can be permuted."""
    row_count = matrix.rows
    edges = [(i, row_count + j) for i, j in matrix.todok()]
    components = connected_components((list(range(row_count + matrix.cols)), edges))
    faults, blocks = [], []
    for component in sorted(components, key=min):
        rows = sorted(i for i in component if i < row_count)
        columns = sorted(j - row_count for j in component if j >= row_count)
        names = ", ".join(f"{q[column]}'" for column in columns) or "no coordinate's derivative"
        if len(rows) < len(columns):
            faults.append(Fault(f"no kinematic equation determines {names}", remedy="add one equation per coordinate"))
        elif len(rows) > len(columns):
            faults.append(
                Fault(f"{len(rows)} kinematic equations for {names}", remedy="leave out the superfluous ones")
            )
        blocks.append((rows, columns))
    if faults:
        raise MechanismError(KINEMATICS_HEADLINE, faults)
    return blocks


def _invert_block(block: sm.Matrix, names: list[str]) -> sm.Matrix:
    """Return the inverse of K's block as adjugate / determinant; raise where it is singular, naming the rates."""
    if block.rows > 1 and all(entry.is_polynomial(*entry.free_symbols) for entry in block):
        return _invert_polynomial_block(block, names)
    determinant = block.det(method="berkowitz") if block.rows > 1 else block[0, 0]
    if block.rows <= 3:
        determinant = _simplify_angles(determinant)
    if determinant == 0:
        problem = f"they do not determine {', '.join(name + chr(39) for name in names)}: their matrix is singular"
        raise MechanismError(KINEMATICS_HEADLINE, [Fault(problem, remedy="give independent equations")])
    adjugate = block.adjugate(method="berkowitz") if block.rows > 1 else sm.eye(1)
    if block.rows <= 3:
        adjugate = adjugate.applyfunc(_simplify_angles)
    return adjugate / determinant


def _simplify_angles(expression: sm.Expr) -> sm.Expr:
    """Return ``trigsimp`` of an expression; one product is simple already, as most entries for Euler angles become."""
    product = replace_squared_sines(expression)
    return sm.trigsimp(expression) if product.is_Add else product


def _invert_polynomial_block(block: sm.Matrix, names: list[str]) -> sm.Matrix:
    """Invert a matrix of polynomials (quaternions) in their field of fractions, where common factors cancel."""
    try:
        return DomainMatrix.from_Matrix(block).to_field().inv().to_Matrix()
    except DMNonInvertibleMatrixError:
        problem = f"they do not determine {', '.join(name + chr(39) for name in names)}: their matrix is singular"
        raise MechanismError(KINEMATICS_HEADLINE, [Fault(problem, remedy="give independent equations")]) from None


def _guard_switched_powers(expression: sm.Expr) -> sm.Expr:
    """Write Heaviside(s) s^p with Max(s, 0)^p, p no integer: for s < 0 the product is 0, and the power is complex."""

    def guard(product: sm.Expr) -> sm.Expr:
        """Return a product with its powers guarded by the steps in it."""
        steps = [factor.args[0] for factor in product.args if isinstance(factor, sm.Heaviside)]
        return sm.Mul(
            *(
                sm.Pow(sm.Max(factor.base, 0), factor.exp)
                if isinstance(factor, sm.Pow)
                and factor.exp.is_integer is False
                and any(sm.cancel(factor.base / step).is_positive for step in steps)
                else factor
                for factor in product.args
            )
        )

    guarded_expression: sm.Expr = expression.replace(
        lambda e: e.is_Mul and any(isinstance(f, sm.Heaviside) for f in e.args), guard
    )
    return guarded_expression


def replace_symbols(expression: sm.Basic, mapping: Mapping[sm.Basic, sm.Expr]) -> sm.Expr:
    """Replace the keys of ``mapping``; each distinct subexpression is visited once.

    ``xreplace`` visits every occurrence, which for equations of motion is exponentially more.
    """
    replaced: dict[sm.Basic, sm.Basic] = {}
    stack: list[tuple[sm.Basic, bool]] = [(expression, False)]
    while stack:
        node, arguments_done = stack.pop()
        if node in replaced:
            continue
        if node in mapping:
            replaced[node] = mapping[node]
        elif not node.args:
            replaced[node] = node
        elif arguments_done:
            arguments = tuple(replaced[argument] for argument in node.args)
            replaced[node] = node if arguments == node.args else _rebuild_node(node, arguments)
        else:
            stack.append((node, True))
            stack += [(argument, False) for argument in node.args]
    return replaced[expression]


def _rebuild_node(node: sm.Basic, arguments: tuple[sm.Basic, ...]) -> sm.Basic:
    """Return a node with other arguments; of ``Max`` and ``Min`` SymPy would compare each with each, which is slow."""
    is_extremum = isinstance(node, sm.Max | sm.Min)
    if is_extremum and sum(each.is_Number or isinstance(each, node.func) for each in arguments) <= 1:
        return node.func(*arguments, evaluate=False)
    return node.func(*arguments)


def replace_squared_sines(expression: sm.Expr) -> sm.Expr:
    """Return an expanded expression with 1 - cos² for sin²: what cancels or adds up to 1 then does.

    ``trigsimp`` finds the same, and other identities, in thirty times as long.
    """
    expanded = sm.expand(expression)
    powers = [node for node in expanded.atoms(sm.Pow) if isinstance(node.base, sm.sin) and node.exp.is_Integer]
    replaced = {
        power: (1 - sm.cos(power.base.args[0]) ** 2) ** (power.exp // 2) * power.base ** (power.exp % 2)
        for power in powers
        if power.exp >= 2
    }
    return sm.expand(expanded.xreplace(replaced)) if replaced else expanded


def replace_symbols_in_matrix(matrix: sm.MatrixBase, mapping: Mapping[sm.Basic, sm.Expr]) -> sm.ImmutableMatrix:
    """:func:`replace_symbols` for all entries at once."""
    entries = replace_symbols(sm.Tuple(*matrix), mapping)
    return sm.ImmutableMatrix(matrix.rows, matrix.cols, list(entries.args))


def make_unique_symbol(name: str, taken_names: set[str]) -> sm.Symbol:
    """Return a new symbol, with underscores appended until its name is free; mark the name as taken."""
    while name in taken_names:
        name += "_"
    taken_names.add(name)
    return sm.Symbol(name)
