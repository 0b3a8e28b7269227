"""The sampler, an FMU by another maker: arrays that a structural parameter sizes, clocks that tick, and all types of FMI 3."""

# ruff: noqa: E501  a variable, a line of XML: one line

from __future__ import annotations

import functools
from pathlib import Path

import ball
from late_mutants import LateMutant

TOKEN = "{0b2f7f1e-5d57-4d9e-9a53-0f1a3c0c9d11}"
BINARY = "binaries/x86_64-linux/sampler.so"
FLAGS = {"ModelExchange": "", "CoSimulation": 'canHandleVariableCommunicationStepSize="true" hasEventMode="true"'}
XML = """<?xml version="1.0" encoding="UTF-8"?>
<fmiModelDescription fmiVersion="3.0" modelName="sampler" instantiationToken="{token}" variableNamingConvention="structured">
{interfaces}
<UnitDefinitions><Unit name="s"><BaseUnit s="1"/></Unit><Unit name="rad"><BaseUnit rad="1"/><DisplayUnit name="deg" factor="57.29577951308232"/></Unit></UnitDefinitions>
<TypeDefinitions><EnumerationType name="Mode"><Item name="low" value="1"/><Item name="middle" value="2"/><Item name="high" value="3"/></EnumerationType></TypeDefinitions>
<LogCategories><Category name="logStatusError"/></LogCategories>
<DefaultExperiment startTime="0" stopTime="2" tolerance="1e-6" stepSize="0.05"/>
<ModelVariables>
<Float64 name="time" valueReference="0" causality="independent" variability="continuous" unit="s"/>
<UInt64 name="n" valueReference="1" causality="structuralParameter" variability="fixed" start="3" min="1" max="8"/>
<Float64 name="gain" valueReference="2" causality="parameter" variability="tunable" start="2"><Dimension valueReference="1"/></Float64>
<Float64 name="u" valueReference="3" causality="input" start="0 0 0"><Dimension valueReference="1"/></Float64>
<Float64 name="y" valueReference="4" causality="output"><Dimension valueReference="1"/></Float64>
<Float64 name="x" valueReference="5" causality="output" initial="exact" start="0.5" unit="rad" displayUnit="deg"/>
<Float64 name="der(x)" valueReference="6" causality="local" derivative="5"/>
<Clock name="tick" valueReference="7" causality="input" intervalVariability="constant" intervalDecimal="0.1"/>
<Float64 name="sampled" valueReference="8" causality="output" variability="discrete" initial="calculated" clocks="7"/>
<Int32 name="count" valueReference="9" causality="output" variability="discrete" initial="calculated" clocks="7" previous="10"/>
<Int32 name="count_before" valueReference="10" causality="local" variability="discrete" initial="exact" start="0" clocks="7"/>
<Clock name="fifth" valueReference="11" causality="output" intervalVariability="triggered"/>
<Int8 name="level" valueReference="12" causality="input" start="-3"/>
<UInt16 name="word" valueReference="13" causality="parameter" variability="fixed" start="40000"/>
<Float32 name="single" valueReference="14" causality="input" start="0.25"/>
<String name="name" valueReference="15" causality="input"><Start value="sampler"/></String>
<Boolean name="on" valueReference="16" causality="input" start="true"/>
<Enumeration name="mode" valueReference="17" causality="input" declaredType="Mode" start="2" min="1" max="3"/>
<Binary name="blob" valueReference="18" causality="input" mimeType="application/octet-stream"><Start value="010203"/></Binary>
<UInt64 name="large" valueReference="19" causality="parameter" variability="tunable" start="1152921504606846976"/>
<Float64 name="c" valueReference="20" causality="parameter" variability="tunable" start="0"/>
</ModelVariables>
<ModelStructure>
<Output valueReference="4" dependencies="2 3 5" dependenciesKind="dependent dependent constant"/>
<Output valueReference="5" dependencies="5" dependenciesKind="constant"/>
<Output valueReference="8" dependencies="5"/>
<Output valueReference="9" dependencies="10"/>
<Output valueReference="11" dependencies=""/>
<ContinuousStateDerivative valueReference="6" dependencies="3 5 20" dependenciesKind="constant constant constant"/>
<ClockedState valueReference="9" dependencies="10"/>
<InitialUnknown valueReference="4" dependencies="2 3 5" dependenciesKind="dependent dependent constant"/>
<InitialUnknown valueReference="11" dependencies=""/>
<InitialUnknown valueReference="6" dependencies="3 5 20" dependenciesKind="constant constant constant"/>
</ModelStructure>
</fmiModelDescription>
"""


def description(kinds: tuple[str, ...] = ("ModelExchange", "CoSimulation")) -> str:
    """The sampler's modelDescription.xml."""
    common = 'modelIdentifier="sampler" canGetAndSetFMUState="true" canSerializeFMUState="true"'
    return XML.format(token=TOKEN, interfaces="\n".join(f"<{kind} {common} {FLAGS[kind]}/>" for kind in kinds))


