"""Faults written down in the evening of 2026-11-25: what was set is lost, clocks and sizes, and what a name decides."""

# ruff: noqa: E501  one mutant, one line
# fmt: off

from __future__ import annotations

from late_mutants import BOUNCE, CACHE, CS, ME, LateMutant

RESET2 = " { ball_start(&((Ball *)c)->s); return fmi2OK; }"
INDICATOR = "s->h + (s->v > 0.0 ? 1e-9 : 0.0)"
BY_TIME = "(s->next_tick - s->time) * (s->h + (s->v > 0.0 ? 1e-9 : 0.0))"
SET2 = "    memcpy(&((Ball *)c)->s, state, sizeof(State));"
WIND = "case WIND: s->wind = value; return 0;"

BALL = [
    LateMutant("a slow bounce loses more in steps", "steps.exchange", ((BOUNCE, "        s->v = -s->e * s->v * (s->mode == STEPPING && s->v > -1.0 ? 0.9 : 1.0);\n"),)),
    LateMutant("bounces as before the reset", "life.reset", ((RESET2, " { double kept = ((Ball *)c)->s.e; ball_start(&((Ball *)c)->s); ((Ball *)c)->s.cache = kept - 0.7; return fmi2OK; }"), CACHE, (BOUNCE, "        s->v = -(s->e + 0.2 * s->cache) * s->v;\n")), (2,)),
    LateMutant("the second tick is told a period late", "exchange.unannounced", (("        s->next_tick += PERIOD;\n", "        s->next_tick += PERIOD;\n        s->cache = s->ticks == 2 ? PERIOD : 0.0;\n"), CACHE, ("info->nextEventTime = b->s.next_tick;", "info->nextEventTime = b->s.next_tick + b->s.cache;")), (2,), ME),
    LateMutant("ticks are told late, and an indicator rescues them", "exchange.unannounced", (("info->nextEventTime = b->s.next_tick;", "info->nextEventTime = b->s.next_tick + 0.02;"), (INDICATOR, BY_TIME)), (2,), ME),
    LateMutant("ticks are told late, and an indicator rescues them 3", "exchange.unannounced", (("*time = b->ball.s.next_tick;", "*time = b->ball.s.next_tick + 0.02;"), (INDICATOR, BY_TIME)), (3,), ME),
    LateMutant("the wind is half of it after a bounce", "value.set", (("        s->bounces++;\n", "        s->bounces++;\n        s->wind *= 0.5;\n"),)),
    LateMutant("a state is another one when two were freed", "state.roundtrip state.serialize", ((SET2, SET2 + " if (kept_count > 1) ((Ball *)c)->s.v += 1e-3;"), ("enum { INSTANTIATED, INIT", "static int kept_count;\nenum { INSTANTIATED, INIT"), ("    free(*state);\n", "    if (*state) kept_count++;\n    free(*state);\n")), (2,)),
    LateMutant("bytes after a bounce have another tick", "state.serialize", (("    memcpy(*state, data, size);\n", "    memcpy(*state, data, size);\n    if (((State *)*state)->bounces) ((State *)*state)->next_tick += 0.25;\n"),)),
    LateMutant("a partial of the start's mass", "partials.directional", (("if (known == WIND) *value = moving * s->c / s->m;", "if (known == WIND) *value = moving * s->c / 0.5;"),)),
    LateMutant("a partial that turns with the first bounce", "partials.directional", (("        if (known == V) *value = s->m * s->v;", "        if (known == V) *value = s->m * (s->bounces ? -s->v : s->v);"),)),
    LateMutant("of three seeds the last one counts twice", "partials.directional", (("out[i] += d * seed[j];", "out[i] += d * seed[j] * (nk > 2 && j + 1 == nk ? 2.0 : 1.0);"),), (3,)),
    LateMutant("partials by one known alone are a ten thousandth off", "partials.directional", (("out[i] += d * seed[j];", "out[i] += d * seed[j] * (nk == 1 ? 1.0001 : 1.0);"),)),
    LateMutant("partials of one unknown by one known are a ten thousandth off", "partials.directional", (("out[i] += d * seed[j];", "out[i] += d * seed[j] * (nk == 1 && nu == 1 ? 1.0001 : 1.0);"),)),
    LateMutant("partials in another order are a ten thousandth off", "partials.directional", (("out[i] += d * seed[j];", "out[i] += d * seed[j] * (nk > 1 && k[0] > k[1] ? 1.0001 : 1.0);"),)),
    LateMutant("adjoint partials of one unknown alone are a ten thousandth off", "partials.adjoint", (("out[j] += seed[i] * d;", "out[j] += seed[i] * d * (nu == 1 ? 1.0001 : 1.0);"),), (3,)),
    LateMutant("adjoint partials by one known alone are a ten thousandth off", "partials.adjoint", (("out[j] += seed[i] * d;", "out[j] += seed[i] * d * (nk == 1 ? 1.0001 : 1.0);"),), (3,)),
    LateMutant("asking for a partial moves the wind", "partials.directional", (("        if (known == V) *value = s->m * s->v;", "        if (known == V) { *value = s->m * s->v; ((State *)s)->wind += 1e-4; }"),)),
    LateMutant("a step of another size than the last one loses speed", "steps.parts", (CACHE, ("static int ball_advance(State *s, double end)\n{\n", "static int ball_advance(State *s, double end)\n{\n    if (s->mode == STEPPING && s->cache > 0.0 && fabs(end - s->time - s->cache) > 1e-6) s->v *= 0.98;\n    if (s->mode == STEPPING) s->cache = end - s->time;\n")), (2, 3), CS),
    LateMutant("early return forgets the wind", "steps.early", (("if (asked && b->early && part == 1) {", "if (asked && b->early && part == 1) { b->ball.s.wind = 0.0;"),), (3,), CS),
    LateMutant("between steps half of the wind arrives", "value.set", ((WIND, "case WIND: s->wind = s->mode == STEPPING ? 0.5 * (s->wind + value) : value; return 0;"),), (2, 3), CS),
    LateMutant("all of a call get its last value", "value.set", (("NEED(!ball_set(&b->s, vr[i], value[i]), ", "NEED(!ball_set(&b->s, vr[i], value[n - 1]), "),), (2,)),
    LateMutant("restitution is 0.65 at least", "value.set", (("case E: s->e = value; return 0;", "case E: s->e = value < 0.65 ? 0.65 : value; return 0;"),)),
    LateMutant("the weight is that of the first question", "value.stale", (CACHE, ("case WEIGHT: *value = s->m * s->g;", "case WEIGHT: if (s->cache == 0.0) ((State *)s)->cache = s->m * s->g; *value = s->cache;"))),
    LateMutant("the first item is the second", "value.set", (("        b->s.shape = value[i];\n", "        b->s.shape = value[i] == 1 ? 2 : value[i];\n"),), (2,)),
    LateMutant("steps are refused in silence", "log.silent", (("if (b->logging && f.logger) f.logger(", "if (b->logging && f.logger && b->s.mode != STEPPING) f.logger("),), (2,), CS),
    LateMutant("the name decides on the restitution", "life.name", (("    ball_start(&b->s);\n    return b;", '    ball_start(&b->s);\n    b->s.e = strcmp(name, "audited") ? 0.6 : 0.7;\n    return b;'),), (2,)),
]


