"""Faults that a short look at the start does not show: late ones, in events, in other instances, after other calls.

Each changes the ball's sources in a few places. The whole table is run by ``scripts/audit_mutants``, a part by the tests.
"""

# ruff: noqa: E501  one mutant, one line
# fmt: off

from __future__ import annotations

import functools
from dataclasses import dataclass
from pathlib import Path

import ball

Edits = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class LateMutant:
    """One fault.

    Attributes:
        name: Of it.
        rules: One of these has to name it.
        edits: Places of the sources, what stands there and what instead.
        versions: Of FMI.
        kinds: Interfaces that the FMU has.
        description: Places of its description, and what stands there instead.
    """

    name: str
    rules: str
    edits: Edits
    versions: tuple[int, ...] = (2, 3)
    kinds: tuple[str, ...] = ("ModelExchange", "CoSimulation")
    description: Edits = ()

    def described(self, members: dict[str, bytes]) -> dict[str, bytes]:
        """Members of an archive with the places of the description changed."""
        text = members["modelDescription.xml"].decode()
        for old, new in self.description:
            assert text.count(old) == 1, f"{old!r} stands at {text.count(old)} places"
            text = text.replace(old, new)
        return {**members, "modelDescription.xml": text.encode()}


ME, CS = ("ModelExchange",), ("CoSimulation",)
TICK = "        s->ticks++;\n"
BOUNCE = "        s->v = -s->e * s->v;\n"
SLOPE = "*dv = s->resting ? 0.0 : -s->g + s->c * (s->wind - v) / s->m;"
ENERGY = "case ENERGY: *value = s->m * (s->g * s->h + 0.5 * s->v * s->v); break;"
CACHE = ("    unsigned char blob[8];\n", "    unsigned char blob[8];\n    double cache, cache_h, cache_v, cache_t;\n")


def by_tolerance(version: int) -> Edits:
    """The ball with internal steps that the tolerance decides on, kept in its state: right."""
    longest = "longest = td && tol > 1e-5 ? 2e-3 : 1e-3;"
    entries = {2: ("    (void)td, (void)tol;\n    b->s.time", f"    b->s.{longest}\n    b->s.time"), 3: ("    (void)td, (void)tol;\n    NEED(", f"    s->{longest}\n    NEED(")}
    return (("    double time, h, v, g,", "    double longest, time, h, v, g,"), ("    s->h = 1.0;\n", "    s->h = 1.0;\n    s->longest = 1e-3;\n"), ("        if (size > 1e-3) size = 1e-3;\n", "        if (size > s->longest) size = s->longest;\n"), entries[version])


def cached(condition: str) -> Edits:
    """The energy is calculated again only under a condition."""
    new = f"case ENERGY: if ({condition}) {{ State *k = (State *)s; k->cache = s->m * (s->g * s->h + 0.5 * s->v * s->v); k->cache_h = s->h; k->cache_v = s->v; k->cache_t = s->time; }} *value = s->cache; break;"
    return (CACHE, (ENERGY, new))


def forgets(field: str, size: str = "") -> tuple[LateMutant, ...]:
    """Setting a state leaves one field as it was."""
    kept = f"{size or 'double'} kept = {{0}}.{field};"
    text = {2: ("memcpy(&((Ball *)c)->s, state, sizeof(State));", "((Ball *)c)->s"),
            3: ("memcpy(&((Unit *)c)->ball.s, state, sizeof(State));", "((Unit *)c)->ball.s")}  # fmt: skip
    return tuple(
        LateMutant(f"state forgets {field}, FMI {version}", "state.roundtrip state.serialize",
                   ((old, f"{{ {kept.format(place)} {old} {place}.{field} = kept; }}"),), (version,))
        for version, (old, place) in text.items()
    )  # fmt: skip


