"""What tests of arrays of flexible bodies share."""

from __future__ import annotations

from typing import Any

import pytest

from mb2fmu import FlexibleBody


@pytest.fixture
def arrays_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bodies that have data and interfaces, and no symbols: SymPy's particles take most of the time of a body."""

    def keep_data(body: FlexibleBody, name: str, data: Any, *_: object) -> None:
        body.name, body.data = name, data

    monkeypatch.setattr(FlexibleBody, "_set_up", keep_data)
