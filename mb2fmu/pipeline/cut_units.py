"""``split``: one model → several units, and the file that couples them again.

Path → Derivation (the whole) → Cut → Parts → units, system file
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from mb2fmu import package
from mb2fmu.filetree import FileTree
from mb2fmu.pipeline import pages
from mb2fmu.pipeline.building import build
from mb2fmu.pipeline.deriving import AnyModel, derive
from mb2fmu.pipeline.outcomes import Derivation, Observer
from mb2fmu.pipeline.right_hand_side import RightHandSide
from mb2fmu.systems.splitting import Cut, Part, Settings, Way, cut, parts
from mb2fmu.systems.splitting.system_file import SystemRun, system_file

TIGHTEST = 1e-11


@dataclass(frozen=True)
class Split:
    """A model cut into units.

    Attributes:
        cut: Where.
        parts: One per unit.
        units: Their archives.
        system: The file that couples them.
    """

    cut: Cut
    parts: tuple[Part, ...]
    units: tuple[Path, ...]
    system: Path


def split(
    model: AnyModel,
    at: Sequence[str],
    folder: Path | str,
    *,
    way: Way | None = None,
    arguments: Mapping[str, Any] | None = None,
    settings: Settings | None = None,
    step: float = 0.001,
    observer: Observer | None = None,
) -> Split:
    """Cuts a model into units and writes them with the file that couples them.

    Args:
        model: A model's file, if the whole is to be the truth.
        at: Names of one joint or point, of loads, or of constraints.
        folder: Where to write ``<Model>_<part>.fmu`` and ``system.py``.
        way: See :class:`~mb2fmu.systems.splitting.Cut`; None: the usual one.
        arguments: Of the model file's function.
        settings: Numbers of filters and bushings.
        step: Communication step in s of the system file.
        observer: Is told of each stage.

    Raises:
        CouplingError: If the model cannot be cut so.
    """
    whole = derive(model, arguments=arguments, observer=observer)
    made = cut(whole.mechanism, at, way)
    finished = parts(made, replace(settings or Settings(), accelerations=_accelerations(whole)))
    files = {f"{part.definition.name}.fmu": _unit(part, observer) for part in finished}
    experiment = whole.definition.experiment
    loop = made.kind == "joint" and made.way == "force"
    run = SystemRun(experiment.stop, step, min(experiment.tolerance, TIGHTEST), loop)
    files["system.py"] = system_file(
        f"{whole.definition.name}Cut",
        f"{whole.definition.name}, cut at {', '.join(at)}",
        finished,
        _way_to(whole, Path(folder)),
        arguments or {},
        run,
    ).encode()
    package.write_tree(FileTree(files), Path(folder))
    units = tuple(Path(folder) / f"{part.definition.name}.fmu" for part in finished)
    return Split(made, finished, units, Path(folder) / "system.py")


def _unit(part: Part, observer: Observer | None) -> bytes:
    """Builds the unit of a part, as ``pipeline.export`` does; nothing is written before all parts are there."""
    built = build(derive(part.definition, observer=observer), observer=observer)
    return package.archived(pages.described(built))


def _accelerations(whole: Derivation) -> dict[str, float]:
    """u' of the whole at its start, by the speed's symbol."""
    from mb2fmu.pipeline.evaluating import right_hand_side

    f: RightHandSide = right_hand_side(whole)
    rates = dict(zip(f.states, f(0.0, f.x0, f.r0), strict=True))
    return {u.name: float(rates[u.name]) for u in whole.mechanism.u if u.name in rates}


def _way_to(whole: Derivation, folder: Path) -> str:
    """The model's file as seen from the folder."""
    source = whole.definition.source
    return "" if source is None else package.way_between(folder, source)
