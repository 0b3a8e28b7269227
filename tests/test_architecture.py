"""The arrows between the stages, and where the world outside may be touched."""

from __future__ import annotations

import ast
import importlib
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "scripts"))
from code_size import (  # noqa: E402 - a script, not a package
    circles,
    imported_modules,
    logic_lines,
    walk_statements,
)

PACKAGE = ROOT / "mb2fmu"

# The stages that exist for disk, clock, subprocesses and environment. Templates are package data, read by resources.
WORLDLY = (
    "audit",
    "fmu/runner",
    "fmu/toolchain",
    "fmu/package",
    "fmu/user_cache.py",
    "validation",
    "cli/cli_application.py",
    "cli/fit_command.py",
    "cli/stage_progress_display.py",
    "__main__.py",
    "pipeline/run_and_report/fmu_and_report_publication.py",
    "temporary_files.py",
    "pipeline/fmu_build/model_scene.py",
    "pipeline/run_and_report/report_pages.py",
    "pipeline/derivation/stage_stopwatch.py",
    "model/flexible/calculix_files.py",
    "model/flexible/sid_file.py",
    "model/model_loading.py",
    "model/model_template.py",
    "model/script_import",
    "pipeline/adoption/script_adoption.py",
    "pipeline/adoption/script_adoption_process.py",
    "analysis/studies/study_case_runner.py",
    "analysis/studies/dask_workers.py",
    "analysis/studies/study_result_store.py",
    "analysis/studies/trajectory_files.py",
    "pipeline/study_runs/study_run.py",
    "cli/study_command.py",
    "cli/watch_command.py",
    "pipeline/live_view",
    "pipeline/agent_server",
    "cli/mcp_command.py",
    "systems/fmu_component.py",
    "systems/system_simulation.py",
    "systems/exports/foreign_masters.py",
    "systems/exports/ecos_run_script.py",
    "systems/exports/fmpy_run_script.py",
    "systems/exports/libcosim_run_script.py",
    "systems/master/master_process.py",
    "robots/flexible_links/flexible_link_files.py",
    "robots/robot_loading.py",
    "robots/file_formats/mesh_file_search.py",
)
# What runs inside of a unit is shipped, not run here.
SHIPPED = ("fmu/emit_python/runtime",)
OUTSIDE = {"os", "subprocess", "shutil", "tempfile", "time", "datetime", "socket", "random", "uuid.uuid1", "platform"}
TOUCHING = {
    "open",
    "read_text",
    "read_bytes",
    "write_text",
    "write_bytes",
    "mkdir",
    "unlink",
    "exists",
    "is_file",
    "iterdir",
}
POSIX_ONLY = {"crypt", "fcntl", "grp", "posix", "pty", "pwd", "resource", "syslog", "termios", "tty"}
HERE_ONLY = (
    {
        f"os.{name}"
        for name in ("fork", "getpgid", "getuid", "geteuid", "killpg", "setsid", "uname", "waitid", "WNOHANG")
    }
    | {f"signal.{name}" for name in ("SIGALRM", "SIGCHLD", "SIGHUP", "SIGKILL", "SIGPIPE", "SIGUSR1", "SIGXCPU")}
    | {f"signal.{name}" for name in ("alarm", "pthread_sigmask", "setitimer")}
)
WORD = re.compile(r"\w+")
FORBIDDEN_NAMES = {"utils", "helpers", "common", "core", "misc"}


def modules() -> list[Path]:
    return sorted(path for path in PACKAGE.rglob("*.py") if "__pycache__" not in path.parts)


def pure_modules() -> list[Path]:
    return [path for path in modules() if not path.relative_to(PACKAGE).as_posix().startswith((*WORLDLY, *SHIPPED))]


