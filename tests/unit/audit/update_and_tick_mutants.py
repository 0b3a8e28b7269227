"""Faults behind the first event, in ticks, in updates, in unusual contents and in what comes beside a run.

They were written down before any was run; at first none of them was named. See ``late_mutants.py``.
"""

# ruff: noqa: E501  one mutant, one line
# fmt: off

from __future__ import annotations

from late_mutants import LateMutant

CS = ("CoSimulation",)
ME = ("ModelExchange",)

BALL = [
    LateMutant("half a step late", "steps.exchange", (("    unsigned char blob[8];\n", "    unsigned char blob[8];\n    double cache, cache_h, cache_v, cache_t;\n"), ("    int left = 100000; /* bounces follow each other ever faster */", "    int left = 100000; const double now = s->wind, from = s->time;\n    if (s->cache_t == 0.0) s->cache = now;\n    s->cache_t = 1.0;"), ("        if (size > 1e-3) size = 1e-3;", "        if (size > 1e-3) size = 1e-3;\n        s->wind = s->mode == STEPPING && s->time < 0.5 * (from + end) ? s->cache : now;"), ("    s->time = end;\n    return 0;", "    s->wind = s->cache = now;\n    s->time = end;\n    return 0;")), (2, 3)),
    LateMutant("mean of two inputs", "steps.exchange", (("    unsigned char blob[8];\n", "    unsigned char blob[8];\n    double cache, cache_h, cache_v, cache_t;\n"), ("    int left = 100000; /* bounces follow each other ever faster */", "    int left = 100000; const double now = s->wind;\n    if (s->cache_t == 0.0) s->cache = now;\n    s->cache_t = 1.0;\n    if (s->mode == STEPPING) s->wind = 0.5 * (s->cache + now);"), ("    s->time = end;\n    return 0;", "    s->wind = s->cache = now;\n    s->time = end;\n    return 0;")), (2, 3)),
    LateMutant("partials none after the second tick", "partials.directional", (("        if (known == V) *value = s->m * s->v;", "        if (known == V) *value = s->ticks > 1 ? 0.0 : s->m * s->v;"),), (2, 3)),
    LateMutant("depends on wind after the second tick", "dependencies.missing", (("case ENERGY: *value = s->m * (s->g * s->h + 0.5 * s->v * s->v); break;", "case ENERGY: *value = s->m * (s->g * s->h + 0.5 * s->v * s->v) + (s->ticks > 1 ? 0.2 * s->wind : 0.0); break;"),), (2, 3)),
    LateMutant("kind is no more constant after the second tick", "dependencies.kind", (("case HEIGHT_TWICE: *value = 2.0 * s->h; break;", "case HEIGHT_TWICE: *value = 2.0 * s->h + (s->ticks > 1 ? s->h * s->h : 0.0); break;"),), (2, 3)),
    LateMutant("derivative by another road after the second tick", "derivative.value", (("case DER_V: *value = dv; break;", "case DER_V: *value = s->ticks > 1 ? dv * 1.01 : dv; break;"),), (2, 3), ME),
    LateMutant("stale energy after the second tick", "exchange.pure", (("    unsigned char blob[8];\n", "    unsigned char blob[8];\n    double cache, cache_h, cache_v, cache_t;\n"), ("case ENERGY: *value = s->m * (s->g * s->h + 0.5 * s->v * s->v); break;", "case ENERGY: if (s->ticks < 2 || s->time != s->cache_t) { State *k = (State *)s; k->cache = s->m * (s->g * s->h + 0.5 * s->v * s->v); k->cache_h = s->h; k->cache_v = s->v; k->cache_t = s->time; } *value = s->cache; break;")), (2, 3), ME),
    LateMutant("tunable c a step late", "steps.exchange", (("    unsigned char blob[8];\n", "    unsigned char blob[8];\n    double cache, cache_h, cache_v, cache_t;\n"), ("case C: s->c = value; return 0;", "case C: if (s->mode == STEPPING) s->cache = value, s->cache_t = 1.0; else s->c = value; return 0;"), ("case C: *value = s->c; break;", "case C: *value = s->cache_t ? s->cache : s->c; break;"), ("    s->time = end;\n    return 0;", "    if (s->cache_t) s->c = s->cache, s->cache_t = 0.0;\n    s->time = end;\n    return 0;")), (2, 3)),
    LateMutant("a category that is not switched on is said", "log.setting", (('    (void)no;\n    NEED(b->s.mode == STEPPING, "wrong mode");', '    (void)no;\n    if (b->logging) callbacks_of(b).logger(b->environment, b->name, fmi2OK, "extra", "a step");\n    NEED(b->s.mode == STEPPING, "wrong mode");'),), (2,), CS, description=(('<Category name="logStatusError"/>', '<Category name="logStatusError"/><Category name="extra"/>'),)),
    LateMutant("an empty binary is not taken", "value.set", (("        memcpy(b->ball.s.blob, value[i], sizes[i]);\n        b->ball.s.blob_size = sizes[i];", "        if (sizes[i]) { memcpy(b->ball.s.blob, value[i], sizes[i]); b->ball.s.blob_size = sizes[i]; }"),), (3,)),
    LateMutant("a binary ends at its first zero byte", "value.set", (("        b->ball.s.blob_size = sizes[i];", "        b->ball.s.blob_size = strnlen((const char *)value[i], sizes[i]);"),), (3,)),
    LateMutant("an empty text is not taken", "value.set", (('        snprintf(b->s.label, sizeof b->s.label, "%s", value[i]);', '        if (value[i][0]) snprintf(b->s.label, sizeof b->s.label, "%s", value[i]);'),), (2,)),
    LateMutant("a text is a format", "value.set", (('        snprintf(b->s.label, sizeof b->s.label, "%s", value[i]);', "        snprintf(b->s.label, sizeof b->s.label, value[i]);"),), (2,)),
    LateMutant("indicator that depends on more than it says", "dependencies.missing", (), (3,), description=(('<EventIndicator valueReference="20"/>', '<EventIndicator valueReference="20" dependencies="2"/>'),)),
    LateMutant("the variable of the indicator is another", "derivative.value", (("case GAP: *value = ball_indicator(s); break;", "case GAP: *value = 2.0 * ball_indicator(s); break;"),), (3,)),
    LateMutant("the kind of the last instance is that of all", "life.several", (("    b->exchange = type == fmi2ModelExchange;", "    last_kind = type == fmi2ModelExchange;"), ("    b->s.mode = b->exchange ? EVENT : STEPPING;", "    b->s.mode = last_kind ? EVENT : STEPPING;"), ('#define TOKEN "{8c4', 'static int last_kind;\n#define TOKEN "{8c4')), (2,)),
    LateMutant("motion by the flag of states", "life.repeat", (('    (void)no;\n    NEED(b->s.mode == STEPPING, "wrong mode");', '    if (!no) b->s.v *= 0.999;\n    NEED(b->s.mode == STEPPING, "wrong mode");'),), (2,)),
    LateMutant("leaks at a refusal", "life.leak", (("    return fmi2Error;\n}", "    memset(malloc(4096), 1, 4096);\n    return fmi2Error;\n}"),), (2,)),
    LateMutant("leaks at a reset", "life.leak", (("fmi2Status fmi2Reset(fmi2Component c) { ball", "fmi2Status fmi2Reset(fmi2Component c) { memset(malloc(4096), 1, 4096); ball"),), (2,)),
    LateMutant("a descriptor stays open", "life.leak", (("    b->exchange = type == fmi2ModelExchange;", "    b->exchange = type == fmi2ModelExchange;\n    dup(0);"),), (2,)),
    LateMutant("a thread goes on", "life.leak", (('#include "ball.h"\n', '#include "ball.h"\n#include <pthread.h>\nstatic void *watch(void *x) { for (;;) sleep(1); return x; }\n'), ("    b->exchange = type == fmi2ModelExchange;", "    { pthread_t t; pthread_create(&t, 0, watch, 0); pthread_detach(t); }\n    b->exchange = type == fmi2ModelExchange;")), (2,)),
    LateMutant("an alarm", "host.restored", (("    b->exchange = type == fmi2ModelExchange;", "    alarm(3600);\n    b->exchange = type == fmi2ModelExchange;"),), (2,)),
    LateMutant("no logger, and it is called", "life.crash", (("    if (b->ball.logging && logger) logger", "    if (b->ball.logging) logger"),), (3,)),
    LateMutant("get is refused in the update", "steps.intermediate", (("            b->update(b->ball.environment", "            b->ball.s.mode = TERMINATED;\n            b->update(b->ball.environment"), ("            if (asked && b->early", "            b->ball.s.mode = STEPPING;\n            if (asked && b->early"), ("    Unit *b = (Unit *)c;\n    size_t i, k = 0;\n    for (i = 0; i < n; ++i) {\n        if (vr[i] == POSITION)", '    Unit *b = (Unit *)c;\n    size_t i, k = 0;\n    NEED(b->ball.s.mode != TERMINATED, "not now");\n    for (i = 0; i < n; ++i) {\n        if (vr[i] == POSITION)')), (3,), CS, description=(('name="energy" valueReference="11" causality="output"', 'name="energy" valueReference="11" intermediateUpdate="true" causality="output"'),)),
    LateMutant("values in the update are those of the end", "steps.intermediate", (("    State before = b->ball.s;\n    int part;", "    State before = b->ball.s, whole = b->ball.s;\n    int part;"), ("    for (part = 1; part <= 2; ++part) {", "    ball_advance(&whole, point + size);\n    for (part = 1; part <= 2; ++part) {"), ("            b->update(b->ball.environment", "            State kept = b->ball.s; if (part == 1) { b->ball.s = whole; b->ball.s.time = kept.time; }\n            b->update(b->ball.environment"), ("            if (asked && b->early", "            b->ball.s = kept;\n            if (asked && b->early")), (3,), CS, description=(('name="energy" valueReference="11" causality="output"', 'name="energy" valueReference="11" intermediateUpdate="true" causality="output"'), ('name="h" valueReference="1" causality="output"', 'name="h" valueReference="1" intermediateUpdate="true" causality="output"'))),
    LateMutant("the update comes with another environment", "steps.intermediate", (("            b->update(b->ball.environment", "            b->update((void *)b"),), (3,), CS),
    LateMutant("after an early return it cannot go on", "steps.early", (("                *early = fmi3True;\n", "                *early = fmi3True;\n                b->ball.s.mode = TERMINATED;\n"),), (3,), CS),
]