def _mutant(name: str, rules: str, old: str, new: str) -> LateMutant:
    return LateMutant(f"sampler: {name}", rules, ((old, new),), (3,))


RETURNS_IN_SILENCE = (
    ("    if (b) b->events = events;\n", "    if (b) { b->events = events; b->silent = events && early; }\n"),
    ("    int exchange, logging, events;", "    int exchange, logging, events, silent;"),
    (
        "    rest = slope(S) + S->x;",
        "    if (((Unit *)c)->silent && S->time > 0.3 && S->time < 0.34) size *= 0.5;\n    rest = slope(S) + S->x;",
    ),
)


ALL = [
    _mutant("size is not taken up", "value.structural", "S->n = value[i]; break;", "break;"),
    _mutant("array of the old size", "value.structural", "case Y: for (j = 0; j < S->n; ++j)", "case Y: for (j = 0; j < 3; ++j)"),
    _mutant("size cannot be set", "value.structural", "S->state == CONFIGURING && value[i] >= 1", "0 && value[i] >= 1"),
    _mutant("clock ticks on", "clock.ticks", "        s->tick = 0;\n", ""),
    _mutant("clock is refused", "clock.ticks", "vr[i] == TICK && S->state == EVENT", "vr[i] == TICK && S->state == STEPPING"),
    _mutant("another interval", "clock.interval", "v[i] = 0.1;", "v[i] = 0.2;"),
    _mutant("no interval", "clock.interval", "v[i] = 0.1;", "v[i] = 0.0;"),
    _mutant("one gain for all elements", "value.set", "S->gain[j] = value[k++];", "S->gain[0] = value[k++];"),
    _mutant("inputs in the other order", "value.set", "S->u[j] = value[k++];", "S->u[S->n - 1 - j] = value[k++];"),
    _mutant("whole numbers by way of doubles", "value.set", "S->large = value[i];", "S->large = (fmi3UInt64)(double)value[i];"),
    _mutant("sign is lost", "value.set", "S->level = value[i];", "S->level = (fmi3Int8)(value[i] & 0x7f);"),
    _mutant("16 bits by way of 15", "value.set value.start", "S->word = value[i];", "S->word = value[i] & 0x7fff;"),
    _mutant("truth stays", "value.set", "S->on = value[i];", "(void)value;"),
    _mutant("single precision is rounded", "value.set", "S->single = value[i];", "S->single = floorf(8.0f * value[i]) / 8.0f;"),
    _mutant("item stays", "value.set", "S->mode = value[i];", "(void)value;"),
    _mutant("state forgets an array", "state.roundtrip state.serialize", "memcpy(S, state, sizeof(State)); return fmi3OK;", "{ State kept = *S; memcpy(S, state, sizeof(State)); memcpy(S->gain, kept.gain, sizeof kept.gain); } return fmi3OK;"),
    _mutant("state forgets a binary", "state.roundtrip state.serialize", "memcpy(S, state, sizeof(State)); return fmi3OK;", "{ State kept = *S; memcpy(S, state, sizeof(State)); memcpy(S->blob, kept.blob, sizeof kept.blob); S->blob_size = kept.blob_size; } return fmi3OK;"),
    _mutant("keeps the importer's binary", "value.copied", "memcpy(S->blob, value[i], sizes[i]);", "*(const void **)(void *)((Unit *)c)->told = value[i];\n        memcpy(S->blob, value[i], 0);"),
    LateMutant("sampler: returns early at 0.3 s and does not say so", "steps.early", RETURNS_IN_SILENCE, (3,), ("CoSimulation",)),
    _mutant("a reset keeps the size", "life.reset life.order", "fmi3Status fmi3Reset(fmi3Instance c) { begin(S);", "fmi3Status fmi3Reset(fmi3Instance c) { double kept = S->gain[1]; begin(S); S->gain[1] = kept;"),
]  # fmt: skip


@functools.cache
def library(edits: tuple[tuple[str, str], ...] = ()) -> bytes:
    """The compiled sampler, with some places of its source changed."""
    text = (ball.HERE / "foreign" / "sampler3.c").read_text(encoding="utf-8")
    return ball.compiled({"sampler3.c": text}, edits, "-O0")


def contents(kinds: tuple[str, ...] = ("ModelExchange", "CoSimulation")) -> dict[str, bytes]:
    """Members of the sampler's archive."""
    return {
        "modelDescription.xml": description(kinds).encode(),
        BINARY: library(),
        "documentation/index.html": b"<p>A filter that is sampled.</p>",
    }


def unit(mutant: LateMutant, _version: int, path: Path) -> Path:
    """The archive with a fault."""
    return ball.pack({**mutant.described(contents(mutant.kinds)), BINARY: library(mutant.edits)}, path)
