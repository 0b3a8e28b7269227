"""The ball, an FMU by another maker: its description for both FMI versions, and its library from hand-written C."""

# ruff: noqa: E501  a variable, a line of XML: one line

from __future__ import annotations

import atexit
import functools
import shutil
import sys
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path

import fmpy
from kept_compilations import compile_files

HERE = Path(__file__).parent
HEADERS = Path(fmpy.__file__).parent / "c-code"
TOKENS = {2: "{8c4e810f-3df3-4a00-8276-176fa3c9f013}", 3: "{5d638f1e-ed6a-47f6-b9b8-9ea1c0c21c2e}"}
BINARIES = {2: "binaries/linux64/ball.so", 3: "binaries/x86_64-linux/ball.so"}
NAMES = (
    "time h v der(h) der(v) g e m c weight wind energy height_twice bounces ticks resting label shape position blob gap"
)
REFERENCE = {name: number for number, name in enumerate(NAMES.split())}

# name, type, attributes of the variable (FMI 2's index is added below), attributes of its type
VARIABLES = [
    ("time", "Real", 'causality="independent" variability="continuous"', 'unit="s"'),
    ("h", "Real", 'causality="output" variability="continuous" initial="exact"', 'unit="m" start="1" reinit="true"'),
    ("v", "Real", 'causality="local" variability="continuous" initial="exact"', 'unit="m/s" start="0" reinit="true"'),
    ("der(h)", "Real", 'causality="local" variability="continuous"', 'unit="m/s" derivative="{h}"'),
    ("der(v)", "Real", 'causality="local" variability="continuous"', 'unit="m/s2" derivative="{v}"'),
    ("g", "Real", 'causality="parameter" variability="fixed"', 'unit="m/s2" start="9.81"'),
    ("e", "Real", 'causality="parameter" variability="tunable"', 'min="0" max="1" start="0.7"'),
    ("m", "Real", 'causality="parameter" variability="fixed"', 'unit="kg" min="1e-3" start="0.5"'),
    ("c", "Real", 'causality="parameter" variability="tunable"', 'min="0" start="0.1"'),
    ("weight", "Real", 'causality="calculatedParameter" variability="fixed"', 'unit="N"'),
    ("wind", "Real", 'causality="input" variability="continuous"', 'unit="m/s" start="0"'),
    ("energy", "Real", 'causality="output" variability="continuous" initial="calculated"', 'unit="J"'),
    ("height_twice", "Real", 'causality="output" variability="continuous" initial="calculated"', 'unit="m"'),
    ("bounces", "Integer", 'causality="output" variability="discrete" initial="exact"', 'start="0"'),
    ("ticks", "Integer", 'causality="local" variability="discrete" initial="exact"', 'start="0"'),
    ("resting", "Boolean", 'causality="local" variability="discrete" initial="exact"', 'start="false"'),
    ("label", "String", 'causality="parameter" variability="fixed"', 'start="ball"'),
    ("shape", "Enumeration", 'causality="parameter" variability="fixed"', 'declaredType="Shape" start="2"'),
]
UNITS = {"s": 's="1"', "m": 'm="1"', "m/s": 'm="1" s="-1"', "m/s2": 'm="1" s="-2"', "kg": 'kg="1"', "N": 'kg="1" m="1" s="-2"',
         "J": 'kg="1" m="2" s="-2"'}  # fmt: skip
# list → unknown → (knowns, kinds); parameters are knowns in FMI 3 only, except initially
OUTPUTS = {
    "h": ("h", "constant"),
    "energy": ("h v", "fixed dependent"),
    "height_twice": ("h", "constant"),
    "bounces": None,
}
DERIVATIVES = {"der(h)": ("v", "dependent"), "der(v)": ("v wind", "dependent dependent")}
TUNED = {"der(v)": ("v wind c", "dependent dependent dependent")}
INITIAL = {
    "weight": ("g m", "dependent dependent"),
    "energy": ("h v g m", "dependent dependent dependent dependent"),
    "height_twice": ("h", "constant"),
    "der(h)": ("v", "constant"),
    "der(v)": ("v wind g m c", "dependent dependent dependent dependent dependent"),
}


def _number(version: int, name: str) -> int:
    return [each[0] for each in VARIABLES].index(name) + 1 if version == 2 else REFERENCE[name]


