"""A reader who follows ``run`` from call to call seldom comes back to a file, and nothing is made twice."""

from __future__ import annotations

import inspect
import sys
from pathlib import Path
from types import FrameType
from typing import Any

from shorter_validations import shorten_validations

import mb2fmu
from mb2fmu import visualization
from mb2fmu.compiler import events

PIPELINE = str(Path(mb2fmu.__file__).parent / "pipeline")
MODEL = Path(__file__).parents[3] / "models/bouncing_ball.py"


class CallTrace:
    """Calls from file to file in the pipeline's room, in the order of the run.

    A return is a call into a file that was entered before and in which no call is active. Calls in a row of one
    function into one file count once; properties, and the stopwatch that every stage has, do not count.

    Attributes:
        returns: (caller, callee) of each return.
        files: All files that were entered.
    """

    def __init__(self) -> None:
        self.returns: list[tuple[str, str]] = []
        self.files: set[str] = set()
        self._active: list[FrameType] = []
        self._last: dict[FrameType | None, str] = {}

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        """Note a call or its end (``sys.setprofile``)."""
        code = frame.f_code
        if not code.co_filename.startswith(PIPELINE) or code.co_filename.endswith("stage_stopwatch.py"):
            return
        if not code.co_flags & inspect.CO_OPTIMIZED or code.co_name.startswith("<"):  # bodies of modules and classes
            return
        if event == "return" and self._active and self._active[-1] is frame:
            self._active.pop()
            self._last.pop(frame, None)
        elif event == "call":
            self._enter(frame)

    def _enter(self, frame: FrameType) -> None:
        name, caller = frame.f_code.co_filename, self._active[-1] if self._active else None
        is_accessor = isinstance(_find_attribute(frame), property)
        if (caller is None or caller.f_code.co_filename != name) and not is_accessor:
            left = name in self.files and all(each.f_code.co_filename != name for each in self._active)
            if left and self._last.get(caller) != name:
                self.returns.append((caller.f_code.co_qualname if caller else "", frame.f_code.co_qualname))
            self._last[caller] = name
            self.files.add(name)
        self._active.append(frame)


def _find_attribute(frame: FrameType) -> object:
    """Return what the class of a called method has under its name; None for a function."""
    owner = frame.f_locals.get("self")
    return getattr(type(owner), frame.f_code.co_name, None) if owner is not None else None


def test_run_makes_modes_and_scene_once_and_seldom_comes_back(monkeypatch, tmp_path):
    shorten_validations(monkeypatch)
    made = []
    for owner, name in ((events, "convert_switches_to_modes"), (visualization, "build_scene")):
        actual = getattr(owner, name)
        monkeypatch.setattr(owner, name, lambda *given, _as=actual, _name=name: made.append(_name) or _as(*given))
    text, short = MODEL.read_text(encoding="utf-8"), tmp_path / MODEL.name
    assert "stop=2.0" in text
    short.write_text(text.replace("stop=2.0", "stop=0.6"), encoding="utf-8")  # it bounces once: each call is traced
    trace = CallTrace()
    sys.setprofile(trace)
    try:
        finished = mb2fmu.run(short, tmp_path / "out", method="recursive-composite")
    finally:
        sys.setprofile(None)
    assert finished.passed
    assert sorted(made) == ["build_scene", "convert_switches_to_modes"]
    assert len(trace.files) > 8
    assert len(trace.returns) <= 4, trace.returns
