"""More faults of the ball, of kinds that came to mind when one looked for what the auditor does not see.

They were invented and built first, and counted; rules for those that were missed came after. See ``late_mutants.py``.
"""

# ruff: noqa: E501  one mutant, one line

from __future__ import annotations

from late_mutants import CS, ME, SLOPE, Edits, LateMutant

BOUNCE_START = "    s->h = 1.0;\n"
GET_STATE = {
    2: "    if (!*state) *state = malloc(sizeof(State));\n    memcpy(*state, &((Ball *)c)->s, sizeof(State));\n    return fmi2OK;",
    3: "    if (!*state) *state = malloc(sizeof(State));\n    memcpy(*state, &((Unit *)c)->ball.s, sizeof(State));\n    return fmi3OK;",
}
PLACE = {2: "((Ball *)c)->s", 3: "((Unit *)c)->ball.s"}
GET2 = 'NEED(!ball_get(&b->s, vr[i], &value[i]), "no such Real, or it is not finite");'
SET2 = 'NEED(!ball_set(&b->s, vr[i], value[i]), "cannot be set to that now");'
POINT2 = 'NEED(fabs(point - b->s.time) <= 1e-9 * (1.0 + fabs(point)), "the step does not begin where the unit stands");'
STOP2 = "point + size <= b->s.stop + 1e-9 * (1.0 + fabs(b->s.stop))"
RESET2 = " { ball_start(&((Ball *)c)->s); return fmi2OK; }"
NAME2 = '    snprintf(b->name, sizeof b->name, "%s", name);\n'
LOG2 = 'f.logger(b->environment, b->name, fmi2Error, "logStatusError", text);'
LOG3 = 'logger(b->ball.environment, fmi3Error, "logStatusError", text);'
UPDATE3 = "b->update(b->ball.environment, b->ball.s.time,"
ENERGY = "case ENERGY: *value = s->m * (s->g * s->h + 0.5 * s->v * s->v); break;"
ACTIVE = "s->mode == CONTINUOUS || s->mode == STEPPING"


def _both(name: str, rules: str, two: Edits, three: Edits, kinds: tuple[str, ...] = (*ME, *CS)) -> list[LateMutant]:
    """The same fault in both versions."""
    return [LateMutant(name, rules, two, (2,), kinds), LateMutant(f"{name} 3", rules, three, (3,), kinds)]