def _structure(version: int) -> str:
    def entries(tag: str, listed: dict) -> str:
        lines = []
        for name, found in listed.items():
            key = "index" if version == 2 else "valueReference"
            text = f'<{tag} {key}="{_number(version, name)}"'
            if found:
                numbers = " ".join(str(_number(version, each)) for each in found[0].split())
                text += f' dependencies="{numbers}" dependenciesKind="{found[1]}"'
            else:
                text += ' dependencies=""'
            lines.append(text + "/>")
        return "\n".join(lines)

    if version == 2:
        parts = {"Outputs": OUTPUTS, "Derivatives": DERIVATIVES, "InitialUnknowns": INITIAL}
        return "\n".join(f"<{name}>\n{entries('Unknown', listed)}\n</{name}>" for name, listed in parts.items())
    outputs = {**OUTPUTS, "position": ("h v", "dependent dependent")}
    initial = {**INITIAL, "position": ("h v", "constant constant")}
    parts = {"Output": outputs, "ContinuousStateDerivative": DERIVATIVES | TUNED, "InitialUnknown": initial}
    indicator = f'<EventIndicator valueReference="{REFERENCE["gap"]}"/>'
    return "\n".join([*(entries(tag, listed) for tag, listed in parts.items()), indicator])


def description(version: int, kinds: tuple[str, ...] = ("ModelExchange", "CoSimulation")) -> str:
    """The ball's modelDescription.xml."""
    units = "\n".join(f'<Unit name="{name}"><BaseUnit {base}/></Unit>' for name, base in UNITS.items())
    items = '<Item name="round" value="1"/><Item name="egg" value="2"/>'
    return (_description2 if version == 2 else _description3)(
        kinds, f"<UnitDefinitions>{units}</UnitDefinitions>", items
    )


def _description2(kinds: tuple[str, ...], units: str, items: str) -> str:
    common = 'modelIdentifier="ball" canGetAndSetFMUstate="true" canSerializeFMUstate="true" providesDirectionalDerivative="true"'
    flags = {"ModelExchange": 'completedIntegratorStepNotNeeded="true"',
             "CoSimulation": 'canHandleVariableCommunicationStepSize="true" maxOutputDerivativeOrder="1"'}  # fmt: skip
    interfaces = "\n".join(f"<{kind} {common} {flags[kind]}/>" for kind in kinds)
    variables = "\n".join(
        f'<ScalarVariable name="{name}" valueReference="{REFERENCE[name]}" {outer}>'
        f"<{kind} {inner.format(h=_number(2, 'h'), v=_number(2, 'v'))}/></ScalarVariable>"
        for name, kind, outer, inner in VARIABLES
    )
    indicators = 'numberOfEventIndicators="1"' if "ModelExchange" in kinds else ""
    return f"""<?xml version="1.0" encoding="UTF-8"?>
<fmiModelDescription fmiVersion="2.0" modelName="ball" guid="{TOKENS[2]}" variableNamingConvention="structured" {indicators}>
{interfaces}
{units}
<TypeDefinitions><SimpleType name="Shape"><Enumeration>{items}</Enumeration></SimpleType></TypeDefinitions>
<LogCategories><Category name="logStatusError"/></LogCategories>
<DefaultExperiment startTime="0" stopTime="2" tolerance="1e-6" stepSize="0.05"/>
<ModelVariables>
{variables}
</ModelVariables>
<ModelStructure>
{_structure(2)}
</ModelStructure>
</fmiModelDescription>
"""


