"""Right FMUs that are not as most are: nothing but the time, texts only, a tool beside it, an end of its own, and so on."""

# ruff: noqa: E501  a variable, a line of XML: one line

from __future__ import annotations

import functools
from dataclasses import dataclass

import ball

ME, CS = '<ModelExchange modelIdentifier="unusual" {0}/>', '<CoSimulation modelIdentifier="unusual" {0}/>'
VARIABLE = 'canHandleVariableCommunicationStepSize="true"'
T = '<ScalarVariable name="time" valueReference="0" causality="independent" variability="continuous"><Real/></ScalarVariable>'
X = '<ScalarVariable name="x" valueReference="1" causality="{0}" initial="exact"><Real start="1"/></ScalarVariable>'
DX = '<ScalarVariable name="der(x)" valueReference="2" causality="local"><Real derivative="{0}"/></ScalarVariable>'
U = '<ScalarVariable name="u" valueReference="3" causality="input"><Real start="0"/></ScalarVariable>'
P = '<ScalarVariable name="p" valueReference="4" causality="parameter" variability="tunable"><Real start="2"/></ScalarVariable>'
Y = '<ScalarVariable name="y" valueReference="5" causality="output"><Real/></ScalarVariable>'


@dataclass(frozen=True)
class Unusual:
    """One unit: number of its code, interfaces, attributes and elements of its description, further members."""

    kind: int
    interfaces: str
    variables: str = ""
    structure: str = ""
    experiment: str = '<DefaultExperiment stopTime="2" tolerance="1e-4" stepSize="0.1"/>'
    members: tuple[tuple[str, bytes], ...] = ()


def _both(flags: str = "") -> str:
    return ME.format(f'completedIntegratorStepNotNeeded="false" {flags}') + CS.format(f"{VARIABLE} {flags}")


ONE = (
    '<Outputs><Unknown index="1" dependencies="1" dependenciesKind="constant"/></Outputs><Derivatives><Unknown index="2" dependencies="{0}"/></Derivatives>'
    '<InitialUnknowns><Unknown index="2" dependencies="{1}"/></InitialUnknowns>'
)
COUNT = '<ScalarVariable name="count" valueReference="0" causality="output" variability="discrete" initial="exact"><Integer start="0"/></ScalarVariable>'
ODD = '<ScalarVariable name="odd" valueReference="0" causality="output" variability="discrete" initial="calculated"><Boolean/></ScalarVariable>'
TEXT = '<ScalarVariable name="text" valueReference="0" causality="parameter" variability="tunable"><String start="grüß"/></ScalarVariable>'
TOLD = '<ScalarVariable name="told" valueReference="1" causality="output" variability="discrete" initial="calculated"><String/></ScalarVariable>'
LORENZ = (
    X.format("output") + DX.format(1)
    + '<ScalarVariable name="z" valueReference="6" causality="local" initial="exact"><Real start="1"/></ScalarVariable>'
    '<ScalarVariable name="der(z)" valueReference="7" causality="local"><Real derivative="3"/></ScalarVariable>'
    '<ScalarVariable name="w" valueReference="8" causality="local" initial="exact"><Real start="1"/></ScalarVariable>'
    '<ScalarVariable name="der(w)" valueReference="9" causality="local"><Real derivative="5"/></ScalarVariable>'
)  # fmt: skip
CHAOTIC = (
    '<Outputs><Unknown index="1" dependencies="1"/></Outputs>'
    '<Derivatives><Unknown index="2" dependencies="1 3"/><Unknown index="4" dependencies="1 3 5"/><Unknown index="6" dependencies="1 3 5"/></Derivatives>'
    '<InitialUnknowns><Unknown index="2" dependencies="1 3"/><Unknown index="4" dependencies="1 3 5"/><Unknown index="6" dependencies="1 3 5"/></InitialUnknowns>'
)
NEEDS = (("documentation/externalDependencies.txt", b"cat, of any Unix"),)
FIRST = X.format("output") + DX.format(1) + U + P
DECAY = ONE.format("1 3", "1 3 4")

