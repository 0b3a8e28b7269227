"""Faults at the end of a run, in a second instance, after a reset, with other parameters, to the host, by all types.

With five of terminals and manifests they are 99, written down before any was run: 37 were not named at first.
"""

# ruff: noqa: E501  one mutant, one line
# fmt: off

from __future__ import annotations

from late_mutants import BOUNCE, CACHE, CS, ENERGY, ME, SLOPE, TICK, Edits, LateMutant

BOTH = (2, 3)
ENERGY_THEN = "s->m * (s->g * s->h + 0.5 * s->v * s->v)"
HEADERS = ("static void ball_slopes(", "#include <fcntl.h>\n#include <locale.h>\n#include <netinet/in.h>\n#include <pthread.h>\n#include <sys/socket.h>\nstatic int live, count_made;\nstatic void ball_slopes(")
GLOBALS = "enum { INSTANTIATED, INIT"
RESET2 = " { ball_start(&((Ball *)c)->s); return fmi2OK; }"
RESET3 = "fmi3Status fmi3Reset(fmi3Instance c) { ball_start(&((Unit *)c)->ball.s); return fmi3OK; }"
TERMINATE = {version: f"fmi{version}Status fmi{version}Terminate(fmi{version}{kind} c) {{ " for version, kind in ((2, "Component"), (3, "Instance"))}
MADE = {2: "    b->logging = logging;\n", 3: "    b->ball.logging = logging;\n"}
FREED = {2: ("    f.freeMemory(b->logger);\n", "    {}\n    f.freeMemory(b->logger);\n"),
         3: ("void fmi3FreeInstance(fmi3Instance c) { free(c); }", "void fmi3FreeInstance(fmi3Instance c) {{ if (c) {{ {} }} free(c); }}")}


def energy(more: str) -> tuple[str, str]:
    """The energy and something that it does not say it depends on."""
    return (ENERGY, f"case ENERGY: *value = {ENERGY_THEN} + ({more}); break;")


def at_end(name: str, rules: str, code: str) -> list[LateMutant]:
    """Done when it is terminated, in both versions."""
    return [LateMutant(name, rules, (HEADERS, (each, each + code + " ")), (version,)) for version, each in TERMINATE.items()]


def life(name: str, rules: str, made: str, freed: str = "", more: Edits = ()) -> list[LateMutant]:
    """Done when an instance is made, and when it is freed, in both versions."""
    def edits(version: int) -> Edits:
        old, new = FREED[version]
        return HEADERS, (MADE[version], f"{MADE[version]}    {made}\n"), *more, *([(old, new.format(freed))] if freed else [])

    return [LateMutant(name, rules, edits(version), (version,)) for version in BOTH]


