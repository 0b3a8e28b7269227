"""Read a script or notebook, and prepare it to be run under observation."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from mb2fmu.errors import Fault, ModelError

NOTE_FUNCTION = "__mb2fmu_note_locals__"
"""Name under which the script's functions call the observer of their local variables."""

_RUN_ANYWAY_MAGICS = ("%%time", "%%timeit", "%%capture", "%%prun")
"""Cell magics whose cell is Python all the same."""


@dataclass(frozen=True, slots=True)
class ScriptCodePart:
    """A piece of a script that is compiled by itself: the whole file, or one cell of a notebook.

    Attributes:
        name: As tracebacks name it: the file's path, or ``path[3]`` for the third code cell.
        tree: Its statements.
        text: Its lines, for messages.
    """

    name: str
    tree: ast.Module
    text: str


def read_script_parts(path: Path) -> tuple[ScriptCodePart, ...]:
    """Return the parts of a script in the order in which they run.

    Raises:
        ModelError: If there is no such file, or it is no Python that can be read.
    """
    if path.suffix not in {".py", ".ipynb"} or not path.is_file():
        what = "there is no such file" if not path.is_file() else "a script ends in .py, a notebook in .ipynb"
        raise ModelError("no script could be read:", [Fault(what, str(path), "give the path of a SymPy script")])
    parts = []
    for name, text in _read_cells(path):
        try:
            parts.append(ScriptCodePart(name, ast.parse(text, name), text))
        except SyntaxError as error:
            remedy = "it is Python 2: convert it first, with  2to3" if _is_python_2(error) else ""
            fault = Fault(str(error.msg), format_script_line(name, error.lineno or 1), remedy)
            raise ModelError(f"{path.name} is no Python that can be read:", [fault]) from error
    return tuple(parts)


def format_script_line(name: str, line: int) -> str:
    """Return ``file:line`` for a part's name and a line in it; ``file, cell 3:line`` in a notebook."""
    base = Path(name).name
    if base.endswith("]"):
        file, _, cell = base[:-1].rpartition("[")
        return f"{file}, cell {cell}:{line}"
    return f"{base}:{line}"


def add_local_variable_recording(tree: ast.Module) -> ast.Module:
    """Return the statements with each function recording its local variables when it ends."""
    noting: ast.Module = _LocalsRecorder().visit(tree)
    return ast.fix_missing_locations(noting)


class _LocalsRecorder(ast.NodeTransformer):
    """Puts each function's body into ``try … finally: note(locals())``."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        """Wrap one function; its docstring stays where it is."""
        self.generic_visit(node)
        head = node.body[:1] if ast.get_docstring(node, clean=False) is not None else []
        rest = node.body[len(head) :]
        if rest:
            note = ast.parse(f"{NOTE_FUNCTION}(locals())").body[0]
            for inner in ast.walk(note):
                ast.copy_location(inner, rest[-1])
            node.body = [*head, ast.copy_location(ast.Try(rest, [], [], [note]), rest[0])]
        return node


def _read_cells(path: Path) -> Iterator[tuple[str, str]]:
    """Yield (name, text) of a file's parts."""
    if path.suffix != ".ipynb":
        yield str(path), path.read_text(encoding="utf-8-sig", errors="replace")
        return
    try:
        notebook = json.loads(path.read_text(encoding="utf-8-sig"))
        worksheets = notebook.get("worksheets") or [notebook]  # version 3 of the format has worksheets
        cells = [cell for sheet in worksheets for cell in sheet["cells"] if cell["cell_type"] == "code"]
        texts = ["".join(cell.get("source", cell.get("input", ""))) for cell in cells]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        fault = Fault(f"{type(error).__name__}: {error}", str(path), "save it again with Jupyter")
        raise ModelError(f"{path.name} is no notebook that can be read:", [fault]) from error
    for number, text in enumerate(texts, 1):
        yield f"{path}[{number}]", _without_magics(text)


def _without_magics(text: str) -> str:
    """Return a cell's Python: magics and shell commands become ``pass``, so that line numbers stay."""
    lines = text.splitlines()
    if lines and lines[0].startswith("%%"):
        if not lines[0].startswith(_RUN_ANYWAY_MAGICS):
            return ""
        lines[0] = "pass"
    cleaned = []
    for line in lines:
        bare = line.lstrip()
        magic = bare.startswith(("%", "!", "?")) or (bare.endswith("?") and "#" not in bare)
        cleaned.append(line[: len(line) - len(bare)] + "pass" if magic else line)
    return "\n".join(cleaned) + "\n"


def _is_python_2(error: SyntaxError) -> bool:
    """Return whether a syntax error is that of Python 2's print statement and the like."""
    return "print" in str(error.msg) or "exec" in str(error.msg)
