"""Faults written down on 2026-11-26: ends of types, seeds, bytes, sizes, other clocks, and what a host has of its own."""

# ruff: noqa: E501  one mutant, one line
# fmt: off

from __future__ import annotations

from late_mutants import CS, ME, TICK, Edits, LateMutant, cached

BOTH = (*ME, *CS)


def _ball(name: str, rules: str, *edits: tuple[str, str], v: tuple[int, ...] = (2, 3), k: tuple[str, ...] = BOTH, d: Edits = ()) -> LateMutant:
    """A fault of the ball, in some versions and interfaces; an edit of its description alone leaves the code."""
    return LateMutant(name, rules, edits or ((TICK, TICK),), v, k, d)


BEGIN = "static void ball_start(State *s)\n{\n"


def _at_start(code: str) -> tuple[str, str]:
    """Something that is done wherever values of the start are set."""
    return BEGIN, f"{BEGIN}    {code}\n"


BALL = [
    _ball("states exchanged once it has bounced","exchange.states exchange.values_changed", ("    x[0] = b->ball.s.h;\n    x[1] = b->ball.s.v;","    x[b->ball.s.bounces > 0] = b->ball.s.h;\n    x[b->ball.s.bounces == 0] = b->ball.s.v;"), v=(3,), k=ME),
    _ball("a nominal value is negative after the second tick","exchange.nominals exchange.nominals_changed", ("while (n--) x[n] = 1.0;","while (n--) x[n] = ((Ball *)c)->s.ticks > 1 ? -1.0 : 1.0;"), k=ME),
    _ball("a second indicator is written after a bounce","life.writes", ("    z[0] = ball_indicator(&b->ball.s);","    z[0] = ball_indicator(&b->ball.s);\n    if (b->ball.s.bounces) z[1] = 0.0;"), v=(3,), k=ME),
    _ball("a seed's sign is lost","partials.directional", ("out[i] += d * seed[j];","out[i] += d * fabs(seed[j]);"), v=(3,)),
    _ball("an adjoint seed's sign is lost","partials.adjoint", ("out[j] += seed[i] * d;","out[j] += fabs(seed[i]) * d;"), v=(3,)),
    _ball("partials have an offset where nothing is sown","partials.directional", ("        out[i] = 0.0;\n        for (j = 0; j < nk; ++j) {","        out[i] = 0.0;\n        for (j = 0; j < nk; ++j) if (seed[j] == 0.0) out[i] += 1e-2;\n        for (j = 0; j < nk; ++j) {"), v=(3,)),
    _ball("the weight's partials are exchanged","partials.directional", ("        if (known == G) *value = s->m;\n        if (known == M) *value = s->g;","        if (known == M) *value = s->m;\n        if (known == G) *value = s->g;")),
    _ball("a text loses its capitals","value.set", ("    return !isfinite(*value);\n}\n\nstatic int ball_set","    return !isfinite(*value);\n}\n#define strlower(t) do { char *p_ = (t); for (; *p_; ++p_) if (*p_ >= 65 && *p_ <= 90) *p_ += 32; } while (0)\n\nstatic int ball_set"), ('        snprintf(b->ball.s.label, sizeof b->ball.s.label, "%s", value[i]);','        snprintf(b->ball.s.label, sizeof b->ball.s.label, "%s", value[i]);\n        strlower(b->ball.s.label);'), v=(3,)),
    _ball("one label for all","life.several life.threads", ("static int ball_set",'static char common[64] = "ball";\n\nstatic int ball_set'), ('        snprintf(b->ball.s.label, sizeof b->ball.s.label, "%s", value[i]);','        snprintf(common, sizeof common, "%s", value[i]);'), ("        value[i] = b->ball.s.label;","        value[i] = common;"), v=(3,)),
    _ball("bytes of length zero leave the old ones","value.set", ("NEED(vr[i] == BLOB &&","if (sizes[i] == 0) continue;\n        NEED(vr[i] == BLOB &&"), v=(3,)),
    _ball("a reset is refused in Initialization Mode","life.reset life.order life.calls", (" { ball_start(&((Ball *)c)->s); return fmi2OK; }"," { if (((Ball *)c)->s.mode == INITIALIZING) return fmi2Error; ball_start(&((Ball *)c)->s); return fmi2OK; }"), v=(2,)),
    _ball("a reset is refused in Initialization Mode 3","life.reset life.order life.calls", (" { ball_start(&((Unit *)c)->ball.s); return fmi3OK; }"," { if (((Unit *)c)->ball.s.mode == INITIALIZING) return fmi3Error; ball_start(&((Unit *)c)->ball.s); return fmi3OK; }"), v=(3,)),
    _ball("a child that ends says nothing to its host any more","host.restored",_at_start("signal(SIGCHLD, SIG_IGN);")),
    _ball("a pipe that breaks is no matter for its host any more","host.restored",_at_start("signal(SIGPIPE, SIG_IGN);")),
    _ball("its host gets less of the processor","host.restored host.system",_at_start("{ extern int nice(int); nice(5); }")),
    _ball("extended precision is taken from its host","host.restored",_at_start('#if defined(__x86_64__)\n    { unsigned short w; __asm__ volatile("fnstcw %0" : "=m"(w)); w = (w & ~0x300) | 0x200; __asm__ volatile("fldcw %0" : : "m"(w)); }\n#endif')),
    _ball("threads of its host cannot be cancelled","host.restored",_at_start("{ extern int pthread_setcancelstate(int, int *); pthread_setcancelstate(1, 0); }")),
    _ball("a tick lifts the ball by a micrometre in silence","exchange.values_changed", (TICK,TICK+"        s->h += 1e-6;\n")),
    _ball("energy of before the event in Event Mode","exchange.pure value.stale value.order",*cached("s->mode != EVENT"), k=ME),
    _ball("the thirteenth of a call is the first","value.order", ("for (i = 0; i < n; ++i) NEED(!ball_get(&b->s, vr[i], &value[i]),","for (i = 0; i < n; ++i) NEED(!ball_get(&b->s, vr[i == 12 ? 0 : i], &value[i]),"), v=(2,)),
    _ball("long steps lose speed","steps.parts steps.exchange", ("static int ball_advance(State *s, double end)\n{\n","static int ball_advance(State *s, double end)\n{\n    if (s->mode == STEPPING && end - s->time > 0.06) s->v *= 0.9;\n"), k=CS),
    _ball("long steps lose speed, both","steps.parts steps.exchange", ("static int ball_advance(State *s, double end)\n{\n","static int ball_advance(State *s, double end)\n{\n    if (s->mode == STEPPING && end - s->time > 0.06) s->v *= 0.9;\n")),
    _ball("slopes of outputs are those of the first for all","steps.output_derivatives", ("value[i] = vr[i] == H ? dh :","value[i] = vr[0] == H ? dh :"), v=(2,)),
    _ball("no more than two bounces are said 3","value.bounds",d=(('start="0"/>\n<Int32 name="ticks"','start="0" max="2"/>\n<Int32 name="ticks"'),), v=(3,)),
    _ball("no more than two bounces are said","value.bounds",d=(('<Integer start="0"/></ScalarVariable>\n<ScalarVariable name="ticks"','<Integer start="0" max="2"/></ScalarVariable>\n<ScalarVariable name="ticks"'),), v=(2,)),
    _ball("it rests at the start, it says","value.start",d=(('<Boolean start="false"/>','<Boolean start="true"/>'),), v=(2,)),
    _ball("an egg that is said to be round","value.start",d=(('declaredType="Shape" start="2"','declaredType="Shape" start="1"'),)),
    _ball("gravity that is tunable, it says","value.tunable value.set life.calls life.order",d=(('name="g" valueReference="5" causality="parameter" variability="fixed"','name="g" valueReference="5" causality="parameter" variability="tunable"'),)),
    _ball("a count that is fixed, it says","value.variability",d=(('name="ticks" valueReference="14" causality="local" variability="discrete" initial="exact"','name="ticks" valueReference="14" causality="local" variability="fixed" initial="exact"'),)),
]

