"""Names that docstrings document, mention or raise are names of something."""

from __future__ import annotations

import ast
import builtins
import json
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from sympy.physics import mechanics

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "scripts"))
from code_size import walk_statements  # noqa: E402 - a script, not a package

PACKAGE = ROOT / "mb2fmu"


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


def unknown_names(modules: Iterable[ast.Module]) -> list[str]:
    """Return ``owner: name`` of each documented name that its owner does not have."""
    nodes = [node for module in modules for node in walk_statements(module)]
    classes: dict[str, list[ast.ClassDef]] = {}
    for node in nodes:
        if isinstance(node, ast.ClassDef):
            classes.setdefault(node.name, []).append(node)
    found = []
    for node in nodes:
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and (
            reported := [*documented(ast.get_docstring(node) or "")]
        ):
            known = members(node, classes) if isinstance(node, ast.ClassDef) else parameters(node)
            found += [f"{node.name}: {name}" for name in reported if name not in known]
    return found


def test_docstrings_document_names_that_exist(trees: dict[Path, ast.Module]) -> None:
    assert unknown_names(trees.values()) == []


def test_a_name_that_does_not_exist_is_found() -> None:
    text = 'def f(a):\n    """Return a.\n\n    Args:\n        a: One.\n            b: no name.\n        c: None."""\n'
    fields = 'class C:\n    """Data.\n\n    Attributes:\n        x, y: Numbers.\n    """\n\n    x: int\n'
    assert unknown_names(map(ast.parse, (text, fields))) == ["f: c", "C: y"]


WORD = re.compile(r"[A-Za-z_]\w+")
EXAMPLES = {"AddLoop", "DoublePendulum", "cart_ixx", "lower_stop", "upper_stop"}
"""Names of PyMbs, of symbols, of variables in FMUs."""
SUFFIXES = {".c", ".h", ".toml", ".jinja", ".js", ".css"}


def docstrings(module: ast.Module) -> list[ast.Constant]:
    """Return the strings that stand as statements."""
    statements = (node.value for node in walk_statements(module) if isinstance(node, ast.Expr))
    return [value for value in statements if isinstance(value, ast.Constant) and isinstance(value.value, str)]


def written_names(source: str, module: ast.Module) -> set[str]:
    """Return names and words of a module, without those of its docstrings."""
    lines = source.splitlines()
    for each in docstrings(module):
        lines[each.lineno - 1 : each.end_lineno] = [""] * (each.end_lineno - each.lineno + 1)
    return set(WORD.findall("\n".join(lines)))


def is_name_of_code(word: str) -> bool:
    """Whether it is called so in code: some_name, SomeName; not N_C_B, X_in, torque_z, NAME_fmpy, theta_1."""
    parts = word.strip("_").split("_")
    camel = re.fullmatch(r"[A-Z][a-z0-9]+(?:[A-Z][a-z0-9]+)+", word)
    return bool(camel) or (len(parts) > 1 and all(len(part) > 1 and part.islower() for part in parts))


def stale_names(module: ast.Module, known: set[str]) -> list[str]:
    """Return names in literals and roles of docstrings, and errors under ``Raises``, that nothing is called."""
    found = []
    for text in (each.value for each in docstrings(module)):
        words = [word for literal in re.findall(r"``([^`]+)``", text) for word in WORD.findall(literal)]
        found += [word for word in words if is_name_of_code(word) and word not in known]
        roles = [role.rpartition(".")[2] for role in re.findall(r":\w+:`[~.!]?([\w.]+)`", text)]
        below = re.search(r"Raises:\n((?: +\S.*\n?)*)", text)
        raised = re.findall(r"^ +([A-Z]\w*Error|[A-Z]\w+(?=: )):", below[1], re.MULTILINE) if below else []
        found += [word for word in roles + raised if word not in known]
    return found


def test_docstrings_name_what_exists(trees: dict[Path, ast.Module]) -> None:
    """After a rename a docstring still has the old name; where that is nobody's now, it is found."""
    known = {*EXAMPLES, *vars(builtins), *vars(mechanics), *vars(mechanics.Point), *vars(mechanics.ReferenceFrame)}
    for folder in ("docs", "models", "scripts", "tests"):
        known |= {path.stem for path in (PACKAGE.parent / folder).rglob("*")}
    for path in PACKAGE.rglob("*"):
        known |= {path.stem, path.name}
        if path.suffix in SUFFIXES:
            known |= set(WORD.findall(path.read_text(encoding="utf-8")))
    for path, module in trees.items():
        known |= written_names(path.read_text(encoding="utf-8"), module)
    stale = {path.name: names for path, module in trees.items() if (names := stale_names(module, known))}
    assert not stale, json.dumps(stale)


def test_a_stale_name_is_found() -> None:
    text = '"""See ``old_name``, :class:`OldName`, ``N_C_B``.\n\nRaises:\n    OldError: Never.\n"""\nold_names = 1\n'
    module = ast.parse(text)
    assert stale_names(module, written_names(text, module)) == ["old_name", "OldName", "OldError"]