def touches(tree: ast.AST) -> Iterator[str]:
    """What a module uses of the world outside."""
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                yield from (alias.name for alias in names if alias.name.partition(".")[0] in OUTSIDE)
            case ast.ImportFrom(module=str(module), level=0) if module.partition(".")[0] in OUTSIDE:
                yield module
            case ast.Call(func=ast.Name(id="open")):
                yield "open"
            case ast.Call(func=ast.Attribute(attr=attribute, value=value)) if attribute in TOUCHING:
                if "resources.files(" not in ast.unparse(value):
                    yield attribute
            case _:
                pass


def run_when_imported(tree: ast.AST) -> Iterator[ast.AST]:
    """What is evaluated when a module is imported: bodies of functions are not, nor what stands under a condition."""
    left = [tree]
    while left:
        node = left.pop(0)
        yield node
        waiting = {"body"} if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) else set[str]()
        waiting |= {"body", "orelse"} if isinstance(node, ast.If | ast.Try) else set[str]()
        fields = (field for name, field in ast.iter_fields(node) if name not in waiting)
        left[:0] = [
            child for field in fields for child in (field if isinstance(field, list) else [field])
            if isinstance(child, ast.AST)
        ]  # fmt: skip


def needs_posix(tree: ast.AST) -> list[str]:
    """What an import of a module would ask for that Windows has not."""
    found = []
    for node in run_when_imported(tree):
        match node:
            case ast.Import(names=names):
                found += [alias.name for alias in names if alias.name in POSIX_ONLY]
            case ast.ImportFrom(module=str(module), names=names, level=0):
                found += [module] if module in POSIX_ONLY else []
                found += [f"{module}.{alias.name}" for alias in names if f"{module}.{alias.name}" in HERE_ONLY]
            case ast.Attribute(value=ast.Name(id=module), attr=name) if f"{module}.{name}" in HERE_ONLY:
                found.append(f"{module}.{name}")
            case _:
                pass
    return found


def test_every_module_can_be_imported_on_windows(trees: dict[Path, ast.Module]) -> None:
    planted = "import fcntl\nfrom os import fork\ndef end(number=signal.SIGKILL):\n    import pwd\n    os.killpg()\n"
    planted += "if sys.platform != 'win32':\n    import resource\n"
    assert needs_posix(ast.parse(planted)) == ["fcntl", "os.fork", "signal.SIGKILL"]
    names = {*POSIX_ONLY, *(name.partition(".")[2] for name in HERE_ONLY)}
    texts = {path: set(WORD.findall(path.read_text(encoding="utf-8"))) for path in modules()}
    needy = {path: needs_posix(trees[path]) for path, words in texts.items() if words & names}
    assert {path: needs for path, needs in needy.items() if needs} == {}


