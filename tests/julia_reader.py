"""Julia without Julia: tree-sitter's parser reads a module, and what the Julia target uses of the language is executed.

A module becomes functions of Python. Anything of the language that has no method here raises, as do elements beyond a
vector's ends, names that are not defined where they are read (a loop's own names end with it), and functions outside of
their domain where Julia's own throw.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import tree_sitter
import tree_sitter_julia
from tree_sitter import Node

PARSER = tree_sitter.Parser(tree_sitter.Language(tree_sitter_julia.language()))


def _view(vector: Any, places: range) -> Any:
    assert 1 <= places.start <= places.stop <= len(vector) + 1, "a view beyond the ends of a vector"
    return vector[places.start - 1 : places.stop - 1]


def _get(array: Any, *indices: int) -> Any:
    for index, size in zip(indices, np.shape(array), strict=True):
        assert 1 <= index <= size, "an element beyond the ends of an array"
    return array[tuple(index - 1 for index in indices)]


def _put(array: Any, value: float, *indices: int) -> None:
    _get(array, *indices)
    array[tuple(index - 1 for index in indices)] = value


def _copy_to(target: Any, source: Any) -> None:
    assert len(target) >= len(source)
    target[: len(source)] = source


def _error(message: str) -> None:
    raise RuntimeError(message)


def _power(a: float, b: float) -> Any:
    with np.errstate(all="ignore"):
        value = np.float64(a) ** np.float64(b)
    if np.isnan(value) and not (np.isnan(a) or np.isnan(b)):
        raise ValueError("a negative number to a power that is no whole number")
    return value


def _range(first: int, *rest: int) -> range:
    step, last = rest if len(rest) == 2 else (1, rest[0])
    return range(first, last + (1 if step > 0 else -1), step)


BUILTINS: dict[str, Any] = {
    **{name: getattr(math, name) for name in ("sin", "cos", "tan", "asin", "acos", "sinh", "cosh", "tanh", "asinh")},
    **{name: getattr(math, name) for name in ("sqrt", "acosh", "hypot")},
    "log": lambda a: -math.inf if a == 0.0 else math.log(a),
    "exp": lambda a: float(np.exp(a)),
    "atanh": lambda a: math.copysign(math.inf, a) if abs(a) == 1.0 else math.atanh(a),
    "atan": lambda *a: math.atan2(*a) if len(a) == 2 else math.atan(a[0]),
    "floor": lambda a: float(np.floor(a)),
    "ceil": lambda a: float(np.ceil(a)),
    "abs": abs,
    "max": lambda a, b: float(np.maximum(a, b)),
    "isnan": math.isnan,
    "isfinite": math.isfinite,
    "div": lambda a, b: a // b,
    "one": lambda _: np.float64(1.0),
    "zero": lambda _: np.float64(0.0),
    "oftype": lambda _, value: np.float64(value),
    "eltype": lambda _: np.float64,
    "zeros": lambda _, *shape: np.zeros(shape),
    "copy": lambda a: a.copy(),
    "copyto!": _copy_to,
    "length": len,
    "view": _view,
    "error": _error,
    "Float64": np.array,
    "String": list,
    "NaN": np.float64(math.nan),
    "Inf": np.float64(math.inf),
    "nothing": None,
    "Function": None,
}

OPERATORS = {"+", "-", "*", "/", "<", "<=", ">", ">=", "==", "!="}


class _Translator:
    """Functions of a module as Python source; a method for each kind of statement and of expression.

    Args:
        names: What is defined outside of functions.
    """

    def __init__(self, names: set[str]) -> None:
        self._scopes = [names]

    def function(self, node: Node) -> str:
        """A definition."""
        signature, *body = node.named_children
        called, arguments = signature.named_children[0].named_children
        parameters = [_text(each) for each in arguments.named_children]
        self._scopes.append(set(parameters))
        lines = list(self._statements(body))
        self._scopes.pop()
        return "\n".join([f"def {_python(_text(called))}({', '.join(map(_python, parameters))}):", *lines, ""])

    def _statements(self, nodes: Sequence[Node]) -> Iterator[str]:
        """The lines of a block, indented."""
        kept = [node for node in nodes if node.type != "line_comment"]
        lines = [line for node in kept for line in self._of_kind(node)] or ["pass"]
        yield from (f"    {line}" for line in lines)

    def _loop(self, body: Sequence[Node], *names: str) -> Iterator[str]:
        """A block whose own names end with it."""
        self._scopes.append(set(names))
        yield from self._statements(body)
        self._scopes.pop()

    def _of_kind(self, node: Node) -> Iterator[str]:
        """The lines of a statement."""
        if node.type == "call_expression":
            return iter([self.expression(node)])
        return iter(getattr(self, f"_statement_{node.type}")(*node.named_children))

    def _statement_return_statement(self, value: Node) -> Iterator[str]:
        yield f"return {self.expression(value)}"

    def _statement_if_statement(self, condition: Node, *rest: Node, word: str = "if") -> Iterator[str]:
        first = [node for node in rest if not node.type.endswith("_clause")]
        yield f"{word} {self.expression(condition)}:"
        yield from self._statements(first)
        for clause in rest[len(first) :]:
            yield from self._of_kind(clause)

    def _statement_elseif_clause(self, condition: Node, *rest: Node) -> Iterator[str]:
        yield from self._statement_if_statement(condition, *rest, word="elif")

    def _statement_else_clause(self, *body: Node) -> Iterator[str]:
        yield "else:"
        yield from self._statements(body)

    def _statement_while_statement(self, condition: Node, *body: Node) -> Iterator[str]:
        yield f"while {self.expression(condition)}:"
        yield from self._loop(body)

    def _statement_for_statement(self, binding: Node, *body: Node) -> Iterator[str]:
        name, _, places = binding.named_children
        yield f"for {_python(_text(name))} in {self.expression(places)}:"
        yield from self._loop(body, _text(name))

    def _statement_assignment(self, target: Node, operator: Node, value: Node) -> Iterator[str]:
        text, sign = self.expression(value), _text(operator).removesuffix("=")
        if sign:
            text = f"{self.expression(target)} {sign} ({text})"
        if target.type == "index_expression":
            array, indices = target.named_children
            yield f"_put({self.expression(array)}, {text}, {self._list(indices.named_children)})"
            return
        names = [_text(each) for each in (target.named_children if target.type == "open_tuple" else [target])]
        self._scopes[-1] |= {name for name in names if not any(name in scope for scope in self._scopes[1:])}
        yield f"{', '.join(map(_python, names))} = {text}"

    _statement_compound_assignment_expression = _statement_assignment

    def expression(self, node: Node) -> str:
        """An expression."""
        text = _text(node)
        literal = {"float_literal": f"_real({text})", "boolean_literal": text.capitalize()}
        literal["string_literal"] = text.replace("\\$", "$")
        if node.type.endswith("_literal"):
            return literal.get(node.type, text)
        if node.type == "identifier":
            return self._identifier(text)
        return str(getattr(self, f"_{node.type}")(*node.named_children))

    def _list(self, nodes: Sequence[Node]) -> str:
        return ", ".join(map(self.expression, nodes))

    def _identifier(self, name: str) -> str:
        if not any(name in scope for scope in self._scopes):
            raise NameError(f"{name} is not defined where it is read")
        return _python(name)

    def _parenthesized_expression(self, inner: Node) -> str:
        return f"({self.expression(inner)})"

    def _tuple_expression(self, *parts: Node) -> str:
        return f"({self._list(parts)})"

    def _unary_expression(self, operator: Node, operand: Node) -> str:
        return f"({ {'-': '-', '!': 'not '}[_text(operator)] }{self.expression(operand)})"

    def _binary_expression(self, left: Node, operator: Node, right: Node) -> str:
        a, b, sign = self.expression(left), self.expression(right), _text(operator)
        special = {"^": f"_power({a}, {b})", "isa": f"callable({a})"}
        words = {"&&": "and", "||": "or"} | {each: each for each in OPERATORS}
        return special[sign] if sign in special else f"({a} {words[sign]} {b})"

    def _ternary_expression(self, condition: Node, then: Node, otherwise: Node) -> str:
        return f"({self.expression(then)} if {self.expression(condition)} else {self.expression(otherwise)})"

    def _range_expression(self, first: Node, last: Node) -> str:
        inner = first.named_children if first.type == "range_expression" else [first]
        return f"_range({self._list([*inner, last])})"

    def _index_expression(self, array: Node, indices: Node) -> str:
        values = self._list(indices.named_children)
        if _text(array) in {"Float64", "String"}:
            return f"{_python(_text(array))}([{values}])"
        return f"_get({self.expression(array)}, {values})"

    def _call_expression(self, called: Node, arguments: Node) -> str:
        function = "not " if called.type == "operator" else self.expression(called)  # !(…)
        return f"({function}({self._list(arguments.named_children)}))"


def _text(node: Node) -> str:
    assert node.text is not None
    return node.text.decode()


def _python(name: str) -> str:
    """A name of Julia as one of Python."""
    return f"julia_{name.replace('!', '_bang')}"


def read_module(source: str) -> dict[str, Callable[..., Any]]:
    """The functions and constants of a module, by their names in Julia.

    Raises:
        SyntaxError: If it is not Julia.
    """
    tree = PARSER.parse(source.encode())
    if tree.root_node.has_error:
        raise SyntaxError("tree-sitter finds an error in the Julia code")
    (module,) = (node for node in tree.root_node.named_children if node.type == "module_definition")
    statements = [node for node in module.named_children[1:] if node.type != "line_comment"]
    constants = [node.named_children[0] for node in statements if node.type == "const_statement"]
    functions = [node for node in statements if node.type == "function_definition"]
    assert len(constants) + len(functions) == len(statements), {node.type for node in statements}
    named = [_text(node.named_children[0].named_children[0].named_children[0]) for node in functions]
    named += [_text(node.named_children[0]) for node in constants]
    translator = _Translator({*BUILTINS, *named})
    tools = {"_get": _get, "_put": _put, "_range": _range, "_power": _power, "_real": np.float64}
    known: dict[str, Any] = {_python(name): value for name, value in BUILTINS.items()} | tools
    lines = [f"{_python(_text(c.named_children[0]))} = {translator.expression(c.named_children[2])}" for c in constants]
    code = "\n".join([*lines, *map(translator.function, functions)])
    exec(compile(code, "module.jl", "exec"), known)
    return {name: _quiet(known[_python(name)]) for name in named}


def _quiet(value: Any) -> Any:
    """A function whose divisions by zero give infinity without a warning; constants as they are."""
    return np.errstate(all="ignore")(value) if callable(value) else value
