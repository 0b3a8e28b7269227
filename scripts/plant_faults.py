"""Counts which planted faults the validation finds; the faults stand beside the tests, in ``tests/planted``."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
    sys.exit(importlib.import_module("planted.command").main())
