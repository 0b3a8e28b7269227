"""What adoption found, as one process passes it to another."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

MODEL_FILE = "<model file>"
"""Stands for the name of the model file in what is said of its lines, until that name is known."""


@dataclass(frozen=True, slots=True)
class AdoptedModelFile:
    """A model file's text, and what is to be said about it.

    Attributes:
        text: Of the model file.
        name: FMU model name.
        label: Variable of the script that holds the mechanics, or ``KanesMethod[2]``.
        kind: ``a KanesMethod``.
        others: Labels of other mechanics that the script makes.
        missing: Parameters without a value.
        no_start: Coordinates and speeds without a start value; one was assumed.
        inputs: Symbols that are inputs.
        no_signal: Those whose values over time are not found, with what is assumed.
        contradictions: Of units, one sentence each.
        integrator: What ended the script; empty if it ended by itself.
        error: What the script raised after its mechanics were made; empty if nothing.
        faults: What is to be mended or checked in the model file.
        notes: What the mechanics contain that the FMU leaves out.
        counts: Kind of quantity → how many.
    """

    text: str
    name: str
    label: str
    kind: str
    others: tuple[str, ...]
    missing: tuple[str, ...]
    no_start: tuple[str, ...]
    inputs: tuple[str, ...]
    no_signal: tuple[str, ...]
    contradictions: tuple[str, ...]
    integrator: str
    error: str
    faults: tuple[str, ...]
    notes: tuple[str, ...]
    counts: Mapping[str, int]