EVENTS = [
    LateMutant("second bounce in silence", "exchange.values_changed", (("= ball_event(&b->s);", "= ball_event(&b->s) && b->s.bounces != 2;"),), (2,)),
    LateMutant("second bounce in silence 3", "exchange.values_changed", (("*values = ball_event(&b->ball.s) != 0;", "*values = ball_event(&b->ball.s) != 0 && b->ball.s.bounces != 2;"),), (3,)),
    LateMutant("values changed always", "exchange.values_flag", (("= ball_event(&b->s);", "= ball_event(&b->s) | 1;"),), (2,)),
    LateMutant("values changed always 3", "exchange.values_flag", (("*values = ball_event(&b->ball.s) != 0;", "ball_event(&b->ball.s);\n    *values = fmi3True;"),), (3,)),
    LateMutant("nominals change in silence", "exchange.nominals_changed", (("while (n--) x[n] = 1.0;", "while (n--) x[n] = ((Ball *)c)->s.bounces ? 2.0 : 1.0;"),), (2, 3), ME),
    LateMutant("nominals said to change", "exchange.values_flag", (("info->nominalsOfContinuousStatesChanged = fmi2False;", "info->nominalsOfContinuousStatesChanged = fmi2True;"),), (2,)),
    LateMutant("one iteration too few", "exchange.iteration", (("        s->next_tick += PERIOD;\n", "        if (s->ticks % 3 == 0) s->next_tick += PERIOD;\n"),), (2, 3), ME),
    LateMutant("iterates without end", "life.rest", (("info->newDiscreteStatesNeeded = fmi2False;", "info->newDiscreteStatesNeeded = fmi2True;"),), (2,)),
    LateMutant("iterates without end after a bounce", "life.rest", (("info->newDiscreteStatesNeeded = fmi2False;", "info->newDiscreteStatesNeeded = b->s.bounces > 0;"),), (2,)),
    LateMutant("iterates without end after a bounce 3", "life.rest", (("*needed = *end = *nominals = fmi3False;", "*needed = b->ball.s.bounces > 0;\n    *end = *nominals = fmi3False;"),), (3,)),
    LateMutant("next event is over", "life.rest", (("info->nextEventTime = b->s.next_tick;", "info->nextEventTime = b->s.next_tick - (b->s.ticks > 1 ? 2.0 : 0.0);"),), (2,)),
    LateMutant("next event is over 3", "life.rest", (("*time = b->ball.s.next_tick;", "*time = b->ball.s.next_tick - (b->ball.s.ticks > 1 ? 2.0 : 0.0);"),), (3,)),
    LateMutant("next event too late", "exchange.unannounced", (("info->nextEventTime = b->s.next_tick;", "info->nextEventTime = b->s.next_tick + 0.07;"),), (2,)),
    LateMutant("next event too late 3", "exchange.unannounced", (("*time = b->ball.s.next_tick;", "*time = b->ball.s.next_tick + 0.07;"),), (3,)),
    LateMutant("next event not told", "exchange.unannounced", (("info->nextEventTimeDefined = fmi2True;", "info->nextEventTimeDefined = fmi2False;"),), (2,)),
    LateMutant("next event not told 3", "exchange.unannounced", (("*defined = fmi3True;", "*defined = fmi3False;"),), (3,)),
    LateMutant("events for nothing", "exchange.next_event", (("info->nextEventTime = b->s.next_tick;", "info->nextEventTime = fmin(b->s.next_tick, 0.1 * floor(10.0 * b->s.time + 1.0 + 1e-6));"),), (2,)),
    LateMutant("ends after a second", "life.ends", (("info->terminateSimulation = fmi2False;", "info->terminateSimulation = b->s.time > 0.9;"),), (2,)),
    LateMutant("ends after a second 3", "life.ends", (("*needed = *end = *nominals = fmi3False;", "*needed = *nominals = fmi3False;\n    *end = b->ball.s.time > 0.9;"),), (3,)),
    LateMutant("a step ends it", "life.ends", (("        *last = b->ball.s.time;\n        if (b->update)", "        *last = b->ball.s.time;\n        *end = b->ball.s.time > 1.0;\n        if (b->update)"),), (3,), CS),
    LateMutant("completed step ends it", "life.ends", (("    *event = *end = fmi3False;\n", "    *event = fmi3False;\n    *end = ((Unit *)c)->ball.s.time > 1.0;\n"),), (3,), ME),
    LateMutant("indicator too low", "exchange.unannounced", (("s->h + (s->v > 0.0 ? 1e-9 : 0.0)", "s->h + 0.1"),), (2, 3), ME),
    LateMutant("indicator that never crosses", "exchange.unannounced", (("s->h + (s->v > 0.0 ? 1e-9 : 0.0)", "1.0 + s->h * s->h"),), (2, 3), ME),
    LateMutant("indicator crosses once only", "exchange.unannounced", (("s->h + (s->v > 0.0 ? 1e-9 : 0.0)", "(s->bounces ? 1.0 : s->h)"),), (2, 3), ME),
    LateMutant("other restitution in steps", "steps.exchange", ((BOUNCE, "        s->v = -(s->mode == STEPPING && s->bounces ? 0.5 : s->e) * s->v;\n"),)),
    LateMutant("ticks once in steps", "steps.exchange", ((TICK, "        if (s->mode != STEPPING || s->ticks < 1) s->ticks++;\n"),)),
    LateMutant("counts bounces once in steps", "steps.exchange", (("        s->bounces++;\n", "        if (s->mode != STEPPING || s->bounces < 1) s->bounces++;\n"),)),
    LateMutant("parameter changes at a tick", "value.variability", ((TICK, TICK + "        if (s->ticks == 3) s->g = 9.0;\n"),)),
    LateMutant("counts between events", "value.variability", ((SLOPE, SLOPE + " if (s->time > 0.7) ((State *)s)->bounces = (int)(100.0 * s->time);"),), (2, 3), ME),
]

