"""Faults that a stranger may plant: in the order of calls, in names, in clocks, in what is asked for nothing."""

# ruff: noqa: E501  one mutant, one line

from __future__ import annotations

from further_mutants import GET2, NAME2, SET2
from late_mutants import CACHE, CS, ME, SLOPE, LateMutant

MAKE3 = '    snprintf(b->ball.name, sizeof b->ball.name, "%s", name);\n'
ADVANCE = "static int ball_advance(State *s, double end)\n{\n"
END = "    s->time = end;\n    return 0;"

BALL = [
    LateMutant("ticks count from zero wherever it starts", "life.start", (("    b->s.next_tick = start + PERIOD;\n", ""),), (2,)),
    LateMutant("an event clears the input", "value.set life.order exchange.unannounced steps.exchange value.variability", (("static int ball_event(State *s)\n{\n", "static int ball_event(State *s)\n{\n    s->wind = 0.0;\n"),), (2, 3), ME),
    LateMutant("all unknowns get the first one's partial", "partials.directional", (("ball_partial(&b->s, u[i], k[j], &d)", "ball_partial(&b->s, u[0], k[j], &d)"),), (2,)),
    LateMutant("each fifth step is shorter", "steps.parts steps.exchange", (CACHE, (ADVANCE, ADVANCE + "    const double wanted = end;\n    s->cache_t += 1.0;\n    if (s->mode == STEPPING && fmod(s->cache_t, 5.0) == 0.0) end -= 0.2 * (end - s->time);\n"), (END, "    s->time = wanted;\n    return 0;")), (2, 3), CS),
    LateMutant("long name of an instance", "life.name life.crash life.instantiate", ((NAME2, '    { char few[64]; strcpy(few, name); snprintf(b->name, sizeof b->name, "%s", few); }\n'),), (2,)),
    LateMutant("long name of an instance 3", "life.name life.crash life.instantiate", ((MAKE3, '    { char few[64]; strcpy(few, name); snprintf(b->ball.name, sizeof b->ball.name, "%s", few); }\n'),), (3,)),
    LateMutant("input acts in coarse steps", "partials.directional value.set dependencies.missing", ((SLOPE, SLOPE.replace("(s->wind - v)", "(floor(8.0 * s->wind) / 8.0 - v)")),)),
    LateMutant("the first that is freed takes a table along", "life.several life.threads life.reset", (("static void ball_slopes(", "static double shared = 9.0;\nstatic void ball_slopes("), (SLOPE, SLOPE.replace("-s->g", "-s->g * shared / 9.0")), ("    if (!b) return;\n", "    if (!b) return;\n    shared = 8.0;\n"), ("    ball_start(&b->s);\n    return b;", "    ball_start(&b->s);\n    shared = 9.0;\n    return b;")), (2,)),
    LateMutant("setting the mass changes the damping", "value.set value.start value.stale value.order", (("case M: if (starting && value > 0.0) s->m = value; return", "case M: if (starting && value > 0.0) { s->c *= value / s->m; s->m = value; } return"),)),
    LateMutant("set to what it is, it moves", "value.twice exchange.pure", (("case WIND: s->wind = value; return 0;", "case WIND: s->c += s->wind == value ? 0.01 : 0.0; s->wind = value; return 0;"),)),
    LateMutant("asked for nothing it crashes", "value.nothing life.crash", (("    size_t i;\n    for (i = 0; i < n; ++i) " + GET2, "    size_t i;\n    value[0] = 0.0;\n    for (i = 0; i < n; ++i) " + GET2),), (2,)),
    LateMutant("set to nothing it refuses", "value.nothing life.calls", (("    size_t i;\n    for (i = 0; i < n; ++i) " + SET2, '    size_t i;\n    NEED(n > 0, "nothing to set");\n    for (i = 0; i < n; ++i) ' + SET2),), (2,)),
    LateMutant("its own category is refused", "log.setting life.calls log.undeclared", (("    (void)n, (void)names;\n", '    if (n && strcmp(names[0], "logAll")) return fmi2Error;\n'),), (2,)),
    LateMutant("logging all crashes", "log.setting life.crash", (("    (void)n, (void)names;\n", "    (void)n;\n    if (names[0][0] == 'x') return fmi2Error;\n"),), (2,)),
    LateMutant("an event restores the start's restitution", "value.tunable value.variability steps.exchange exchange.unannounced", (("        s->ticks++;\n", "        s->ticks++;\n        s->e = 0.7;\n"),)),
    LateMutant("a kept text is a pointer", "state.roundtrip state.serialize", (("    memcpy(&((Ball *)c)->s, state, sizeof(State));", "    { char kept[64]; memcpy(kept, ((Ball *)c)->s.label, 64); memcpy(&((Ball *)c)->s, state, sizeof(State)); memcpy(((Ball *)c)->s.label, kept, 64); }"),), (2,)),
    LateMutant("output of the last step until it is read", "steps.exchange value.pure value.order", (CACHE, ("case HEIGHT_TWICE: *value = 2.0 * s->h; break;", "case HEIGHT_TWICE: { State *k = (State *)s; *value = s->mode == STEPPING && s->time > 0.1 ? s->cache : 2.0 * s->h; k->cache = 2.0 * s->h; break; }")), (2, 3), CS),
]  # fmt: skip


