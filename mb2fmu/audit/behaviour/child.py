"""Tries a unit in this process, which it may kill: ``python -m mb2fmu.audit.behaviour.child request.json``.

What is found is written line by line as it comes, so that a crash loses none: ``begin`` before each probe, ``at``
before what may take long in it, then what it saw. The unit's own output goes to the process's, where the parent looks.
"""

from __future__ import annotations

import ctypes as c
import json
import resource
import sys
import traceback
from pathlib import Path
from typing import IO, Any

from mb2fmu.audit.behaviour import dependency_trials as dependencies
from mb2fmu.audit.behaviour import derivative_trials as partials
from mb2fmu.audit.behaviour import exchange, host, life, values
from mb2fmu.audit.behaviour import state_trials as state
from mb2fmu.audit.behaviour import step_trials as stepping
from mb2fmu.audit.behaviour.binding import Library, RefusedError
from mb2fmu.audit.behaviour.probe import PROBES, Probe
from mb2fmu.audit.behaviour.stage import EndedError, SkippedError, Stage, UnsettledError
from mb2fmu.audit.description.described_model import DESCRIPTION
from mb2fmu.audit.description.parse_description import read_description

# In this order: first what all others need, last what may leave the process in disorder.
ORDER = (life, values, exchange, stepping, dependencies, partials, state, host)


def ordered() -> list[Probe]:
    """All probes in the order in which they are tried."""
    place = {module.__name__: k for k, module in enumerate(ORDER)}
    return sorted(PROBES, key=lambda each: place[each.function.__module__])


def attempt(each: Probe, stage: Stage, write: Any) -> bool:
    """One probe; whether the unit is worth going on with."""
    good = True
    try:
        for seen in each.function(stage):
            good = good and seen.rule != "life.instantiate"
            write({"found": [seen.rule, seen.message, seen.where]})
    except (UnsettledError, EndedError) as error:
        write({"found": ["life.rest" if isinstance(error, UnsettledError) else "life.ends", str(error), stage.kind]})
    except SkippedError as error:
        write({"skipped": f"{stage.kind}: {each.title}: {error}"})
    except RefusedError as error:
        rule = "life.calls"
        write({"found": [rule, f"{each.title}: {error}", stage.kind]})
    except AttributeError as error:
        # ctypes: a function that is not exported; binary.symbols names it.
        write({"skipped": f"{stage.kind}: {each.title}: {error}"})
    except Exception:  # noqa: BLE001  whatever a fault of the auditor's own is: it must not take the other probes along, and
        # is reported as such, with its traceback; what the unit does is told by the classes above
        write({"fault": f"{stage.kind}: {each.title}: {traceback.format_exc()}"})
    for misdeed in stage.library.misdeeds:
        write({"found": ["life.writes", misdeed, stage.kind]})
    stage.library.misdeeds.clear()
    return good


def load(path: Path) -> c.CDLL:
    """The library.

    Raises:
        OSError: If the loader refuses it.
    """
    return c.CDLL(str(path))


def main() -> None:
    """Reads the request, tries all probes that are asked for and were not tried yet."""
    request = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    folder = Path(request["folder"])
    resource.setrlimit(resource.RLIMIT_AS, (request["memory"], request["memory"]))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    description = read_description((folder / DESCRIPTION).read_bytes())
    host.remember()
    with Path(request["output"]).open("a", encoding="utf-8") as stream:
        write = _Writer(stream)
        for kind, library in request["libraries"].items():
            if kind in request["ended"]:
                continue
            _kind(request, kind, Path(library), folder, description, write)
        write({"done": True})


class _Writer:
    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream

    def __call__(self, line: dict[str, Any]) -> None:
        self._stream.write(json.dumps(line) + "\n")
        self._stream.flush()


def _kind(request: dict[str, Any], kind: str, path: Path, folder: Path, description: Any, write: _Writer) -> None:
    try:
        handle = load(path)
    except OSError as error:
        write({"found": ["life.load", str(error).replace(f"{path.parent}/", ""), kind]})
        return
    library = Library(handle, description, str(folder / "resources"))
    stage = Stage(library, kind, folder, tell=lambda text: write({"at": text}))
    for each in ordered():
        name = f"{kind}: {each.title}"
        asked = each.function is life.instantiate or set(each.rules) & set(request["rules"])
        if kind not in each.kinds or name in request["tried"] or not asked:
            continue
        write({"begin": name, "crash": each.crash, "slow": each.slow, "limit": each.limit})
        good = attempt(each, stage, write)
        for text in stage.skipped:
            write({"skipped": text})
        stage.skipped.clear()
        if not good:
            write({"ended": kind})
            return


if __name__ == "__main__":
    main()