UNUSUAL = {
    "nothing but the time": Unusual(1, CS.format(VARIABLE), T, experiment=""),
    "texts only": Unusual(2, CS.format(f'{VARIABLE} canGetAndSetFMUstate="true"'), TEXT + TOLD, '<Outputs><Unknown index="2" dependencies=""/></Outputs><InitialUnknowns><Unknown index="2" dependencies="1"/></InitialUnknowns>'),
    "a counter of fixed steps": Unusual(3, CS.format(""), COUNT + ODD, '<Outputs><Unknown index="1" dependencies=""/><Unknown index="2" dependencies=""/></Outputs><InitialUnknowns><Unknown index="2" dependencies=""/></InitialUnknowns>'),
    "an adaptive solver": Unusual(4, CS.format(f'{VARIABLE} canGetAndSetFMUstate="true"'), FIRST, DECAY),
    "adaptive, both kinds": Unusual(4, _both('canGetAndSetFMUstate="true"'), FIRST, DECAY),
    "very stiff": Unusual(5, _both(), X.format("output") + DX.format(1) + U, ONE.format("1 3", "1 3")),
    "an end of its own": Unusual(6, _both(), FIRST, DECAY, experiment=""),
    "an end after its experiment": Unusual(6, _both(), FIRST, DECAY, experiment='<DefaultExperiment stopTime="0.4" tolerance="1e-4" stepSize="0.02"/>'),
    "a log file while it runs": Unusual(7, CS.format(VARIABLE), T),
    "a tool beside it": Unusual(8, CS.format(f'{VARIABLE} needsExecutionTool="true"'), T, members=NEEDS),
    "only one at a time": Unusual(9, CS.format(f'{VARIABLE} canBeInstantiatedOnlyOncePerProcess="true"'), P),
    "chaos": Unusual(10, _both('canGetAndSetFMUstate="true"'), LORENZ, CHAOTIC, '<DefaultExperiment stopTime="20" tolerance="1e-4" stepSize="0.05"/>'),
    "a time before zero": Unusual(11, _both(), FIRST, DECAY, '<DefaultExperiment startTime="-5" stopTime="-3" tolerance="1e-4" stepSize="0.05"/>'),
    "time events only": Unusual(12, ME.format("") + CS.format(VARIABLE), Y, '<Outputs><Unknown index="1" dependencies=""/></Outputs><InitialUnknowns><Unknown index="1" dependencies=""/></InitialUnknowns>'),
    "a smaller step is asked for": Unusual(13, ME.format(""), X.format("output") + DX.format(1), ONE.format("1", "1")),
}  # fmt: skip


@functools.cache
def library(kind: int) -> bytes:
    """The compiled unit."""
    text = (ball.HERE / "foreign" / "unusual2.c").read_text(encoding="utf-8")
    return ball.compiled({"unusual2.c": text}, (), f"-DKIND={kind}")


def contents(name: str) -> dict[str, bytes]:
    """Members of one archive."""
    made = UNUSUAL[name]
    indicators = 'numberOfEventIndicators="0"' if "<ModelExchange" in made.interfaces else ""
    text = f"""<?xml version="1.0" encoding="UTF-8"?>
<fmiModelDescription fmiVersion="2.0" modelName="unusual" guid="unusual" {indicators}>{made.interfaces}
<LogCategories><Category name="error"/></LogCategories>{made.experiment}<ModelVariables>{made.variables}</ModelVariables>
<ModelStructure>{made.structure}</ModelStructure></fmiModelDescription>"""
    return {
        "modelDescription.xml": text.encode(), "binaries/linux64/unusual.so": library(made.kind),
        "documentation/index.html": b"<p>It is right, though unusual.</p>", **dict(made.members),
    }  # fmt: skip
