"""Modes are in the state: saved in the middle of each, an instance goes on with the same bits, and so does another.

Clutches that lock, latches that hold, flanks in contact, dry friction that sticks, contacts that rest and slide,
controllers between two samples.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from pathlib import Path

import fmpy
import pytest
from fmpy.fmi2 import FMU2Slave
from fmpy.fmi3 import FMU3Slave

from mb2fmu import export
from mb2fmu.model import load

MODELS = Path(__file__).parents[3] / "models"

CASES = {
    "clutch_line": (
        1.5,
        40,
        {"clutch1.sticking": {0.0, 1.0}, "clutch2.sticking": {0.0, 1.0}, "clutch3.sticking": {0.0, 1.0}},
    ),
    "gripper": (1.4, 30, {"grip.engaged": {0.0, 1.0}, "floor.resting": {0.0, 1.0}}),
    "rocking_block": (0.6, 20, {"left.engaged": {0.0, 1.0}, "right.engaged": {0.0, 1.0}}),
    "backlash_gear": (1.0, 40, {"mode[1]": {0.0, 1.0}, "mode[2]": {0.0, 1.0}}),
    "dry_friction_oscillator": (3.2, 20, {"mode[1]": {-1.0, 0.0, 1.0}}),
    "stick_slip_belt": (12.0, 30, {"mode[1]": {-1.0, 0.0}}),
    "slider_crank_clearance": (0.12, 60, {"joint.resting": {0.0, 1.0}, "joint.sliding": {-1.0, 0.0, 1.0}}),
    "woodpecker": (0.15, 60, {"lower.resting": {0.0, 1.0}, "upper.resting": {0.0, 1.0}}),
    "sampled_cart_pole": (0.5, 21, {}),
}
"""Model: stop in s, communication steps up to there, and the modes in which it must have been saved."""


@dataclass
class Slave:
    """An FMU in Co-Simulation, of FMI 2 or 3."""

    folder: str
    description: fmpy.model_description.ModelDescription
    time: float = 0.0
    unit: FMU2Slave | FMU3Slave = field(init=False)

    def __post_init__(self) -> None:
        known = self.description
        self.three = known.fmiVersion.startswith("3")
        make = FMU3Slave if self.three else FMU2Slave
        self.unit = make(
            guid=known.guid, unzipDirectory=self.folder, modelIdentifier=known.coSimulation.modelIdentifier,
            instanceName="unit",
        )  # fmt: skip
        self.unit.instantiate()
        if not self.three:
            self.unit.setupExperiment(startTime=0.0)
        self.unit.enterInitializationMode()
        self.unit.exitInitializationMode()
        self.places = {v.name: v.valueReference for v in known.modelVariables if v.type in {"Real", "Float64"}}
        self.of_time = self.places.pop("time", None)

    def step(self, size: float) -> bytes:
        """Goes on, and the bits of every number that it shows."""
        self.unit.doStep(self.time, size)
        self.time += size
        values = self.read(list(self.places))
        return struct.pack(f"{len(values)}d", *values)

    def read(self, names: list[str]) -> list[float]:
        places = [self.places[name] for name in names]
        return list(self.unit.getFloat64(places) if self.three else self.unit.getReal(places))

    def close(self) -> None:
        self.unit.terminate()
        self.unit.freeInstance()


def walked(slave: Slave, steps: int, size: float) -> list[bytes]:
    return [slave.step(size) for _ in range(steps)]


BY_DAY = {"clutch_line": "3", "rocking_block": "2", "slider_crank_clearance": "2", "sampled_cart_pole": "3"}
"""Each kind of mode in one version of FMI."""


@pytest.mark.parametrize(
    ("name", "fmi"),
    [
        pytest.param(name, fmi, marks=() if BY_DAY.get(name) == fmi else pytest.mark.repeats)
        for name in CASES
        for fmi in "23"
    ],
)
def test_the_same_bits_from_every_mode(name, fmi, tmp_path):
    """At each communication point: on, back, on again; and from the bytes in another instance, which was elsewhere."""
    stop, steps, wanted = CASES[name]
    path = str(export(load(MODELS / f"{name}.py"), tmp_path, fmi=fmi).path)
    unit = fmpy.extract(path), fmpy.read_model_description(path)
    size = stop / steps
    first, other = Slave(*unit), Slave(*unit)
    walked(other, 2, 0.37 * size)
    met: dict[str, set[float]] = {name: set() for name in wanted}
    straight = Slave(*unit)
    whole = walked(straight, steps, size)
    for k in range(steps):
        for mode, value in zip(met, first.read(list(met)) if met else [], strict=True):
            met[mode].add(value)
        state, time, ahead = first.unit.getFMUState(), first.time, min(3, steps - k)
        data = first.unit.serializeFMUState(state)
        one = walked(first, ahead, size)
        assert one == whole[k : k + ahead], f"saving changed what follows {time:g} s"
        theirs = other.unit.deserializeFMUState(data)
        other.unit.setFMUState(theirs)
        other.time = time
        assert walked(other, ahead, size) == one, f"from the bytes of {time:g} s"
        first.unit.setFMUState(state)
        first.time = time
        assert walked(first, 1, size) == one[:1], f"back to {time:g} s"
        for slave, kept in ((first, state), (other, theirs)):
            slave.unit.freeFMUState(kept)
    for mode, values in wanted.items():
        assert values <= met[mode], f"{mode} was saved in {met[mode]} only"
    for slave in (first, other, straight):
        slave.close()
