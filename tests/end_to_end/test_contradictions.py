"""FMUs whose constraints were made to contradict each other: refused at initialization, and while they run."""

from __future__ import annotations

from pathlib import Path

import fmpy
import pytest
from cranks import platform
from fmpy.fmi1 import FMICallException
from fmpy.fmi3 import FMU3Model, FMU3Slave

from mb2fmu import pipeline


@pytest.fixture(scope="module")
def unit(tmp_path_factory) -> tuple[fmpy.model_description.ModelDescription, Path]:
    folder = tmp_path_factory.mktemp("cranks")
    path = pipeline.export(platform(), folder, fmi="3", method="tmt").path
    return fmpy.read_model_description(str(path)), Path(fmpy.extract(str(path), str(folder / "unpacked")))


def instance(unit, kind, reported):
    description, folder = unit
    names = description.modelExchange if kind is FMU3Model else description.coSimulation
    made = kind(
        guid=description.guid, unzipDirectory=str(folder), modelIdentifier=names.modelIdentifier, instanceName="one"
    )
    made.instantiate(
        loggingOn=True,
        logMessage=fmpy.fmi3.fmi3LogMessageCallback(
            lambda _, status, __, text: reported.append((status, text.decode()))
        ),
    )
    return made, {variable.name: variable.valueReference for variable in description.modelVariables}


@pytest.mark.parametrize(
    ("third", "why"), [(0.5001, "they contradict each other and stay open, holonomic["), (0.6, "no solution is found")]
)
@pytest.mark.parametrize("kind", [FMU3Model, FMU3Slave])
def test_unlike_cranks_are_refused_at_initialization(unit, kind, third, why):
    reported: list[tuple[int, str]] = []
    made, reference = instance(unit, kind, reported)
    made.enterInitializationMode(startTime=0.0)
    made.setFloat64([reference["l3"]], [third])
    with pytest.raises(FMICallException) as caught:
        made.exitInitializationMode()
    assert caught.value.status == fmpy.fmi3.fmi3Error
    text = " ".join(text for _, text in reported)
    assert why in text
    assert "another branch" not in text
    made.freeInstance()


def test_unlike_cranks_are_refused_on_the_way(unit):
    reported: list[tuple[int, str]] = []
    made, reference = instance(unit, FMU3Slave, reported)
    made.enterInitializationMode(startTime=0.0)
    made.exitInitializationMode()
    made.doStep(0.0, 0.01)
    made.setFloat64([reference["l3"]], [0.5001])
    with pytest.raises(FMICallException) as caught:
        made.doStep(0.01, 0.01)
    assert caught.value.status == fmpy.fmi3.fmi3Discard
    assert "they contradict each other and stay open, holonomic[" in reported[-1][1]
    assert " by " in reported[-1][1].split("holonomic[", 1)[1]
    made.setFloat64([reference["l3"]], [0.5])
    made.doStep(0.01, 0.01)
    made.terminate()
    made.freeInstance()