def test_imports_follow_the_arrows() -> None:
    command = [Path(sys.executable).with_name("lint-imports"), "--no-cache"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 broken" in done.stdout


def test_pure_stages_touch_nothing_outside(trees: dict[Path, ast.Module]) -> None:
    """Disk, clock, subprocesses and environment belong to the stages that exist for them."""
    imported, called = "|".join(name.partition(".")[0] for name in OUTSIDE), "|".join(TOUCHING)
    touching = re.compile(rf"\b(?:import|from)\b.*\b(?:{imported})\b|\b(?:{called})\s*\(")
    suspects = [path for path in pure_modules() if touching.search(path.read_text(encoding="utf-8"))]
    found = {path.relative_to(PACKAGE).as_posix(): set(touches(trees[path])) for path in suspects}
    assert {place: touched for place, touched in found.items() if touched} == {}


def test_the_probe_finds_what_it_looks_for() -> None:
    code = "import os.path\nfrom time import sleep\nopen('x')\npath.read_text()\nresources.files('x').read_text()"
    assert sorted(touches(ast.parse(code))) == ["open", "os.path", "read_text", "time"]


def test_no_drawer_for_everything() -> None:
    named = {path.stem for path in modules()} | {path.name for path in PACKAGE.rglob("*") if path.is_dir()}
    assert named & FORBIDDEN_NAMES == set()


def test_a_file_name_stands_once() -> None:
    """A name says its room's subject, so that a traceback and a search say where they are.

    The runtime of Python units is shipped and keeps the names that its generated part imports.
    """
    places: dict[str, list[str]] = {}
    for path in modules():
        place = path.relative_to(PACKAGE)
        if path.name != "__init__.py" and not place.as_posix().startswith(SHIPPED):
            places.setdefault(path.name, []).append(place.as_posix())
    assert {name: found for name, found in places.items() if len(found) > 1} == {}


def behind_docstring(function: ast.FunctionDef) -> int:
    """The first line that may hold logic."""
    first = function.body[0]
    return first.lineno if ast.get_docstring(function, clean=False) is None else (first.end_lineno or 0) + 1


def too_long(place: str, text: str, tree: ast.Module) -> list[str]:
    """What of a module is too long; lines are counted where there are more of any kind than are allowed of logic."""
    functions = [node for node in walk_statements(tree) if isinstance(node, ast.FunctionDef)]
    functions = [node for node in functions if (node.end_lineno or 0) - behind_docstring(node) >= 45]
    if not functions and text.count("\n") <= 450:
        return []
    logic = logic_lines(text, tree)
    long = [f"{place}: {len(logic)} lines"] * (len(logic) > 450)
    for node in functions:
        count = len(logic & set(range(node.body[0].lineno, (node.end_lineno or 0) + 1)))
        long += [f"{place}: {node.name} has {count} lines"] * (count > 45)
    return long


def test_files_and_functions_stay_readable(trees: dict[Path, ast.Module]) -> None:
    """At most 450 lines of logic in a file, 45 in a function: neither blank, comment, docstring nor import."""
    planted = "def f():\n" + "    x = 1\n\n" * 46 + "def g():\n" + "    x = 1\n\n" * 45
    assert too_long("planted", planted, ast.parse(planted)) == ["planted: f has 46 lines"]
    assert too_long("planted", "x = 1\n" * 451, ast.parse("x = 1\n" * 451)) == ["planted: 451 lines"]
    found = [
        each
        for path, tree in trees.items()
        for each in too_long(path.relative_to(PACKAGE).as_posix(), path.read_text(encoding="utf-8"), tree)
    ]
    assert found == []


def signature_names(tree: ast.AST) -> set[str]:
    """Names in public signatures, fields and bases of a module: who calls or reads these meets them."""
    found: set[ast.expr | None] = set()
    for node in walk_statements(tree):
        name = getattr(node, "name", "_")
        if isinstance(node, ast.FunctionDef) and (not name.startswith("_") or name == "__init__"):
            found |= {node.returns, *(a.annotation for a in (*node.args.args, *node.args.kwonlyargs))}
        elif isinstance(node, ast.ClassDef) and not name.startswith("_"):
            found |= {*node.bases, *(part.annotation for part in node.body if isinstance(part, ast.AnnAssign))}
    return set(WORD.findall(" ".join(ast.unparse(part) for part in found if part)))


def test_what_no_other_file_uses_is_private(trees: dict[Path, ast.Module]) -> None:
    """Who reads a module sees by its names what other files take from it."""
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    texts = [ROOT / name for name in tracked.split() if name.endswith((".py", ".md", ".toml", ".jinja"))]
    uses: Counter[str] = Counter()
    for path in texts:
        uses.update(set(WORD.findall(path.read_text(encoding="utf-8"))))
    found = []
    for path, tree in trees.items():
        definitions = [node for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)]
        for node in definitions:
            is_registered = isinstance(node, ast.FunctionDef) and bool(node.decorator_list)
            is_formulation = node.name.startswith(("formulate_", "check_applicability_"))  # as FORMULATIONS say
            is_private = node.name.startswith("_")
            if uses[node.name] == 1 and not (is_private or is_registered or is_formulation):
                found += [f"{path.relative_to(PACKAGE)}: {node.name}"] * (node.name not in signature_names(tree))
    assert not found


