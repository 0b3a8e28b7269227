"""Numbers of an experiment where neither the user, the model nor the FMU gives one.

Models, FMUs of other tools, studies, systems and measured data all take them from here. The auditor, which depends on
no model, runs FMUs with a tolerance of its own.
"""

from __future__ import annotations

DEFAULT_STOP_S = 10.0
"""Stop time; the start time is 0."""
DEFAULT_STEP_S = 0.01
"""Communication step of models and systems."""
DEFAULT_STEP_COUNT = 1000
"""Communication steps over an experiment, or a table of data, that has an end and no step."""
DEFAULT_TOLERANCE = 1e-6
"""Relative tolerance of the integration."""
DEFAULT_COMPONENT_TOLERANCE = 1e-9
"""Relative tolerance of the solvers of a system's components: their errors must stay below those of the coupling."""