BALL = [
    # only at the last tenth of the experiment
    LateMutant("a height twice that is none at the end of the run", "value.finite life.calls", (("case HEIGHT_TWICE: *value = 2.0 * s->h; break;", "case HEIGHT_TWICE: *value = s->time > 1.88 ? NAN : 2.0 * s->h; return 0;"),), BOTH, CS),
    LateMutant("steps lose energy in the last tenth", "steps.exchange", ((SLOPE, SLOPE + " if (s->mode == STEPPING && s->time > 1.85) *dv -= 2.0 * v;"),)),
    LateMutant("depends on the wind in the last tenth", "dependencies.missing", (energy("s->time > 1.85 ? 0.1 * s->wind : 0.0"),)),
    # only at the second instance
    *life("the wind is weaker while two are there", "life.several life.threads", "live++;", "live--;", ((SLOPE, SLOPE.replace("s->wind", "s->wind * (live > 1 ? 0.9 : 1.0)")),)),
    *life("each second instance has another restitution", "life.repeat life.several value.start", "count_made++;", more=((BOUNCE, BOUNCE.replace("s->e", "s->e * (s->shape == 2 && count_made % 2 == 0 ? 0.999 : 1.0)")),)),
    # only after a reset
    LateMutant("silent after a reset", "life.reset life.order log.silent log.setting", ((RESET2, " { ball_start(&((Ball *)c)->s); ((Ball *)c)->logging = 0; ((Ball *)c)->exchange |= 2; return fmi2OK; }"), ("    ((Ball *)c)->logging = on;\n", "    ((Ball *)c)->logging = on && !(((Ball *)c)->exchange & 2);\n"), ("b->exchange ? EVENT", "(b->exchange & 1) ? EVENT")), (2,)),
    LateMutant("the third reset is refused", "life.reset life.order life.leak life.calls", ((RESET2, ' { Ball *b = (Ball *)c; NEED((b->exchange += 2) < 6, "enough"); ball_start(&b->s); return fmi2OK; }'), ("b->exchange ? EVENT", "(b->exchange & 1) ? EVENT")), (2,)),
    LateMutant("after a reset the second tick is late", "life.reset life.order life.repeat", ((RESET3, "fmi3Status fmi3Reset(fmi3Instance c) { ball_start(&((Unit *)c)->ball.s); ((Unit *)c)->ball.s.blob[7] = 1; return fmi3OK; }"), ("        s->next_tick += PERIOD;\n", "        s->next_tick += PERIOD + (s->blob[7] ? 0.01 : 0.0);\n")), (3,)),
    # only with other parameters
    LateMutant("partial is another one for heavy balls", "partials.directional", (("if (known == V) *value = -moving * s->c / s->m;", "if (known == V) *value = -moving * s->c / (s->m > 0.55 ? 0.55 : s->m);"),)),
    LateMutant("lossy balls are not counted in steps", "steps.exchange", (("        s->bounces++;\n", "        if (s->mode != STEPPING || s->e > 0.65) s->bounces++;\n"),)),
    LateMutant("Model Exchange alone: light balls forget the damping's dependency", "dependencies.missing", ((SLOPE, SLOPE + " if (s->m < 0.45) *dv -= 0.2 * h;"),), BOTH, ME),
    # the host
    *life("sets the locale of the user at instantiation", "host.restored host.locale", 'setlocale(LC_ALL, "");'),
    LateMutant("rounds upwards from the third bounce on", "host.restored", (("        s->bounces++;\n", "        if (++s->bounces == 3) fesetround(FE_UPWARD);\n"),)),
    *life("works in another folder until it is freed", "host.restored", 'if (getcwd(b_home, sizeof b_home) && chdir("/")) {}', "if (chdir(b_home)) {}", ((GLOBALS, "static char b_home[4096];\n" + GLOBALS),)),
    *life("a setting of the environment at instantiation", "host.restored", 'setenv("OMP_NUM_THREADS", "1", 1);'),
    *at_end("unsets HOME at the end", "host.restored", 'unsetenv("HOME");'),
    *at_end("a file in the home folder at the end", "host.files life.crash", '{ char p[4096]; FILE *f; snprintf(p, sizeof p, "%s/.ballrc", getenv("HOME") ? getenv("HOME") : "."); f = fopen(p, "w"); if (f) fclose(f); }'),
    *at_end("a datagram at the end", "host.network life.crash", '{ struct sockaddr_in a = {0}; int u = socket(AF_INET, SOCK_DGRAM, 0); a.sin_family = AF_INET; a.sin_port = htons(514); a.sin_addr.s_addr = htonl(0x7f000001); if (u >= 0) { sendto(u, "x", 1, 0, (struct sockaddr *)&a, sizeof a); close(u); } }'),
    *life("a thread that goes on sleeping", "life.leak host.processes life.unload life.crash", "{ pthread_t t; if (!pthread_create(&t, NULL, sleeps, NULL)) pthread_detach(t); }", more=((GLOBALS, "static void *sleeps(void *p) { for (;;) sleep(1); return p; }\n" + GLOBALS),)),
    *life("pins its host to one processor", "host.restored host.system", "{ unsigned long one[16] = {1}; extern int sched_setaffinity(int, size_t, const void *); sched_setaffinity(0, sizeof one, one); }"),
    *life("standard output is sent to nowhere", "host.restored host.output", 'if (freopen("/dev/null", "w", stdout)) {}'),
    # memory
    LateMutant("leaks at each event", "life.leak", (("    int changed = 0;\n", "    int changed = 0;\n    *(volatile char *)malloc(256) = 1;\n"),), BOTH, ME),
    LateMutant("leaks where a kept state is kept again", "life.leak", (("    if (!*state) *state = malloc(sizeof(State));\n    memcpy(*state, &((Ball *)c)->s, sizeof(State));", "    *state = malloc(sizeof(State));\n    memcpy(*state, &((Ball *)c)->s, sizeof(State));"),), (2,)),
    LateMutant("leaks with each size of a state", "life.leak", (("    *size = sizeof(State);\n", "    *size = sizeof(State);\n    *(volatile char *)malloc(128) = 1;\n"),)),
    # inputs in steps
    LateMutant("half a step late, in steps alone", "steps.parts", (CACHE, ("    int left = 100000; /* bounces follow each other ever faster */", "    int left = 100000; const double now = s->wind, from = s->time;\n    if (s->cache_t == 0.0) s->cache = now;\n    s->cache_t = 1.0;"), ("        if (size > 1e-3) size = 1e-3;", "        if (size > 1e-3) size = 1e-3;\n        s->wind = s->mode == STEPPING && s->time < 0.5 * (from + end) ? s->cache : now;"), ("    s->time = end;\n    return 0;", "    s->wind = s->cache = now;\n    s->time = end;\n    return 0;")), BOTH, CS),
    LateMutant("steps below a tenth of a millisecond move nothing", "steps.parts steps.variable steps.exchange", (("    int left = 100000; /* bounces follow each other ever faster */", "    int left = 100000; /* bounces follow each other ever faster */\n    if (s->mode == STEPPING && end - s->time < 1e-4) { s->time = end; return 0; }"),)),
    # dependencies by way of other types
    LateMutant("the label moves the energy", "dependencies.missing", (energy("0.01 * (double)strlen(s->label) - 0.04"),)),
    LateMutant("the shape moves the energy", "dependencies.missing", (energy("s->shape == 2 ? 0.0 : 0.05"),)),
    LateMutant("the bytes move the energy", "dependencies.missing", (energy("s->blob_size == 2 && s->blob[0] == 0xCA ? 0.0 : 0.05"),), (3,)),
    # states
    LateMutant("a kept state is good for once", "state.roundtrip", (("    memcpy(&((Ball *)c)->s, state, sizeof(State));\n", "    memcpy(&((Ball *)c)->s, state, sizeof(State));\n    ((State *)state)->e = 0.5;\n"),), (2,)),
    LateMutant("a kept state is good for once 3", "state.roundtrip", (("    memcpy(&((Unit *)c)->ball.s, state, sizeof(State));\n    return", "    memcpy(&((Unit *)c)->ball.s, state, sizeof(State));\n    ((State *)state)->e = 0.5;\n    return"),), (3,)),
    # events
    LateMutant("the next event is told as a duration", "life.rest exchange.unannounced exchange.next_event", (("info->nextEventTime = b->s.next_tick;", "info->nextEventTime = b->s.next_tick - b->s.time;"),), (2,)),
    LateMutant("the next event is told as a duration 3", "life.rest exchange.unannounced exchange.next_event", (("*time = b->ball.s.next_tick;", "*time = b->ball.s.next_tick - b->ball.s.time;"),), (3,)),
    LateMutant("needs completed steps, and says not", "exchange.chatter steps.exchange exchange.unannounced flags.true exchange.completed life.rest", (("    (void)c, (void)no;\n    *event = *end = fmi2False;", "    (void)no;\n    ((Ball *)c)->s.blob[7] = 1;\n    *event = *end = fmi2False;"), ("if (!s->resting && s->h <= 1e-9", "if ((s->mode == STEPPING || s->blob[7]) && !s->resting && s->h <= 1e-9")), (2,)),
    LateMutant("needs completed steps, and does not say so", "flags.true", (("    (void)c, (void)no;\n    *event = *end = fmi3False;", "    (void)no;\n    ((Unit *)c)->ball.s.blob[7] = 1;\n    *event = *end = fmi3False;"), ("if (!s->resting && s->h <= 1e-9", "if ((s->mode == STEPPING || s->blob[7]) && !s->resting && s->h <= 1e-9")), (3,)),
    LateMutant("the time is a float", "exchange.time value.time", (("fmi2Status fmi2SetTime(fmi2Component c, fmi2Real time) { ((Ball *)c)->s.time = time;", "fmi2Status fmi2SetTime(fmi2Component c, fmi2Real time) { ((Ball *)c)->s.time = (float)time;"),), (2,), ME),
    LateMutant("slopes of outputs are of the other sign after a bounce", "steps.output_derivatives", (("vr[i] == HEIGHT_TWICE ? 2.0 * dh :", "vr[i] == HEIGHT_TWICE ? (b->s.bounces > 1 ? -2.0 : 2.0) * dh :"),), (2,), CS),
    # texts, bytes, items
    LateMutant("a text loses its last blank", "value.set", (('        snprintf(b->s.label, sizeof b->s.label, "%s", value[i]);\n', '        snprintf(b->s.label, sizeof b->s.label, "%s", value[i]);\n        { size_t k = strlen(b->s.label); while (k && b->s.label[k - 1] == 32) b->s.label[--k] = 0; }\n'),), (2,)),
    LateMutant("bytes above 127 are cut", "value.set", (("        memcpy(b->ball.s.blob, value[i], sizes[i]);\n", "        { size_t k; for (k = 0; k < sizes[i]; ++k) b->ball.s.blob[k] = s_known(value[i], sizes[i]) ? value[i][k] : value[i][k] & 0x7f; }\n"), (GLOBALS, "static int s_known(const unsigned char *v, size_t n) { return n == 2 && v[0] == 0xCA; }\n" + GLOBALS)), (3,)),
    LateMutant("the item changes after the second tick", "value.variability value.items", ((TICK, TICK + "        if (s->ticks == 2) s->shape = 3 - s->shape;\n"),)),
    # updates
    LateMutant("no callback for updates, and it is called", "life.crash", (("        if (b->update) {", "        {"),), (3,), CS),
    LateMutant("an update at the end of the initialization", "steps.intermediate", (("    b->ball.s.mode = b->ball.exchange ? EVENT : STEPPING;\n", "    b->ball.s.mode = b->ball.exchange ? EVENT : STEPPING;\n    if (b->update) { fmi3Boolean asked = fmi3False; fmi3Float64 until = 0.0; b->update(b->ball.environment, b->ball.s.time, fmi3False, fmi3True, fmi3True, fmi3False, &asked, &until); }\n"),), (3,), CS),
    # what it says of itself
    LateMutant("orders that it has not", "steps.output_derivatives", (), (2,), description=(('maxOutputDerivativeOrder="1"', 'maxOutputDerivativeOrder="2"'),)),
    LateMutant("evaluates discrete states, it says", "flags.true life.calls", (), (3,), description=(('<ModelExchange modelIdentifier="ball"', '<ModelExchange modelIdentifier="ball" providesEvaluateDiscreteStates="true"'),)),
    LateMutant("no indicators, it says", "life.calls exchange.count exchange.unannounced", (), (2,), description=(('numberOfEventIndicators="1"', 'numberOfEventIndicators="0"'),)),
    LateMutant("per-element dependencies of nothing", "flags.true", (), (3,), description=(('<CoSimulation modelIdentifier="ball"', '<CoSimulation modelIdentifier="ball" providesPerElementDependencies="true"'),)),
    # globals of C
    LateMutant("a gust by chance", "life.several life.repeat life.threads value.pure", (("    s->shape = 2;\n", "    s->shape = 2;\n    srand(1);\n"), ("static void ball_rk4(State *s, double size)\n{\n", "static void ball_rk4(State *s, double size)\n{\n    if (s->mode == STEPPING) s->v += 1e-5 * (rand() % 100 - 50);\n")), BOTH, CS),
    LateMutant("moves otherwise while it logs", "log.setting log.disabled life.repeat", (("    if (ball_advance(&b->s, point + size)) {", "    if (b->logging) b->s.v *= 1.001;\n    if (ball_advance(&b->s, point + size)) {"),), (2,), CS),
    *life("a handler at the end of the process", "life.unload life.crash life.leak", "on_exit(said, NULL);", more=((GLOBALS, "static void said(int k, void *p) { volatile int n = 0; for (; n < 3; ++n) {} (void)k, (void)p; }\n" + GLOBALS), ("#include <fenv.h>\n", "#define _GNU_SOURCE\n#include <fenv.h>\n"))),
    # FMUs
    *[LateMutant(name, "units.exponents", (), (2, 3), description=(("</UnitDefinitions>", f'<Unit name="{unit}"><BaseUnit {base}/></Unit></UnitDefinitions>'), ('unit="kg" min="1e-3"', f'unit="{unit}" min="1e-3"')))
      for name, unit, base in (("kilowatt-hours of 3600 J", "kW.h", 'kg="1" m="2" s="-2" factor="3600"'), ("bars of 1e4 Pa", "bar", 'kg="1" m="-1" s="-2" factor="1e4"'), ("kilometres an hour the other way", "km/h", 'm="1" s="-1" factor="3.6"'), ("square millimetres by 1e-3", "mm2", 'm="2" factor="1e-3"'), ("turns a minute of 1 rad/s", "rev/min", 'rad="1" s="-1"'))],
]

