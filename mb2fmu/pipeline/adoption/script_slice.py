"""Cut out of a script the statements that make its mechanics, and name their symbols by the script's variables."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sympy as sm

from mb2fmu.errors import Fault, ModelError
from mb2fmu.model.quantity_declarations import format_symbol_as_word
from mb2fmu.model.script_import.mechanics_from_script import ScriptMechanics
from mb2fmu.model.script_import.observed_script_values import is_symbolic_quantity
from mb2fmu.model.script_import.script_code_preparation import ScriptCodePart
from mb2fmu.pipeline.adoption.model_file_text import IMPORT_LINE

_SHOWING_CALLS = {"print", "pprint", "mprint", "mpprint", "mlatex", "vprint", "display", "show", "init_vprinting"}


@dataclass(frozen=True, slots=True)
class ScriptSlice:
    """Statements of a script, and Python for what they make.

    Attributes:
        text: The statements.
        variables: Variables when the mechanics were complete.
        stored: Names that the statements bind.
    """

    text: str
    variables: Mapping[str, Any]
    stored: frozenset[str]

    def python_expression_of(self, wanted: Any) -> str:
        """Return Python that gives an object: a variable, or an item of a list.

        Raises:
            ModelError: If no variable of the statements holds it.
        """
        for name in self.variables:
            value = self.variables[name]
            if name in self.stored and (value is wanted or (is_symbolic_quantity(value) and value == wanted)):
                return name
        for name, value in self.variables.items():
            if name in self.stored and isinstance(value, list | tuple | sm.MatrixBase):
                for index, item in enumerate(value):
                    if item is wanted or (is_symbolic_quantity(item) and item == wanted):
                        return f"{name}[{index}]"
        what = f"no variable of the script holds {format_symbol_as_word(wanted)}"
        raise ModelError("the script cannot be written into one file:", [Fault(what, "", "leave out --inline")])


def slice_script_for_mechanics(
    parts: Sequence[ScriptCodePart], end: tuple[str, int], variables: Mapping[str, Any], wanted: str
) -> ScriptSlice:
    """Return the statements up to a line on which the mechanics depend.

    Args:
        parts: Of the script.
        end: Part and line of the statement that completes the mechanics.
        variables: At that line.
        wanted: Variable of the mechanics.

    Raises:
        ModelError: If the mechanics are no variable at the script's top level.
    """
    if wanted not in variables:
        what = f"{wanted} is made inside of a function"
        raise ModelError("the script cannot be written into one file:", [Fault(what, end[0], "leave out --inline")])
    statements = list(_statements_until(parts, end))
    needed, kept = {wanted}, []
    for part, statement in reversed(statements):
        if _concerns(statement, needed):
            needed |= _loaded(statement)
            kept.append((part, statement))
    stored = {name for _, statement in kept for name in _stored(statement)}
    return ScriptSlice(
        "\n".join(_source(part, statement) for part, statement in kept[::-1]), variables, frozenset(stored)
    )


def inline_model_file(text: str, part: ScriptSlice, script: ScriptMechanics, label: str) -> str:
    """Return a model file that needs no script: its statements, and their variables in place of look-ups.

    Args:
        text: Of the model file that fetches the mechanics.
        part: Statements of the script.
        script: The mechanics that they make.
        label: Their variable.
    """
    symbol = re.compile(r'script\["((?:[^"\\]|\\.)*)"\]')
    body = re.compile(r'script\.body\("((?:[^"\\]|\\.)*)"\)')
    text = re.sub(r"\n    script = read_script\(.*\)", "", text).replace("script.mechanics", label)
    text = symbol.sub(lambda found: part.python_expression_of(script[_unquoted(found[1])]), text)
    text = body.sub(lambda found: part.python_expression_of(script.body(_unquoted(found[1]))), text)
    text = text.replace(
        "The script stays as it is; edit values, units and outputs here.", "The script's lines come first."
    )
    return text.replace(IMPORT_LINE, f"from mb2fmu import Model\n\n{part.text}", 1)


def _unquoted(text: str) -> str:
    """Return a text as it was before it was quoted."""
    return text.replace('\\"', '"').replace("\\\\", "\\")


def _statements_until(
    parts: Iterable[ScriptCodePart], end: tuple[str, int]
) -> Iterator[tuple[ScriptCodePart, ast.stmt]]:
    """Yield the statements at top level, the completing one last."""
    for part in parts:
        for statement in part.tree.body:
            if part.name == end[0] and statement.lineno > end[1]:
                return
            yield part, statement
        if part.name == end[0]:
            return


def _concerns(statement: ast.stmt, needed: set[str]) -> bool:
    """Return whether a statement makes or changes something that is needed."""
    if isinstance(statement, ast.ImportFrom) and any(alias.name == "*" for alias in statement.names):
        return True
    if _stored(statement) & needed:
        return True
    return any(_changes(node) & needed for node in ast.walk(statement))


def _changes(node: ast.AST) -> set[str]:
    """Return the names that a call, or an assignment to an item or attribute, may change."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        function = node.value.func
        called = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
        if called in _SHOWING_CALLS:
            return set()
        return {_root(function)} | {_root(argument) for argument in node.value.args}
    if isinstance(node, ast.Assign | ast.AugAssign | ast.AnnAssign):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        calls = [each for each in ast.walk(node.value) if isinstance(each, ast.Call)] if node.value else []
        # P = O.locatenew(...) joins P to O, and v = P.v2pt_theory(O, N, A) sets P's velocity.
        return {_root(target) for target in targets} | {_root(call.func) for call in calls}
    return set()


def _root(node: ast.AST) -> str:
    """Return the variable at the beginning of ``a.b[c].d``."""
    while isinstance(node, ast.Attribute | ast.Subscript | ast.Call):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""


def _stored(statement: ast.AST) -> set[str]:
    """Return the names that a statement binds."""
    found = {n.id for n in ast.walk(statement) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    found |= {n.name for n in ast.walk(statement) if isinstance(n, ast.FunctionDef | ast.ClassDef)}
    for node in ast.walk(statement):
        if isinstance(node, ast.Import | ast.ImportFrom):
            found |= {(alias.asname or alias.name).partition(".")[0] for alias in node.names}
    return found


def _loaded(statement: ast.AST) -> set[str]:
    """Return the names that a statement reads."""
    return {n.id for n in ast.walk(statement) if isinstance(n, ast.Name)}


def _source(part: ScriptCodePart, statement: ast.stmt) -> str:
    """Return a statement's lines."""
    first = min([statement.lineno, *(d.lineno for d in getattr(statement, "decorator_list", ()))])
    return "\n".join(part.text.splitlines()[first - 1 : statement.end_lineno])
