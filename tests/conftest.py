"""Settings for all tests."""

from __future__ import annotations

from hypothesis import settings

# The machine that runs the tests may be busy: time says nothing about a property. The same examples every time, so that
# a change that breaks something is the one that shows it.
settings.register_profile("project", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("project")
