"""Settings for all tests, and what each file of them took."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from itertools import chain

import pytest
from hypothesis import settings

# The machine that runs the tests may be busy: time says nothing about a property. The same examples every time, so that
# a change that breaks something is the one that shows it.
settings.register_profile("project", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("project")


def seconds_by_file(reports: Iterable[pytest.TestReport]) -> list[tuple[str, float, int]]:
    """File, seconds with set-up, and number of tests, the longest first."""
    seconds: dict[str, float] = defaultdict(float)
    count: dict[str, int] = defaultdict(int)
    for report in reports:
        file = report.nodeid.partition("::")[0]
        seconds[file] += report.duration
        count[file] += report.when == "call"
    return sorted(((file, seconds[file], count[file]) for file in seconds), key=lambda row: -row[1])


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Where the durations of tests are asked for, those of files too; all processes together."""
    shown = config.option.durations
    if shown is None:
        return
    everything = chain.from_iterable(terminalreporter.stats.values())
    rows = seconds_by_file(each for each in everything if isinstance(each, pytest.TestReport))
    terminalreporter.section(f"seconds by file, {sum(row[1] for row in rows):.0f} in all")
    for file, seconds, count in rows[: shown or None]:
        terminalreporter.line(f"{seconds:8.1f}  {count:4d} tests  {file}")