def test_no_room_is_crowded() -> None:
    """At most 16 files in a folder beside its ``__init__``; lists of like things (elements, commands, trials) 24."""
    lists = {"cli": 24, "model/elements": 24, "audit/behaviour/trials": 24}
    files = Counter(
        path.parent.relative_to(PACKAGE).as_posix()
        for path in modules()
        if path.name not in ("__init__.py", "__main__.py")
    )
    assert {room: count for room, count in files.items() if count > lists.get(room, 16)} == {}
    assert len([path for path in PACKAGE.iterdir() if (path / "__init__.py").is_file()]) <= 14
    assert files["."] <= 6


def find_missing_parts(text: str) -> list[str]:
    """Return which of the four parts a package's docstring lacks, and whether it is longer than 12 lines."""
    docstring = ast.get_docstring(ast.parse(text)) or ""
    parts = ("Input:", "Output:", "Promises:", "[Mm]ust not")
    missing = [part for part in parts if not re.search(part, " ".join(docstring.split()))]
    return missing + [f"{len(docstring.splitlines())} lines"] * (len(docstring.splitlines()) > 12)


def test_packages_say_what_they_take_give_promise_and_must_not_do() -> None:
    assert find_missing_parts('"""Analysis.\n\nInput: x. Output: y. Promises: z."""') == ["[Mm]ust not"]
    places = {path: path.parent.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("__init__.py")}
    of_users = {".", "fmu/emit_python/runtime"}  # the public names, and what is copied into FMUs
    found = {place: find_missing_parts(path.read_text(encoding="utf-8")) for path, place in places.items()}
    assert {place: parts for place, parts in found.items() if parts and place not in of_users} == {}


def test_files_import_each_other_in_no_circle(trees: dict[Path, ast.Module]) -> None:
    assert list(circles({"a": {"b"}, "b": {"c"}, "c": {"b", "d"}, "d": set()})) == [["b", "c"]]
    assert list(circles(imported_modules(PACKAGE, trees))) == []


@pytest.mark.parametrize("path", sorted((ROOT / "docs" / "decisions").glob("*.md")), ids=lambda path: path.stem[:4])
def test_decisions_say_their_number_date_and_status(path: Path) -> None:
    """The first lines: ``# N. title``, empty, ``*date · status*``."""
    lines = path.read_text(encoding="utf-8").splitlines()
    assert lines[0].startswith(f"# {int(path.stem[:4])}. ")
    assert re.fullmatch(r"\*\d{4}-\d{2}-\d{2} · .+\*", lines[2]), lines[2]


def test_names_that_packages_import_late_are_no_modules_of_theirs() -> None:
    """Importing a module puts it under its name into its package: there a function of that name would be hidden."""
    late = [
        path
        for path in PACKAGE.rglob("__init__.py")
        if "\n__getattr__ = import_on_first_use(" in path.read_text(encoding="utf-8")
    ]
    assert len(late) > 2
    for path in late:
        modules = {each.stem for each in path.parent.iterdir() if each.suffix == ".py" or each.is_dir()}
        package = importlib.import_module(".".join(path.parent.relative_to(PACKAGE.parent).parts))
        assert not modules & set(package.__all__), path.parent.name


TOP = {
    *(".ci", ".github", ".gitignore", "CHANGELOG.md", "CITATION.cff", "CONTRIBUTING.md", "LICENSE", "README.md"),
    *("action.yml", "docs", "mb2fmu", "mkdocs.yml", "models", "pyproject.toml", "reference", "requirements.lock"),
    *("scripts", "systems", "tests"),
}


def test_nothing_else_is_kept_at_the_top() -> None:
    """Pictures that were looked at, and logs, have been committed there."""
    if not (ROOT / ".git").exists() or shutil.which("git") is None:
        pytest.skip("no repository, or no git: nobody knows what is kept")
    done = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, timeout=60, check=True)
    assert {line.partition("/")[0] for line in done.stdout.splitlines()} == TOP