def _description3(kinds: tuple[str, ...], units: str, items: str) -> str:
    common = (
        'modelIdentifier="ball" canGetAndSetFMUState="true" canSerializeFMUState="true" providesDirectionalDerivatives="true" '
        'providesAdjointDerivatives="true"'
    )
    flags = {
        "ModelExchange": "",
        "CoSimulation": 'canHandleVariableCommunicationStepSize="true" providesIntermediateUpdate="true" '
        'canReturnEarlyAfterIntermediateUpdate="true"',
    }
    interfaces = "\n".join(f"<{kind} {common} {flags[kind]}/>" for kind in kinds)
    kind3 = {"Real": "Float64", "Integer": "Int32"}
    variables = []
    for name, kind, outer, inner in VARIABLES:
        attributes = inner.format(**REFERENCE)
        tag, head = kind3.get(kind, kind), f'name="{name}" valueReference="{REFERENCE[name]}" {outer}'
        if kind == "String":
            variables.append(f'<String {head}><Start value="ball"/></String>')
        else:
            variables.append(f"<{tag} {head} {attributes}/>")
    variables.append(
        f'<Float64 name="position" valueReference="{REFERENCE["position"]}" causality="output"><Dimension start="2"/></Float64>'
    )
    blob = f'<Binary name="blob" valueReference="{REFERENCE["blob"]}" causality="parameter" variability="fixed">'
    variables.append(f'{blob}<Start value="CAFE"/></Binary>')
    variables.append(f'<Float64 name="gap" valueReference="{REFERENCE["gap"]}" causality="local"/>')
    return f"""<?xml version="1.0" encoding="UTF-8"?>
<fmiModelDescription fmiVersion="3.0" modelName="ball" instantiationToken="{TOKENS[3]}" variableNamingConvention="structured">
{interfaces}
{units}
<TypeDefinitions><EnumerationType name="Shape">{items}</EnumerationType></TypeDefinitions>
<LogCategories><Category name="logStatusError"/></LogCategories>
<DefaultExperiment startTime="0" stopTime="2" tolerance="1e-6" stepSize="0.05"/>
<ModelVariables>
{chr(10).join(variables)}
</ModelVariables>
<ModelStructure>
{_structure(3)}
</ModelStructure>
</fmiModelDescription>
"""


def compiler() -> list[str]:
    """gcc, or the compiler that mb2fmu brings."""
    return (
        [shutil.which("gcc") or ""]
        if shutil.which("gcc")
        else [sys.executable, "-m", "ziglang", "cc", "-mcpu=baseline"]
    )


@functools.cache
def scratch() -> Path:
    """A folder for this run."""
    folder = tempfile.TemporaryDirectory(prefix="mb2fmu-audited-")
    atexit.register(folder.cleanup)
    return Path(folder.name)


@functools.cache
def library(version: int, old: str = "", new: str = "", *flags: str) -> bytes:
    """The compiled ball, with one place of its sources changed."""
    folder = scratch() / f"ball{len(list(scratch().iterdir()))}"
    folder.mkdir()
    found = 0
    for name in ("ball.h", f"ball{version}.c"):
        text = (HERE / "foreign" / name).read_text(encoding="utf-8")
        if old:
            found += text.count(old)
            text = text.replace(old, new)
        (folder / name).write_text(text, encoding="utf-8")
    assert found == (1 if old else 0), f"{old!r} stands at {found} places"
    target = folder / "ball.so"
    command = [
        *compiler(),
        "-shared",
        "-fPIC",
        "-O0",
        "-w",
        *flags,
        f"-I{HEADERS}",
        f"ball{version}.c",
        "-o",
        str(target),
        "-lm",
    ]
    compile_files(folder, command)
    return target.read_bytes()


def compiled(texts: dict[str, str], edits: Sequence[tuple[str, str]] = (), *flags: str) -> bytes:
    """A library of sources, the last of which is compiled; each edit has to fit at one place of all of them."""
    folder = Path(tempfile.mkdtemp(dir=scratch()))
    for old, new in edits:
        found = [name for name, text in texts.items() for _ in range(text.count(old))]
        assert len(found) == 1, f"{old!r} stands at {len(found)} places"
        texts[found[0]] = texts[found[0]].replace(old, new)
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    command = [*compiler(), "-shared", "-fPIC", "-w", *flags, f"-I{HEADERS}", list(texts)[-1], "-o", "unit.so", "-lm"]
    compile_files(folder, command)
    return (folder / "unit.so").read_bytes()


def contents(version: int, kinds: tuple[str, ...] = ("ModelExchange", "CoSimulation")) -> dict[str, bytes]:
    """Members of the ball's archive."""
    return {
        "modelDescription.xml": description(version, kinds).encode(),
        BINARIES[version]: library(version),
        "documentation/index.html": b"<p>A ball in the wind.</p>",
    }


def pack(members: dict[str, bytes], path: Path) -> Path:
    """Writes an archive."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in members.items():
            file.writestr(name, content)
    return path