def _sampler(name: str, rules: str, *edits: tuple[str, str]) -> LateMutant:
    """A fault of the sampler."""
    return LateMutant(f"sampler: {name}", rules, edits, (3,))


SAMPLER = [
    _sampler("an array beside another variable gets its first element", "value.set", ("case U: for (j = 0; j < S->n; ++j) S->u[j] = value[k++]; break;", "case U: for (j = 0; j < S->n; ++j) { if (n == 1 || j == 0) S->u[j] = value[k]; k++; } break;")),
    _sampler("sizes up to 6, of 8", "value.structural", ("value[i] >= 1 && value[i] <= MOST", "value[i] >= 1 && value[i] <= 6")),
    _sampler("Configuration Mode forgets what was set", "value.structural", ('    NEED(S->state == INSTANTIATED, "wrong mode");\n    S->state = CONFIGURING;', '    NEED(S->state == INSTANTIATED, "wrong mode");\n    begin(S);\n    S->state = CONFIGURING;')),
    _sampler("large numbers pass through doubles", "value.set", ("case LARGE: S->large = value[i]; break;", "case LARGE: S->large = (fmi3UInt64)(double)value[i]; break;")),
    _sampler("bytes end at a zero", "value.set", ("        memcpy(S->blob, value[i], sizes[i]);\n        S->blob_size = sizes[i];", "        memcpy(S->blob, value[i], sizes[i]);\n        S->blob_size = strnlen((const char *)value[i], sizes[i]);")),
    _sampler("a tick that nobody gave", "clock.ticks", ("    S->state = ((Unit *)c)->events ? EVENT : STEPPING;", "    S->tick = 1;\n    S->state = ((Unit *)c)->events ? EVENT : STEPPING;")),
    _sampler("a smaller array loses its last effect", "value.element", ("for (i = 0; i < s->n; ++i) sum += s->u[i];", "for (i = 0; i < (s->n < 3 ? s->n - 1 : s->n); ++i) sum += s->u[i];")),
    _sampler("a switch that is on stays on", "value.set", ("case ON: S->on = value[i]; break;", "case ON: S->on = S->on || value[i]; break;")),
    _sampler("the third item is the second one", "value.set", ("S->mode = value[i]; break;", "S->mode = value[i] == 3 ? 2 : value[i]; break;")),
]