LATE = [
    LateMutant("drifts late in steps", "steps.exchange", ((SLOPE, SLOPE + " if (s->mode == STEPPING && s->time > 1.2) *dv += 1.5;"),)),
    LateMutant("not finite late", "value.finite", ((ENERGY, "case ENERGY: *value = s->time > 1.5 ? 0.0 / (s->h - s->h) : s->m * (s->g * s->h + 0.5 * s->v * s->v); return 0;"),)),
    LateMutant("time stands late", "value.time", (("case TIME: *value = s->time;", "case TIME: *value = s->time > 1.0 ? s->time - 1e-3 : s->time;"),)),
    LateMutant("crashes late", "life.crash", (("    int left = 100000;", "    if (s->time > 1.2) *(volatile int *)8 = 1;\n    int left = 100000;"),), (2, 3), CS),
    LateMutant("hangs late", "life.crash", (("    int left = 100000;", "    while (s->time > 1.2) {}\n    int left = 100000;"),), (2,), CS),
    LateMutant("refuses late", "life.calls", (("    int left = 100000;", "    if (s->time > 1.5) return 1;\n    int left = 100000;"),), (2, 3), CS),
    LateMutant("crashes in derivatives late", "life.crash", ((SLOPE, SLOPE + " if (s->mode == CONTINUOUS && s->time > 1.2) *(volatile int *)8 = 1;"),), (2, 3), ME),
    LateMutant("depends on height when low", "dependencies.missing", ((SLOPE, SLOPE + " if (h < 0.3) *dv += 0.3 * (h - 0.3);"),), (2, 3), ME),
    LateMutant("depends on wind when fast", "dependencies.missing", ((ENERGY, "case ENERGY: *value = s->m * (s->g * s->h + 0.5 * s->v * s->v) + (s->v < -2.0 ? 0.1 * s->wind : 0.0); break;"),), (2, 3), ME),
]