SAMPLER = [
    LateMutant("sampler: a clock that is not set ticks", "clock.ticks", (("        S->tick = value[i];", "        S->tick = 1;"),), (3,)),
    LateMutant("sampler: counts without a tick", "clock.ticks", (("    if (s->tick) {", "    {"),), (3,)),
    LateMutant("sampler: entering Step Mode moves it", "exchange.unannounced", (("fmi3Status fmi3EnterStepMode(fmi3Instance c) { S", "fmi3Status fmi3EnterStepMode(fmi3Instance c) { S->x *= 0.99; S"),), (3,)),
    LateMutant("sampler: entering Event Mode moves it in steps", "exchange.unannounced", (("fmi3Status fmi3EnterEventMode(fmi3Instance c) { S", "fmi3Status fmi3EnterEventMode(fmi3Instance c) { if (!((Unit *)c)->exchange) S->x *= 0.99; S"),), (3,)),
    LateMutant("sampler: what is sampled depends on nothing", "dependencies.missing", (), (3,), description=(('<Output valueReference="8" dependencies="5"/>', '<Output valueReference="8" dependencies=""/>'),)),
    LateMutant("sampler: a start longer than the largest size", "variables.start_bounds", (), (3,), description=(('mimeType="application/octet-stream"', 'mimeType="application/octet-stream" maxSize="2"'),)),
    LateMutant("sampler: a display unit the other way round", "units.exponents", (), (3,), description=(('factor="57.29577951308232"', 'factor="0.017453292519943295"'),)),
    LateMutant("sampler: inverse and an offset", "units.factor", (), (3,), description=(('factor="57.29577951308232"', 'factor="57.29577951308232" offset="1" inverse="true"'),)),
    LateMutant("sampler: a counter without resolution", "variables.clocks", (), (3,), description=(('intervalDecimal="0.1"', 'intervalCounter="1" supportsFraction="true"'),)),
    LateMutant("sampler: a shift below zero", "variables.clocks", (), (3,), description=(('intervalDecimal="0.1"', 'intervalDecimal="0.1" shiftDecimal="-0.1"'),)),
    LateMutant("sampler: a state forgets the count", "state.roundtrip", (("memcpy(S, state, sizeof(State)); return fmi3OK;", "{ int kept = S->count; memcpy(S, state, sizeof(State)); S->count = kept; } return fmi3OK;"),), (3,)),
    LateMutant("sampler: a tick moves the state", "exchange.values_changed", (("        s->sampled = s->x;", "        s->sampled = s->x;\n        s->x *= 0.9;"),), (3,)),
    LateMutant("sampler: a shift without interval", "variables.clocks", (), (3,), description=(('name="fifth" valueReference="11" causality="output" intervalVariability="triggered"', 'name="fifth" valueReference="11" causality="output" intervalVariability="triggered" shiftDecimal="0.1"'),)),
]
