"""Functions and classes of a script that make mechanics, and calls of them where the script calls none itself."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import sympy as sm

from mb2fmu.model.script_import.created_mechanics_observation import CreatedScriptMechanics
from mb2fmu.model.script_import.script_code_preparation import ScriptCodePart

_MAKER_CALLS = frozenset({"KanesMethod", "LagrangesMethod", "JointsMethod", "System", "from_newtonian"})


@dataclass(frozen=True, slots=True)
class MechanicsMakingDefinition:
    """A function or class whose body makes mechanics.

    Attributes:
        name: In the script.
        methods: Of a class: those beside the initializer that make mechanics and need no arguments.
    """

    name: str
    methods: tuple[str, ...] = ()


def list_script_mechanics_makers(parts: Iterable[ScriptCodePart]) -> list[MechanicsMakingDefinition]:
    """Return the functions and classes at the script's top level whose bodies make mechanics."""
    found = []
    for node in (node for part in parts for node in part.tree.body):
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and _makes_mechanics(node):
            methods = _list_methods(node) if isinstance(node, ast.ClassDef) else ()
            found.append(MechanicsMakingDefinition(node.name, tuple(methods)))
    return found


def _makes_mechanics(node: ast.AST) -> bool:
    """Return whether a body calls what makes mechanics."""
    called = {ast.unparse(each.func).rpartition(".")[2] for each in ast.walk(node) if isinstance(each, ast.Call)}
    return not _MAKER_CALLS.isdisjoint(called)


def _list_methods(node: ast.ClassDef) -> Iterator[str]:
    """Yield the methods of a class that make mechanics and take nothing but the object."""
    for each in node.body:
        if not isinstance(each, ast.FunctionDef) or each.name == "__init__" or each.decorator_list:
            continue
        if len(each.args.args) - len(each.args.defaults) == 1 and _makes_mechanics(each):
            yield each.name


def call_script_mechanics_makers(
    parts: Iterable[ScriptCodePart], variables: dict[str, Any], noted: CreatedScriptMechanics
) -> str:
    """Call the first function or class of a script that makes mechanics; those that need no arguments come first.

    An argument is the script's variable of that name, or else a symbol of that name.

    Args:
        parts: Of the script.
        variables: Of the script, after it has run.
        noted: Takes the mechanics.

    Returns:
        What was called and with which symbols, for a note; empty if nothing was, or no more than its name is reported.
    """
    makers = [maker for maker in list_script_mechanics_makers(parts) if callable(variables.get(maker.name))]
    needs = {maker.name: _list_needed_arguments(variables[maker.name]) for maker in makers}
    for maker in sorted(makers, key=lambda maker: bool(needs[maker.name])):
        arguments = {name: variables.get(name, sm.Symbol(name)) for name in needs[maker.name]}
        invented = [name for name in arguments if name not in variables]
        try:
            _call_maker(maker, variables, arguments, noted)
        except Exception:
            if not arguments or noted.complete:
                raise
            noted.objects.clear()  # it wants something else than symbols
        if _has_symbol_as_coordinate(noted, arguments.values()):
            noted.objects.clear()
            noted.complete.clear()
        if noted.objects:
            symbols = f" with symbols for {', '.join(invented)}" if invented else ""
            return f"nothing calls {maker.name}: it was called{symbols}" if arguments else ""
    return ""


def _list_needed_arguments(function: Any) -> tuple[str, ...]:
    """Return the names of the arguments that have no default."""
    kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    parameters = inspect.signature(function).parameters.values()
    return tuple(each.name for each in parameters if each.kind in kinds and each.default is each.empty)


def _call_maker(
    maker: MechanicsMakingDefinition,
    variables: dict[str, Any],
    arguments: dict[str, Any],
    noted: CreatedScriptMechanics,
) -> None:
    """Call a function, or a class and then its methods until one has made mechanics."""
    made = variables[maker.name](**arguments)
    for name in maker.methods:
        if noted.complete:
            return
        getattr(made, name)()


def _has_symbol_as_coordinate(noted: CreatedScriptMechanics, symbols: Iterable[Any]) -> bool:
    """Return whether a symbol that was given took the place of a coordinate, which is a function of time."""
    given = {each for each in symbols if isinstance(each, sm.Symbol)}
    return any(given & set(getattr(made, "q", ())) for made in noted.objects)