SETTING = [
    LateMutant("ignores an integer", "value.set", (("        b->s.shape = value[i];\n", ""),), (2,)),
    LateMutant("ignores an integer 3", "value.set", (("        b->ball.s.shape = (int)value[i];\n", ""),), (3,)),
    LateMutant("ignores a text", "value.set", (('        snprintf(b->s.label, sizeof b->s.label, "%s", value[i]);\n', ""),), (2,)),
    LateMutant("ignores a text 3", "value.set", (('        snprintf(b->ball.s.label, sizeof b->ball.s.label, "%s", value[i]);\n', ""),), (3,)),
    LateMutant("ignores a binary", "value.set", (("        memcpy(b->ball.s.blob, value[i], sizes[i]);\n", ""),), (3,)),
    LateMutant("keeps the length of a binary", "value.set", (("        b->ball.s.blob_size = sizes[i];\n", ""),), (3,)),
    LateMutant("keeps the importer's text", "value.copied", (('        snprintf(b->s.label, sizeof b->s.label, "%s", value[i]);\n', "        *(const char **)(void *)(b->name + 64) = value[i];\n"), ("        value[i] = b->s.label;\n", "        value[i] = *(const char **)(void *)(b->name + 64) ? *(const char **)(void *)(b->name + 64) : b->s.label;\n")), (2,)),
    LateMutant("text too short", "value.set", (('        snprintf(b->s.label, sizeof b->s.label, "%s", value[i]);\n', '        snprintf(b->s.label, 4, "%s", value[i]);\n'),), (2,)),
    LateMutant("no such item", "value.items", (("vr[i] == TICKS ? b->s.ticks : b->s.shape;", "vr[i] == TICKS ? b->s.ticks : b->s.shape + 5;"),), (2,)),
    LateMutant("stale after a parameter", "value.stale", cached("s->h != s->cache_h || s->v != s->cache_v")),
    LateMutant("stale after a state", "exchange.pure", cached("s->time != s->cache_t || s->cache_t == 0.0"), (2, 3), ME),
    LateMutant("stale when time goes back", "exchange.pure", cached("s->time >= s->cache_t"), (2, 3), ME),
    LateMutant("fresh after derivatives only", "exchange.pure", (CACHE, (SLOPE, SLOPE + " ((State *)s)->cache_v = s->mode == CONTINUOUS && v != s->v ? s->cache_v : s->v;"), (ENERGY, "case ENERGY: *value = s->m * (s->g * s->h + 0.5 * (s->mode == CONTINUOUS ? s->cache : s->v) * (s->mode == CONTINUOUS ? s->cache : s->v)); break;"), ("static double ball_indicator(const State *s)\n{\n", "static double ball_indicator(const State *s)\n{\n    ((State *)s)->cache = s->v;\n")), (2, 3), ME),
    LateMutant("input a step late", "steps.parts steps.exchange", (CACHE, ("case WIND: s->wind = value; return 0;", "case WIND: if (s->mode == STEPPING) s->cache = value, s->cache_t = 1.0; else s->wind = value; return 0;"), ("    s->time = end;\n    return 0;", "    s->time = end;\n    if (s->cache_t == 1.0) s->wind = s->cache, s->cache_t = 0.0;\n    return 0;"), ("case C: s->c = value; return 0;", "case C: s->c = 20.0 * value; return 0;"), ("case C: *value = s->c; break;", "case C: *value = s->c / 20.0; break;"), ("    s->c = 0.1;\n", "    s->c = 2.0;\n")), (2,), CS),
]

