"""Exports every model with two checkouts and compares the archives: the validation that a change left all FMUs alone.

``scripts/compare_archives BEFORE [AFTER]``: a checkout is a folder with ``mb2fmu/`` and ``models/``, as it is made by
``git worktree add --detach ../before COMMIT``. AFTER is this checkout if it is left out. Either may also be a folder of
archives that an earlier call kept (``--keep``), which saves exporting them again.

Every model is exported as a native FMU of FMI 2.0 and 3.0 and as a Python FMU; ``--all`` adds a Python FMU by every
formulation and every treatment of loops. What one checkout refuses the other one must refuse with the same message.
Exit code 1 if any member differs.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import traceback
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
FMUS: dict[str, dict[str, Any]] = {
    "fmi2": {"fmi": "2"},
    "fmi3": {"fmi": "3"},
    "python": {"backend": "python"},
}
METHODS = ("kane", "tmt", "lagrange", "recursive-composite", "recursive-articulated")
TREATMENTS: tuple[dict[str, Any], ...] = (
    {"constraints": "attractor"},
    {"constraints": "multipliers"},
    {"constraints": "multipliers", "baumgarte": 20.0},
    {"constraints": "explicit"},
    {"constraints": "partition"},
)
LARGE = ("chain", "hand", "robot_arm")
"""Models whose written-out equations grow for minutes: by recursions only."""
REFUSED = "refused.txt"


def variants(model: str, *, every: bool) -> Iterator[tuple[str, dict[str, Any]]]:
    """Names and options of the FMUs that are made of a model."""
    yield from FMUS.items()
    if every:
        for method in METHODS[-2:] if model in LARGE else METHODS:
            yield method, {"method": method, "backend": "python"}
        for treatment in TREATMENTS:
            yield "-".join(str(word) for word in treatment.values()), {**treatment, "backend": "python"}


def export(checkout: Path, folder: Path, models: list[str], *, every: bool) -> None:
    """Exports models with the mb2fmu that this process imports; a refusal is written down instead of an FMU."""
    import mb2fmu
    from mb2fmu import pipeline
    from mb2fmu.errors import Mb2FmuError

    if not Path(mb2fmu.__file__).is_relative_to(checkout):
        sys.exit(f"{mb2fmu.__file__} was imported instead of {checkout}/mb2fmu")
    fmus = [(model, *variant) for model in models for variant in variants(model, every=every)]
    for model, name, options in fmus:
        place = folder / model / name
        if place.is_dir() and any(place.iterdir()):
            continue  # kept from an earlier call
        place.mkdir(parents=True, exist_ok=True)
        print(f"  {model}, {name}", file=sys.stderr, flush=True)
        try:
            pipeline.export(checkout / "models" / f"{model}.py", place, **options)
        except Mb2FmuError as error:
            said = "".join(traceback.format_exception_only(error))
            (place / REFUSED).write_text(said.replace(str(checkout), ""), encoding="utf-8")


def exported(source: Path, keep: Path, models: list[str], *, every: bool) -> Path:
    """The folder of a checkout's archives; a checkout exports in a process of its own."""
    if not (source / "mb2fmu").is_dir():
        return source
    print(f"{source}:", file=sys.stderr)
    command = [sys.executable, __file__, str(source), "--export", str(keep), *(["--all"] if every else [])]
    command += [word for model in models for word in ("--model", model)]
    subprocess.run(command, check=True, cwd=source, env=os.environ | {"PYTHONPATH": str(source)})
    return keep


def members(folder: Path) -> dict[str, bytes]:
    """Path in the archive → content, of an FMU that was exported into a folder; or the refusal."""
    archives = sorted(folder.glob("*.fmu"))
    if not archives:
        refusal = folder / REFUSED
        return {REFUSED: refusal.read_bytes()} if refusal.is_file() else {}
    with zipfile.ZipFile(archives[0]) as archive:
        return {each.filename: archive.read(each) for each in archive.infolist()}


def differing(before: Path, after: Path) -> list[str]:
    """One line for each member that differs between two FMUs; archives' own order and dates count, too."""
    a, b = members(before), members(after)
    if not a or not b:
        return [f"was not exported: {before if not a else after}"]
    found = [f"only before: {path}" for path in a.keys() - b.keys()]
    found += [f"only after: {path}" for path in b.keys() - a.keys()]
    found += [
        f"differs: {path} ({len(a[path])} and {len(b[path])} bytes)" for path in a if path in b and a[path] != b[path]
    ]
    if not found:
        whole = [[path.read_bytes() for path in sorted(each.glob("*.fmu"))] for each in (before, after)]
        found += ["the members are the same, the archives are not"] if whole[0] != whole[1] else []
    return sorted(found)


def compare(before: Path, after: Path, models: list[str], *, every: bool) -> int:
    """Prints what differs; the number of FMUs that do."""
    fmus = [(model, name) for model in models for name, _ in variants(model, every=every)]
    unequal, refused = 0, 0
    for model, name in fmus:
        lines = differing(before / model / name, after / model / name)
        refused += (after / model / name / REFUSED).is_file()
        unequal += bool(lines)
        if lines:
            print(f"{model}, {name}:", *lines, sep="\n    ")
    print(f"{len(fmus) - unequal} of {len(fmus)} FMUs are the same ({refused} refused by both checkouts or one)")
    return unequal


def main() -> int:
    """Exports and compares, see the top of this file."""
    parser = argparse.ArgumentParser(prog="compare_archives", description=__doc__)
    parser.add_argument("before", type=Path, metavar="BEFORE")
    parser.add_argument("after", type=Path, nargs="?", default=ROOT, metavar="AFTER")
    parser.add_argument("--model", action="append", dest="models", metavar="NAME", help="default: all of BEFORE")
    parser.add_argument("--all", action="store_true", help="every formulation and treatment, too")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep the archives in DIR/before and DIR/after")
    parser.add_argument("--from", type=Path, default=Path.cwd(), dest="called_from", help=argparse.SUPPRESS)
    parser.add_argument("--export", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    before, after = ((given.called_from / path).resolve() for path in (given.before, given.after))
    if given.export:
        export(before, given.export, given.models, every=given.all)
        return 0
    holds_models = before / "models" if (before / "mb2fmu").is_dir() else before
    models = given.models or sorted(path.stem for path in holds_models.iterdir() if path.suffix in (".py", ""))
    with tempfile.TemporaryDirectory() as scratch:
        keep = (given.called_from / given.keep).resolve() if given.keep else Path(scratch)
        before = exported(before, keep / "before", models, every=given.all)
        after = exported(after, keep / "after", models, every=given.all)
        return int(compare(before, after, models, every=given.all) > 0)


if __name__ == "__main__":
    sys.exit(main())