def _sampler(name: str, rules: str, *edits: tuple[str, str], d: Edits = ()) -> LateMutant:
    """A fault of the sampler."""
    return LateMutant(f"sampler: {name}", rules, edits or (("#define MOST 8", "#define MOST 8"),), (3,), BOTH, d)


SAMPLER = [
    _sampler("a second tick at one instant is lost","clock.ticks clock.previous", ("    double time, x, gain","    double last_tick;\n    double time, x, gain"), ("    if (s->tick) {\n","    if (s->tick && s->count && s->last_tick == s->time) s->tick = 0;\n    if (s->tick) {\n        s->last_tick = s->time;\n")),
    _sampler("a kept state lacks the last element","state.roundtrip state.serialize", ("memcpy(S, state, sizeof(State)); return fmi3OK;","{ double kept = S->u[2]; memcpy(S, state, sizeof(State)); S->u[2] = kept; } return fmi3OK;")),
    _sampler("63 bits of 64","value.set", ("case LARGE: S->large = value[i]; break;","case LARGE: S->large = value[i] & ~(1ull << 63); break;")),
    _sampler("the smallest of 8 bits is one more","value.set", ("case LEVEL: S->level = value[i]; break;","case LEVEL: S->level = value[i] == -128 ? -127 : value[i]; break;")),
    _sampler("small single numbers are zero","value.set", ("S->single = value[i];","S->single = fabsf(value[i]) < 1e-3f ? 0.0f : value[i];")),
    _sampler("letters of other alphabets are left out","value.set value.text", ("strcpy(S->name, value[i]);","{ const char *p = value[i]; char *o = S->name; for (; *p; ++p) if (!(*p & 0x80)) *o++ = *p; *o = 0; }")),
    _sampler("an odd number of bytes loses the last","value.set", ("        S->blob_size = sizes[i];","        S->blob_size = sizes[i] & ~(size_t)1;"), ('memcpy(s->blob, "\\x01\\x02\\x03", 3);','memcpy(s->blob, "\\x01\\x02\\x03", 3);')),
    _sampler("fewer bytes leave the old length","value.set", ("        S->blob_size = sizes[i];","        if (sizes[i] > S->blob_size) S->blob_size = sizes[i];")),
    _sampler("one name for all","life.several life.threads", ("#define SCALARS(TYPE, ...)",'static char common[32] = "sampler";\n#define SCALARS(TYPE, ...)'), ("strcpy(S->name, value[i]);","strcpy(common, value[i]);"), ("value[i] = S->name;","value[i] = common;")),
    _sampler("bytes of the instance that was set last","life.several life.threads", ("#define SCALARS(TYPE, ...)","static unsigned char common[16] = {1, 2, 3};\n#define SCALARS(TYPE, ...)"), ("memcpy(S->blob, value[i], sizes[i]);","memcpy(common, value[i], sizes[i]);"), ("value[i] = S->blob;","value[i] = common;")),
    _sampler("a single element is not taken","value.structural value.element value.set", ("case U: for (j = 0; j < S->n; ++j) S->u[j] = value[k++]; break;","case U: for (j = 0; j < S->n; ++j) { if (S->n > 1) S->u[j] = value[k]; k++; } break;")),
    _sampler("Configuration Mode once only","life.order value.structural", ("    int on, state, tick, fifth;","    int on, state, tick, fifth, configured;"), ('    NEED(S->state == INSTANTIATED, "wrong mode");\n    S->state = CONFIGURING;','    NEED(S->state == INSTANTIATED && !S->configured, "wrong mode");\n    S->configured = 1;\n    S->state = CONFIGURING;')),
    _sampler("bytes of a state lack the name","state.serialize", ("    memcpy(data, state, size);\n","    memcpy(data, state, size);\n    memset(((State *)data)->name, 0, 32);\n")),
    _sampler("a reset counts on","life.reset life.order", ("fmi3Status fmi3Reset(fmi3Instance c) { begin(S);","fmi3Status fmi3Reset(fmi3Instance c) { int kept = S->count; begin(S); S->count = kept;")),
    _sampler("twice the interval, it says","clock.interval",d=(('intervalDecimal="0.1"','intervalDecimal="0.2"'),)),
    _sampler("sampled by the clock that is told, it says","clock.ticks",d=(('initial="calculated" clocks="7"/>','initial="calculated" clocks="11"/>'),)),
    _sampler("gains are three, it says","value.structural life.calls value.order",d=(('start="2"><Dimension valueReference="1"/>','start="2 2 2"><Dimension start="3"/>'),)),
    _sampler("what was before is the same variable, it says","variables.clocks structure.clocked variables.previous clock.previous xml.schema",d=(('clocks="7" previous="10"','clocks="7" previous="9"'),)),
    _sampler("17 bits in 16, it says","variables.start_type xml.schema",d=(('start="40000"','start="70000"'),)),
    _sampler("a single number beyond all, it says","variables.start_type xml.schema",d=(('start="0.25"','start="1e60"'),)),
    _sampler("65 bits in 64, it says","variables.start_type xml.schema",d=(('start="1152921504606846976"','start="18446744073709551616"'),)),
    _sampler("at most two bytes, it says, and has three","variables.start_bounds variables.start_type value.bounds xml.schema",d=(('mimeType="application/octet-stream"','mimeType="application/octet-stream" maxSize="2"'),)),
    _sampler("other bytes at the start, it says","value.start",d=(('<Start value="010203"/>','<Start value="010204"/>'),)),
    _sampler("another switch at the start, it says","value.start",d=(('causality="input" start="true"','causality="input" start="false"'),)),
]