CALLS = [
    *_both("a kept state stays what it was first", "state.roundtrip",
           ((GET_STATE[2], "    if (!*state) { *state = malloc(sizeof(State));\n    memcpy(*state, &((Ball *)c)->s, sizeof(State)); }\n    return fmi2OK;"),),
           ((GET_STATE[3], "    if (!*state) { *state = malloc(sizeof(State));\n    memcpy(*state, &((Unit *)c)->ball.s, sizeof(State)); }\n    return fmi3OK;"),)),
    *_both("a kept state is the instance itself", "state.roundtrip",
           ((GET_STATE[2], "    *state = &((Ball *)c)->s;\n    return fmi2OK;"), ("    free(*state);\n", "")),
           ((GET_STATE[3], "    *state = &((Unit *)c)->ball.s;\n    return fmi3OK;"), ("    free(*state);\n", ""))),
    *_both("keeping a state changes it", "state.roundtrip",
           ((GET_STATE[2], GET_STATE[2].replace("    return", "    ((Ball *)c)->s.c *= 1.5;\n    return")),),
           ((GET_STATE[3], GET_STATE[3].replace("    return", "    ((Unit *)c)->ball.s.c *= 1.5;\n    return")),)),
    LateMutant("sets the first of several only", "value.set", ((SET2, f"if (i == 0) {SET2}"),), (2,)),
    LateMutant("reads in the order of references", "value.start value.set derivative.value value.order", ((GET2, GET2.replace("vr[i]", "vr[0] + (unsigned)i")),), (2,)),
    LateMutant("reads doubles of a list once only", "value.order", ((GET2, "{ size_t j; for (j = 0; j < i; ++j) if (vr[j] == vr[i]) break; if (j < i) value[i] = 0.0; else " + GET2 + " }"),), (2,)),
    LateMutant("reads few values wrongly", "value.order exchange.pure", ((GET2, "{ " + GET2 + " if (n == 1 && vr[i] == ENERGY) value[i] *= 1.01; }"),), (2,)),
    LateMutant("stop without round-off", "life.calls steps.stop", ((STOP2, "point + size <= b->s.stop"),), (2,), CS),
    LateMutant("own clock runs by itself", "life.calls steps.variable", ((POINT2, 'NEED(point == b->s.time, "the step does not begin where the FMU stands");'), ("    s->time = end;\n    return 0;", "    return 0;")), (2,), CS),
    LateMutant("reset keeps the stop time", "life.reset life.order", ((RESET2, " { State k = ((Ball *)c)->s; ball_start(&((Ball *)c)->s); ((Ball *)c)->s.has_stop = k.has_stop; ((Ball *)c)->s.stop = k.stop; return fmi2OK; }"), ("    b->s.has_stop = sd;\n    b->s.stop = stop;\n", "    if (sd) { b->s.has_stop = sd;\n    b->s.stop = stop; }\n")), (2,), CS),
    LateMutant("keeps the importer's name", "log.arguments", ((NAME2, "    *(const char **)(void *)b->name = name;\n"), (LOG2, LOG2.replace("b->name", "*(const char **)(void *)b->name"))), (2,)),
    LateMutant("logs with another environment", "log.arguments", ((LOG2, LOG2.replace("b->environment", "b")),), (2,)),
    LateMutant("logs with another environment 3", "log.arguments", ((LOG3, LOG3.replace("b->ball.environment", "b")),), (3,)),
    LateMutant("logs under another name", "log.arguments", ((LOG2, LOG2.replace("b->name", '"ball"')),), (2,)),
    LateMutant("logs a status that is none", "log.arguments", ((LOG2, LOG2.replace("fmi2Error", "(fmi2Status)17")),), (2,)),
    LateMutant("logs in another encoding", "value.text", ((LOG2, LOG2.replace("text);", '"gr\\xf6\\xdfer");')),), (2,)),
    LateMutant("text in another encoding", "value.text", (("        value[i] = b->s.label;\n", '        value[i] = "gr\\xf6\\xdfer";\n'), ('vr[i] == LABEL, "no such String");\n        snprintf', 'vr[i] == LABEL, "no such String");\n        (void)snprintf')), (2,)),
    LateMutant("null instead of a text", "value.text", (("        value[i] = b->s.label;\n", "        value[i] = b->s.mode == STEPPING || b->s.mode == CONTINUOUS ? NULL : b->s.label;\n"),), (2,)),
    LateMutant("truth that is neither", "value.items", (("        value[i] = b->s.resting;\n", "        value[i] = b->s.resting ? 1 : 4096 * (b->s.time > 0.1);\n"),), (2,)),
]  # fmt: skip

VALUES = [
    LateMutant("outputs are zero until the start", "value.stale dependencies.missing dependencies.excessive", ((ENERGY, "case ENERGY: *value = s->mode == INITIALIZING ? 0.0 : s->m * (s->g * s->h + 0.5 * s->v * s->v); break;"),)),
    LateMutant("weight of the start values", "dependencies.excessive", (("case WEIGHT: *value = s->m * s->g; break;", "case WEIGHT: *value = 0.5 * 9.81; break;"),)),
    LateMutant("fixed parameter can be set later", "value.unsettable", (("case G: if (starting) s->g = value; return !starting;", "case G: s->g = value; return 0;"),)),
    LateMutant("tunable parameter without effect later", "value.tunable", (("case C: s->c = value; return 0;", "case C: if (starting) s->c = value; s->blob[7] = 1; memcpy(s->label + 48, &value, 8); return 0;"), ("case C: *value = s->c; break;", "case C: if (s->blob[7]) memcpy(value, s->label + 48, 8); else *value = s->c; break;"))),
    LateMutant("input without effect in Event Mode", "value.set", (("case WIND: s->wind = value; return 0;", "case WIND: if (s->mode != EVENT) s->wind = value; return 0;"),), (2, 3), ME),
    LateMutant("input of the initialization is forgotten", "steps.exchange value.set value.stale", (("case WIND: s->wind = value; return 0;", "case WIND: if (s->mode != INITIALIZING) s->wind = value; return 0;"),)),
    LateMutant("motion by the day", "life.repeat", (("static void ball_slopes(", "#include <time.h>\nstatic void ball_slopes("), (ENERGY, "case ENERGY: { struct timespec now; clock_gettime(CLOCK_REALTIME, &now); *value = s->m * (s->g * s->h + 0.5 * s->v * s->v) + 1e-9 * (double)now.tv_nsec; break; }"))),
    LateMutant("reading moves it", "value.pure", ((ENERGY, ENERGY.replace("break;", "((State *)s)->v *= 0.9999; break;")),), (2, 3), CS),
    LateMutant("reading moves it in Model Exchange", "exchange.pure value.pure", ((ENERGY, ENERGY.replace("break;", "((State *)s)->v *= 0.9999; break;")),), (2, 3), ME),
    LateMutant("largest at the start only", "value.start", ((BOUNCE_START, "    s->h = 1.0 + 1e-6;\n"),)),
    LateMutant("other default of a flag", "value.start", (("    s->shape = 2;\n", "    s->shape = 1;\n"),)),
]  # fmt: skip

