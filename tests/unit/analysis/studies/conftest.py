"""An FMU of another tool: a point that falls, and that misbehaves if it is told to."""

from __future__ import annotations

from pathlib import Path

import pytest
from stock_units import built

UNIT = '''
import os
import time

from pythonfmu import Fmi2Causality, Fmi2Slave, Fmi2Variability, Real


class Falling(Fmi2Slave):
    """h'' = -g, by exact steps; at 0.5 s a mood of 1 aborts, 2 hangs, 3 refuses, 4 gives no number.

    It counts its steps in a variable that a reset leaves as it is.
    """

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.h, self.v, self.g, self.push, self.mood, self.counted = 1.0, 0.0, 9.81, 0.0, 0.0, 0.0
        parameter = {"causality": Fmi2Causality.parameter, "variability": Fmi2Variability.tunable}
        for name in ("g", "mood"):
            self.register_variable(Real(name, **parameter))
        self.register_variable(Real("push", causality=Fmi2Causality.input))
        for name in ("h", "v", "counted"):
            self.register_variable(Real(name, causality=Fmi2Causality.output))

    def do_step(self, current_time, step_size):
        if self.mood and current_time >= 0.5:
            if self.mood == 1.0:
                os.abort()
            if self.mood == 2.0:
                time.sleep(1000.0)
            if self.mood == 3.0:
                return False
            self.h = float("nan")
        a = self.push - self.g
        self.h += step_size * (self.v + 0.5 * step_size * a)
        self.v += step_size * a
        self.counted += 1.0
        return True
'''


@pytest.fixture(scope="session")
def falling(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The unit."""
    return built(tmp_path_factory.mktemp("falling"), "Falling", UNIT)
