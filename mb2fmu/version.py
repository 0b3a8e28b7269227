"""The version of mb2fmu: stages read it here, since the package root imports them."""

from __future__ import annotations

__version__ = "0.9.0"