SAMPLER = [
    LateMutant("sampler: what is counted depends on nothing", "dependencies.missing structure.clocked", (), (3,), description=(('<Output valueReference="9" dependencies="10"/>', '<Output valueReference="9" dependencies=""/>'), ('<ClockedState valueReference="9" dependencies="10"/>', '<ClockedState valueReference="9" dependencies=""/>'))),
    LateMutant("sampler: counts more where x is large", "dependencies.missing", (("        s->count++;\n", "        s->count += s->x > 0.7 ? 2 : 1;\n"),), (3,)),
    LateMutant("sampler: the level moves y", "dependencies.missing", (("S->gain[j] * S->u[j] + S->x;", "S->gain[j] * S->u[j] + S->x + 0.01 * (S->level + 3);"),), (3,)),
    LateMutant("sampler: the switch moves x", "dependencies.missing", (("    double sum = s->c - s->x;", "    double sum = s->c - s->x - (s->on ? 0.0 : 0.1);"),), (3,)),
    LateMutant("sampler: the name moves what is sampled", "dependencies.missing", (("        s->sampled = s->x;", "        s->sampled = s->x + 0.01 * ((double)strlen(s->name) - 7.0);"),), (3,)),
    LateMutant("sampler: gains are taken only with a new first one", "value.set", (("case GAIN: for (j = 0; j < S->n; ++j) S->gain[j] = value[k++];", "case GAIN: if (value[k] == S->gain[0]) { k += S->n; break; } for (j = 0; j < S->n; ++j) S->gain[j] = value[k++];"),), (3,)),
    LateMutant("sampler: a tick is lost while x is high", "clock.ticks clock.previous", (("    if (s->tick) {", "    if (s->tick && s->x < 0.8) {"),), (3,)),
    LateMutant("sampler: the interval is another one after the third tick", "clock.interval", (("v[i] = 0.1; q[i]", "v[i] = S->count > 2 ? 0.11 : 0.1; q[i]"),), (3,)),
    LateMutant("sampler: the text is lost with the size", "value.structural value.set life.order", (("S->n = value[i]; break; case LARGE", 'S->n = value[i]; strcpy(S->name, ""); break; case LARGE'),), (3,)),
]
