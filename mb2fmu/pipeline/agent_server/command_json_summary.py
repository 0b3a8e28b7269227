"""What is reported of the JSON of commands: an agent reads numbers, not ten thousand lines."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

MAX_LISTED = 20
"""Failures or findings that are reported; the report has all."""


def select_created_model_facts(facts: dict[str, Any]) -> dict[str, Any]:
    """Return what ``new`` wrote."""
    return {"model": facts["model"]}


def select_adoption_facts(facts: dict[str, Any]) -> dict[str, Any]:
    """Return what was found in a script, without the text of the model file."""
    return {key: value for key, value in facts.items() if key != "text"}


def drop_equations_from_facts(facts: dict[str, Any]) -> dict[str, Any]:
    """Return states, method and cost, without the equations, which stand in the text."""
    return {key: facts[key] for key in ("model", "method", "states", "operations")}


def select_simulation_facts(facts: dict[str, Any]) -> dict[str, Any]:
    """Return start, end and range of each variable."""
    ranges = {
        name: {"unit": facts["units"][name], "start": v[0], "end": v[-1], "smallest": min(v), "largest": max(v)}
        for name, v in facts["values"].items()
    }
    return {"model": facts["model"], "from": facts["time"][0], "to": facts["time"][-1], "variables": ranges}


def select_audit_facts(facts: dict[str, Any]) -> dict[str, Any]:
    """Return the findings, the worst first as the auditor has them."""
    return {
        "fmu": facts["fmu"], "fmi": facts["version"], "findings": facts["findings"][:MAX_LISTED],
        "left_out": max(len(facts["findings"]) - MAX_LISTED, 0),
    }  # fmt: skip


def select_validation_facts(facts: dict[str, Any]) -> dict[str, Any]:
    """Return what failed, the worst first, and what was not exercised."""
    failures = sorted(list_failed_validation_items(facts), key=lambda failure: -_size(failure.get("ratio", 0.0)))
    return {
        "model": facts["model"],
        "result": facts["verdict"],
        "failures": failures[:MAX_LISTED],
        "left_out": max(len(failures) - MAX_LISTED, 0),
        "not_exercised": [item["name"] for item in facts.get("influences", ()) if not item["exercised"]],
        "not_tried": facts.get("not_tried", []),
        "notes": facts.get("notes", []),
    }


def select_run_command_facts(facts: dict[str, Any]) -> dict[str, Any]:
    """Return the same, and where FMU and report are."""
    files = {"fmu": f"out/{facts['model']}.fmu", "report": f"out/{facts['model']}.html"}
    return select_validation_facts(facts) | files


def list_failed_validation_items(facts: Any, place: str = "") -> Iterator[dict[str, Any]]:
    """Yield every item of a validation's JSON that has failed, with the names of the lists it is in.

    Args:
        facts: The JSON, or a part of it.
        place: Where the part is.
    """
    if isinstance(facts, list):
        for item in facts:
            yield from list_failed_validation_items(item, place)
    elif isinstance(facts, dict):
        if place and facts.get("verdict") == "failed":
            yield {"where": place, **{key: value for key, value in facts.items() if not isinstance(value, list | dict)}}
        elif facts.get("severity") == "error":
            yield {"where": place, **facts}
        for key, value in facts.items():
            yield from list_failed_validation_items(value, f"{place}.{key}".strip("."))


def _size(ratio: Any) -> float:
    """Return an error over its bound for sorting; what is no number is the worst."""
    return float(ratio) if isinstance(ratio, int | float) and math.isfinite(ratio) else math.inf
