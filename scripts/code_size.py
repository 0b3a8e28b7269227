"""Counts the code by package: files, lines, logic, docstrings; and circles of files that import each other.

``python scripts/code_size.py [FOLDER …]``: FOLDER is ``mb2fmu`` if it is left out; ``tests`` is counted likewise.

A line of logic is neither blank nor comment, docstring nor import. Closing brackets count: joining lines is no way to
become smaller.
"""

from __future__ import annotations

import ast
import functools
import io
import sys
import tokenize
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).parents[1]


@functools.cache
def block_fields(fields: tuple[str, ...]) -> tuple[str, ...]:
    """Return those fields of a node, of all its fields, that hold lists of statements."""
    return tuple(field for field in ("body", "orelse", "finalbody", "handlers", "cases") if field in fields)


def walk_statements(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield a node and all statements below it, at any depth: a tenth of the nodes that ``ast.walk`` yields."""
    left = [tree]
    while left:
        node = left.pop()
        yield node
        for field in block_fields(node._fields):
            left += reversed(getattr(node, field))


def docstring_lines(tree: ast.AST) -> set[int]:
    """Return the lines of all strings that stand as statements: docstrings, and those below attributes."""
    return {
        line
        for node in walk_statements(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }


def import_lines(tree: ast.AST) -> set[int]:
    """Return the lines of all import statements."""
    return {
        line
        for node in walk_statements(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }


def code_lines(text: str) -> set[int]:
    """Return the lines that hold a token other than comments and line ends; strings over several lines count whole."""
    layout = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
    return {
        line
        for token in tokenize.generate_tokens(io.StringIO(text).readline)
        if token.type not in layout
        for line in range(token.start[0], token.end[0] + 1)
    }


def logic_lines(text: str, tree: ast.AST) -> set[int]:
    """Return the lines of logic of a module, numbered from 1; ``tree``: its syntax."""
    without = docstring_lines(tree) | import_lines(tree)
    lines = {number: line.strip() for number, line in enumerate(text.split("\n"), 1) if number not in without}
    if any(quotes in line for line in lines.values() for quotes in ('"""', "'''")):
        return code_lines(text) - without
    # No string has several lines, so that a line tells by itself what it is; reading tokens takes twenty times as long.
    return {number for number, line in lines.items() if line and not line.startswith("#")}


def count(files: list[Path]) -> Counter[str]:
    """Return the sums over files: ``files``, ``lines``, ``logic``, ``docstrings``, ``imports``."""
    found: Counter[str] = Counter(files=len(files))
    for file in files:
        text = file.read_text(encoding="utf-8")
        tree = ast.parse(text)
        found.update(
            lines=text.count("\n"),
            logic=len(logic_lines(text, tree)),
            docstrings=len(docstring_lines(tree)),
            imports=len(import_lines(tree)),
        )
    return found


def python_files(folder: Path) -> list[Path]:
    """Return the Python files below a folder, sorted, without compiled ones."""
    return sorted(path for path in folder.rglob("*.py") if "__pycache__" not in path.parts)


@functools.cache
def parse_modules(package: Path) -> dict[Path, ast.Module]:
    """Return the syntax tree of each module below a package."""
    return {path: ast.parse(path.read_text(encoding="utf-8")) for path in python_files(package)}


def imported_modules(package: Path, trees: Mapping[Path, ast.Module]) -> dict[str, set[str]]:
    """Return the modules of a package that each of them imports, also late and for types; the root is left out."""
    names = {}
    for path in trees:
        parts = path.relative_to(package.parent).with_suffix("").parts
        names[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    del names[package.name]
    arrows: dict[str, set[str]] = {name: set() for name in names}
    for name, path in names.items():
        for node in walk_statements(trees[path]):
            match node:
                case ast.ImportFrom(module=str(module), level=0):
                    targets = [f"{module}.{alias.name}" for alias in node.names]
                    arrows[name].update(target if target in names else module for target in targets)
                case ast.Import():
                    arrows[name].update(alias.name for alias in node.names)
                case _:
                    pass
    return {name: (targets & names.keys()) - {name} for name, targets in arrows.items()}


def circles(arrows: dict[str, set[str]]) -> Iterator[list[str]]:
    """Yield the groups of modules that reach each other (strongly connected components, by repeated removal)."""
    left = {name: set(targets) for name, targets in arrows.items()}
    while True:
        sources = set().union(*left.values()) if left else set()
        loose = {name for name, targets in left.items() if not targets or name not in sources}
        if not loose:
            break
        left = {name: targets - loose for name, targets in left.items() if name not in loose}
    while left:
        start = min(left)
        reached = _reached(start, left)
        group = sorted(name for name in reached if start in _reached(name, left))
        if len(group) > 1:
            yield group
        gone = {start, *group}
        left = {name: targets - gone for name, targets in left.items() if name not in gone}


def _reached(start: str, arrows: dict[str, set[str]]) -> set[str]:
    """Return the modules that a module reaches over one arrow or more."""
    reached: set[str] = set()
    waiting = [start]
    while waiting:
        for target in arrows[waiting.pop()] - reached:
            reached.add(target)
            waiting.append(target)
    return reached


def main() -> None:
    """Print a row for each package and their sum."""
    for name in sys.argv[1:] or ["mb2fmu"]:
        folder = ROOT / name
        rows = {path.name: python_files(path) for path in sorted(folder.iterdir()) if path.is_dir()}
        rows |= {"(top)": sorted(folder.glob("*.py")), name: python_files(folder)}
        print(f"{'':16}{'files':>8}{'lines':>9}{'logic':>9}{'docstrings':>12}{'imports':>9}")
        for row, files in rows.items():
            if files:
                found = count(files)
                share = f"{found['docstrings']} ({found['docstrings'] / max(found['lines'], 1):.0%})"
                print(f"{row:16}{found['files']:8}{found['lines']:9}{found['logic']:9}{share:>12}{found['imports']:9}")
        if name == "mb2fmu":
            found_circles = list(circles(imported_modules(folder, parse_modules(folder))))
            print(f"circles of files: {len(found_circles)}", *found_circles, sep="\n  ")


if __name__ == "__main__":
    main()