MOTION = [
    LateMutant("partial wrong when fast", "partials.directional", (("*value = -moving * s->c / s->m;", "*value = -moving * s->c / s->m * (s->v < -1.0 ? 2.0 : 1.0);"),)),
    LateMutant("partials add up", "partials.directional life.writes", (("        out[i] = 0.0;\n        for (j = 0; j < nk; ++j) {\n            double d;\n            NEED(!ball_partial(&b->s,", "        for (j = 0; j < nk; ++j) {\n            double d;\n            NEED(!ball_partial(&b->s,"),), (2,)),
    LateMutant("partials of the start", "partials.directional", (("if (known == WIND) *value = moving * s->c / s->m;", "if (known == WIND) *value = moving * 0.1 / s->m;"),)),
    LateMutant("partials leave a trace", "exchange.pure partials.directional", (("    case HEIGHT_TWICE: *value = known == H ? 2.0 : 0.0; return 0;", "    case HEIGHT_TWICE: ((State *)s)->h += 1e-4; *value = known == H ? 2.0 : 0.0; return 0;"),)),
    LateMutant("indicator with a memory", "exchange.pure", (("z[0] = ball_indicator(&b->s);", "z[0] = ball_indicator(&b->s) + 0.5 * b->previous_indicator; b->previous_indicator = ball_indicator(&b->s);"),), (2,), ME),
    LateMutant("indicator with a memory 3", "exchange.pure", (("z[0] = ball_indicator(&b->ball.s);", "z[0] = ball_indicator(&b->ball.s) + 0.5 * b->ball.previous_indicator; b->ball.previous_indicator = ball_indicator(&b->ball.s);"),), (3,), ME),
    LateMutant("states jump on the way into Event Mode", "exchange.values_changed exchange.unannounced", (("fmi2Status fmi2EnterEventMode(fmi2Component c) {", "fmi2Status fmi2EnterEventMode(fmi2Component c) { ((Ball *)c)->s.v *= 0.99;"),), (2,), ME),
    LateMutant("states jump on the way out of Event Mode", "exchange.values_changed exchange.unannounced", (("fmi2Status fmi2EnterContinuousTimeMode(fmi2Component c) {", "fmi2Status fmi2EnterContinuousTimeMode(fmi2Component c) { ((Ball *)c)->s.v *= 0.99;"),), (2,), ME),
    LateMutant("a tick at a communication point is lost", "steps.exchange", (("        if (s->next_tick - s->time > 1e-12 && s->next_tick - s->time < size) size = s->next_tick - s->time;\n", "        if (s->next_tick - s->time > 1e-12 && s->next_tick - s->time < size) size = s->next_tick - s->time;\n        if (fabs(end - s->next_tick) < 1e-9 && end - s->time <= 1e-3) s->next_tick += PERIOD;\n"),), (2, 3)),
    LateMutant("early, but at the end", "steps.early steps.last", (("        if (ball_advance(&b->ball.s, point + 0.5 * part * size)) {", "        if (ball_advance(&b->ball.s, point + size)) {"), ("        *last = b->ball.s.time;\n        if (b->update)", "        *last = point + 0.5 * part * size;\n        b->ball.s.time = *last;\n        if (b->update)")), (3,), CS),
    LateMutant("slope of a state's square", "derivative.value derivative.slope", (("case DER_H: *value = dh; break;", "case DER_H: *value = dh * (s->v < -2.0 ? 1.02 : 1.0); break;"),), (2, 3), ME),
    LateMutant("a bounce costs a state its unit", "exchange.values_changed", (("    info->valuesOfContinuousStatesChanged = ball_event(&b->s);\n", "    info->valuesOfContinuousStatesChanged = ball_event(&b->s);\n    if (b->s.time > 0.45 && b->s.time < 0.55) b->s.h += 0.01;\n"),), (2,), ME),
    LateMutant("counts what it evaluates", "life.repeat exchange.pure value.variability", ((SLOPE, SLOPE + " ((State *)s)->ticks += 0; if (s->mode == CONTINUOUS) ((State *)s)->bounces += s->v < -3.0;"),), (2, 3), ME),
]  # fmt: skip

ALL = [*CALLS, *VALUES, *MOTION]