INSTANCES = [
    LateMutant("one parameter for all", "life.several", (("#define PERIOD 0.5\n", "#define PERIOD 0.5\nstatic double shared_c = 0.1;\n"), (SLOPE, SLOPE.replace("s->c *", "shared_c *")), ("case C: s->c = value; return 0;", "case C: s->c = shared_c = value; return 0;"), ("    s->c = 0.1;\n", "    s->c = shared_c = 0.1;\n"))),
    LateMutant("one restitution for all", "life.several", (("static void ball_slopes(", "static double shared_e = 0.7;\nstatic void ball_slopes("), (BOUNCE, "        s->v = -shared_e * s->v;\n"), ("case E: s->e = value; return 0;", "case E: s->e = shared_e = value; return 0;"))),
    LateMutant("counts for all", "life.several life.repeat", (("static void ball_slopes(", "static int shared;\nstatic void ball_slopes("), ("        s->bounces++;\n", "        s->bounces = ++shared;\n"))),
    LateMutant("memory not cleared", "life.uninitialized", (("    memset(s, 0, sizeof *s);\n", ""), ("(Unit *)calloc(1, sizeof *b)", "(Unit *)memset(malloc(sizeof *b + 64), 0, 8)")), (3,)),
    LateMutant("a field not set", "life.uninitialized", (("    memset(s, 0, sizeof *s);\n", "    { unsigned char *volatile found = malloc(300); double kept = found[100]; free(found); memset(s, 0, sizeof *s); s->wind = 1e-3 * kept; }\n"),)),
    LateMutant("leaks a text each time", "life.leak", (("        value[i] = b->s.label;\n", "        value[i] = strdup(b->s.label);\n"),), (2,)),
    LateMutant("leaks a text each time 3", "life.leak", (("        value[i] = b->ball.s.label;\n", "        value[i] = strdup(b->ball.s.label);\n"),), (3,)),
    LateMutant("leaks a state each time", "life.leak", (("    free(*state);\n", ""),)),
    LateMutant("leaks when it is set", "life.leak", (("case WIND: s->wind = value; return 0;", "case WIND: s->wind = value; *(volatile char *)malloc(64) = 1; return 0;"),)),
    LateMutant("a refusal after a reset", "life.order life.reset", ((" { ball_start(&((Ball *)c)->s); return fmi2OK; }", " { ball_start(&((Ball *)c)->s); ((Ball *)c)->s.mode = STEPPING; return fmi2OK; }"),), (2,)),
    LateMutant("a reset that keeps the time", "life.order life.reset", ((" { ball_start(&((Ball *)c)->s); return fmi2OK; }", " { double kept = ((Ball *)c)->s.wind; ball_start(&((Ball *)c)->s); ((Ball *)c)->s.wind = kept; return fmi2OK; }"),), (2,)),
    LateMutant("no input in Event Mode", "life.order life.calls steps.exchange", (("case WIND: s->wind = value; return 0;", "case WIND: s->wind = value; return s->mode == EVENT;"),), (2, 3), ME),
]

STATES = [
    *forgets("e"), *forgets("c"), *forgets("wind"), *forgets("ticks", "int"), *forgets("bounces", "int"),
    *forgets("next_tick"), *forgets("m"), *forgets("g"), *forgets("shape", "int"), *forgets("time"),
    LateMutant("bytes forget a parameter", "state.serialize", (("    memcpy(*state, data, size);\n", "    memcpy(*state, data, size);\n    ((State *)*state)->e = 0.7;\n    ((State *)*state)->m = 0.4;\n"),)),
    LateMutant("bytes forget the clock", "state.serialize", (("    memcpy(*state, data, size);\n", "    memcpy(*state, data, size);\n    ((State *)*state)->next_tick = 0.5;\n"),)),
]  # fmt: skip

ALL = [*EVENTS, *LATE, *SETTING, *INSTANCES, *STATES]


@functools.cache
def library(version: int, edits: Edits) -> bytes:
    """The compiled ball with some places of its sources changed."""
    texts = {name: (ball.HERE / "foreign" / name).read_text(encoding="utf-8") for name in ("ball.h", f"ball{version}.c")}
    return ball.compiled(texts, edits, "-O0")


def unit(mutant: LateMutant, version: int, path: Path) -> Path:
    """The archive with that fault."""
    members = mutant.described(ball.contents(version, mutant.kinds))
    members[ball.BINARIES[version]] = library(version, mutant.edits)
    return ball.pack(members, path)
