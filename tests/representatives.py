"""Models each of which stands for a kind, for what is tried with one backend or importer after the other.

Every model proves itself as a native unit in the suite (``end_to_end/test_models.py``). The same once more, in Python's
own time or through other importers, shows something new for another kind of model only: the rest carries the mark
``repeats``, and ``scripts/prove_models`` runs it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

REPRESENTATIVES = {
    "chain": "many bodies: code printed as loops, no symbolic mass matrix",
    "double_pendulum": "an open chain with an input",
    "four_bar": "a closed loop, solved by Newton's method",
    "governor": "stiff: the implicit solver",
    "heavy_top": "a Lagrangian without bodies",
    "muscle_arm": "an auxiliary state, curves",
    "quadrotor_slung_load": "quaternions, several inputs",
    "rolling_disc": "velocity constraints, speeds that are no derivatives",
    "transmission": "couplings that are linear in the coordinates",
    "turntable_ball": "explicit time, velocity constraints",
}


def marked(models: Iterable[Any], *, slow: frozenset[str] | None = None) -> list[Any]:
    """Parameters of a test, those of models that stand for no kind of their own marked ``repeats``.

    Args:
        models: Names, or paths of model files.
        slow: Names that are marked ``slow`` as well.
    """
    found = []
    for model in models:
        name = getattr(model, "stem", model)
        marks = [] if name in REPRESENTATIVES else [pytest.mark.repeats]
        marks += [pytest.mark.slow] if slow and name in slow else []
        found.append(pytest.param(model, id=name, marks=marks))
    return found