def _sampler(name: str, rules: str, *edits: tuple[str, str]) -> LateMutant:
    """A fault of the sampler."""
    return LateMutant(f"sampler: {name}", rules, edits, (3,))


SAMPLER = [
    _sampler("interval at the first question only", "clock.interval", ("v[i] = 0.1;", "v[i] = S->blob[15] ? 0.3 : 0.1; S->blob[15] = 1;")),
    _sampler("a second array begins at zero", "value.order value.start", ("case U: for (j = 0; j < S->n; ++j) value[k++] = S->u[j]; break;", "case U: for (j = 0; j < S->n; ++j) { value[k] = k ? S->u[0] + k : S->u[j]; ++k; } break;")),
    _sampler("further elements of the input do nothing", "value.element", ("for (i = 0; i < s->n; ++i) sum += s->u[i];", "for (i = 0; i < s->n && i < 3; ++i) sum += s->u[i];")),
    _sampler("further elements have the first one's gain", "value.element", ("case Y: for (j = 0; j < S->n; ++j) value[k++] = S->gain[j] * S->u[j] + S->x; break;", "case Y: for (j = 0; j < S->n; ++j) value[k++] = S->gain[j < 3 ? j : 0] * S->u[j] + S->x; break;")),
    _sampler("further elements of an output are the state", "value.element", ("case Y: for (j = 0; j < S->n; ++j) value[k++] = S->gain[j] * S->u[j] + S->x; break;", "case Y: for (j = 0; j < S->n; ++j) value[k++] = (j < 3 ? S->gain[j] * S->u[j] : 0.0) + S->x; break;")),
    _sampler("further elements are not taken", "value.structural", ("case U: for (j = 0; j < S->n; ++j) S->u[j] = value[k++]; break;", "case U: for (j = 0; j < S->n; ++j) { if (j < 3) S->u[j] = value[k]; ++k; } break;")),
    _sampler("a state forgets the size", "state.roundtrip", ("memcpy(S, state, sizeof(State)); return fmi3OK;", "{ fmi3UInt64 kept = S->n; memcpy(S, state, sizeof(State)); S->n = kept; } return fmi3OK;")),
    _sampler("bytes forget the size", "state.serialize", ("    memcpy(*state, data, size);", "    memcpy(*state, data, size);\n    ((State *)*state)->n = S->n;")),
    _sampler("bytes have the described size", "state.serialize", ("    memcpy(*state, data, size);", "    memcpy(*state, data, size);\n    ((State *)*state)->n = 3;")),
    _sampler("a state has the arrays of the described size", "state.roundtrip", ("memcpy(S, state, sizeof(State)); return fmi3OK;", "{ State kept = *S; int i; memcpy(S, state, sizeof(State)); for (i = 3; i < MOST; ++i) S->u[i] = kept.u[i]; } return fmi3OK;")),
    _sampler("previous is not what was before", "clock.previous", ("        s->before = s->count;\n        s->count++;", "        s->count++;\n        s->before = s->count;")),
]  # fmt: skip

ALL = [*BALL, *SAMPLER]
