"""Names that docstrings document under ``Args`` and ``Attributes`` are parameters and fields."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "mb2fmu"


def documented(docstring: str) -> Iterator[str]:
    """Yield the names that stand at the first indentation below ``Args:`` and ``Attributes:``."""
    for match in re.finditer(r"^( *)(?:Args|Attributes):\n((?:\1 +\S.*\n|\n)*)", docstring + "\n", re.MULTILINE):
        inner = len(match[1]) + 4
        for line in match[2].splitlines():
            if line[:inner].isspace() and line[inner : inner + 1].strip() and ":" in line:
                yield from (name.strip(" *") for name in line.partition(":")[0].split(","))


def parameters(function: ast.FunctionDef) -> set[str]:
    """Return the names of all parameters."""
    a = function.args
    given = [*a.posonlyargs, *a.args, *a.kwonlyargs, *filter(None, (a.vararg, a.kwarg))]
    return {each.arg for each in given}


def members(node: ast.ClassDef, classes: dict[str, list[ast.ClassDef]]) -> set[str]:
    """Return fields, methods and parameters of ``__init__``, those of the bases included."""
    found: set[str] = set()
    for each in ast.walk(node):
        if isinstance(each, ast.FunctionDef):
            found |= {each.name} | (parameters(each) if each.name in {"__init__", "__new__", "__call__"} else set())
        elif isinstance(each, ast.Name | ast.Attribute) and isinstance(each.ctx, ast.Store):
            found.add(each.id if isinstance(each, ast.Name) else each.attr)
    for base in node.bases:
        name = ast.unparse(base).partition("[")[0].rpartition(".")[2]
        for each in classes.get(name, []) if name != node.name else []:
            found |= members(each, classes)
    return found


def unknown_names(sources: list[str]) -> list[str]:
    """Return ``owner: name`` of each documented name that its owner does not have."""
    nodes = [node for source in sources for node in ast.walk(ast.parse(source))]
    classes: dict[str, list[ast.ClassDef]] = {}
    for node in nodes:
        if isinstance(node, ast.ClassDef):
            classes.setdefault(node.name, []).append(node)
    found = []
    for node in nodes:
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            known = members(node, classes) if isinstance(node, ast.ClassDef) else parameters(node)
            found += [f"{node.name}: {name}" for name in documented(ast.get_docstring(node) or "") if name not in known]
    return found


def test_docstrings_document_names_that_exist() -> None:
    assert unknown_names([path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py")]) == []


def test_a_name_that_does_not_exist_is_found() -> None:
    text = 'def f(a):\n    """Return a.\n\n    Args:\n        a: One.\n            b: no name.\n        c: None."""\n'
    fields = 'class C:\n    """Data.\n\n    Attributes:\n        x, y: Numbers.\n    """\n\n    x: int\n'
    assert unknown_names([text, fields]) == ["f: c", "C: y"]
