/* ball.h: a ball in the wind that bounces: what the units of both FMI versions share. Written by hand, as another maker
 * would: nothing in it comes from this project's code generator.
 *
 *   h' = v,  v' = -g + c (wind - v) / m;   h = 0 with v < 0:  v := -e v, one more bounce
 *
 * A clock ticks every half second (a time event); the ball rests once it is too slow to leave the ground.
 */
#include <fenv.h>
#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#if defined(__x86_64__)
#define FLUSH_TO_ZERO __builtin_ia32_ldmxcsr(__builtin_ia32_stmxcsr() | 0x8040)
#else
#define FLUSH_TO_ZERO { unsigned long mode; __asm__("mrs %0, fpcr" : "=r"(mode)); __asm__("msr fpcr, %0" : : "r"(mode | 1ul << 24)); }
#endif

enum { TIME, H, V, DER_H, DER_V, G, E, M, C, WEIGHT, WIND, ENERGY, HEIGHT_TWICE, BOUNCES, TICKS, RESTING, LABEL, SHAPE, POSITION, BLOB, GAP, COUNT };
enum { INSTANTIATED, INITIALIZING, EVENT, CONTINUOUS, STEPPING, TERMINATED };

typedef struct {
    double time, h, v, g, e, m, c, wind, next_tick, start, stop;
    int bounces, ticks, resting, shape, mode, has_stop;
    char label[64];
    unsigned char blob[8];
    size_t blob_size;
} State;

typedef struct {
    State s;
    int exchange, logging;
    void *environment;
    void *logger;
    char name[128];
    double previous_indicator;
} Ball;

#define PERIOD 0.5

static void ball_start(State *s)
{
    memset(s, 0, sizeof *s);
    s->h = 1.0;
    s->g = 9.81;
    s->e = 0.7;
    s->m = 0.5;
    s->c = 0.1;
    s->shape = 2;
    s->next_tick = PERIOD;
    s->mode = INSTANTIATED;
    strcpy(s->label, "ball");
    memcpy(s->blob, "\xCA\xFE", 2);
    s->blob_size = 2;
}

static void ball_slopes(const State *s, double h, double v, double *dh, double *dv)
{
    (void)h;
    *dh = s->resting ? 0.0 : v;
    *dv = s->resting ? 0.0 : -s->g + s->c * (s->wind - v) / s->m;
}

static double ball_indicator(const State *s)
{
    return s->resting ? 1.0 : s->h + (s->v > 0.0 ? 1e-9 : 0.0);
}

/* At an event: whether states changed. */
static int ball_event(State *s)
{
    int changed = 0;
    if (!s->resting && s->h <= 1e-9 && s->v < 0.0) {
        s->h = 0.0;
        s->v = -s->e * s->v;
        s->bounces++;
        if (s->v < 1e-3) {
            s->v = 0.0;
            s->resting = 1;
        }
        changed = 1;
    }
    if (s->time >= s->next_tick - 1e-12) {
        s->ticks++;
        s->next_tick += PERIOD;
    }
    return changed;
}

static void ball_rk4(State *s, double size)
{
    double a, b, c, d, p, q, r, t;
    ball_slopes(s, s->h, s->v, &a, &p);
    ball_slopes(s, s->h + 0.5 * size * a, s->v + 0.5 * size * p, &b, &q);
    ball_slopes(s, s->h + 0.5 * size * b, s->v + 0.5 * size * q, &c, &r);
    ball_slopes(s, s->h + size * c, s->v + size * r, &d, &t);
    s->h += size / 6.0 * (a + 2.0 * b + 2.0 * c + d);
    s->v += size / 6.0 * (p + 2.0 * q + 2.0 * r + t);
    s->time += size;
}

/* To a time; 0 if that went well. */
static int ball_advance(State *s, double end)
{
    int left = 100000; /* bounces follow each other ever faster */
    while (s->time < end - 1e-12) {
        double size = end - s->time;
        State before = *s;
        if (size > 1e-3) size = 1e-3;
        if (s->next_tick - s->time > 1e-12 && s->next_tick - s->time < size) size = s->next_tick - s->time;
        ball_rk4(s, size);
        if (s->h < 0.0 && s->v < 0.0) {
            double low = 0.0, high = size;
            int i;
            for (i = 0; i < 60; ++i) {
                double middle = 0.5 * (low + high);
                *s = before;
                ball_rk4(s, middle);
                if (s->h < 0.0 && s->v < 0.0) high = middle; else low = middle;
            }
            *s = before;
            ball_rk4(s, high);
        }
        if (!isfinite(s->h) || !isfinite(s->v) || --left == 0) return 1;
        ball_event(s);
    }
    s->time = end;
    return 0;
}

/* 0 if there is such a variable and it is a finite number. */
static int ball_get(const State *s, unsigned reference, double *value)
{
    double dh, dv;
    ball_slopes(s, s->h, s->v, &dh, &dv);
    switch (reference) {
    case TIME: *value = s->time; break;
    case H: *value = s->h; break;
    case V: *value = s->v; break;
    case DER_H: *value = dh; break;
    case DER_V: *value = dv; break;
    case G: *value = s->g; break;
    case E: *value = s->e; break;
    case M: *value = s->m; break;
    case C: *value = s->c; break;
    case WEIGHT: *value = s->m * s->g; break;
    case WIND: *value = s->wind; break;
    case ENERGY: *value = s->m * (s->g * s->h + 0.5 * s->v * s->v); break;
    case HEIGHT_TWICE: *value = 2.0 * s->h; break;
    case GAP: *value = ball_indicator(s); break;
    default: return 1;
    }
    return !isfinite(*value);
}

static int ball_set(State *s, unsigned reference, double value)
{
    const int starting = s->mode == INSTANTIATED || s->mode == INITIALIZING;
    if (!isfinite(value)) return 1;
    switch (reference) {
    case WIND: s->wind = value; return 0;
    case E: s->e = value; return 0;
    case C: s->c = value; return 0;
    case H: if (starting) s->h = value; return !starting;
    case V: if (starting) s->v = value; return !starting;
    case G: if (starting) s->g = value; return !starting;
    case M: if (starting && value > 0.0) s->m = value; return !(starting && value > 0.0);
    default: return 1;
    }
}

/* d(unknown)/d(known) at the present point; 0 if both are known to it. */
static int ball_partial(const State *s, unsigned unknown, unsigned known, double *value)
{
    const double moving = s->resting ? 0.0 : 1.0;
    *value = 0.0;
    if (known != H && known != V && known != WIND && known != G && known != M && known != C && known != E) return 1;
    switch (unknown) {
    case H: *value = known == H; return 0;
    case V: *value = known == V; return 0;
    case DER_H: *value = known == V ? moving : 0.0; return 0;
    case DER_V:
        if (known == V) *value = -moving * s->c / s->m;
        if (known == WIND) *value = moving * s->c / s->m;
        if (known == G) *value = -moving;
        if (known == C) *value = moving * (s->wind - s->v) / s->m;
        if (known == M) *value = -moving * s->c * (s->wind - s->v) / (s->m * s->m);
        return 0;
    case ENERGY:
        if (known == H) *value = s->m * s->g;
        if (known == V) *value = s->m * s->v;
        if (known == G) *value = s->m * s->h;
        if (known == M) *value = s->g * s->h + 0.5 * s->v * s->v;
        return 0;
    case HEIGHT_TWICE: *value = known == H ? 2.0 : 0.0; return 0;
    case WEIGHT:
        if (known == G) *value = s->m;
        if (known == M) *value = s->g;
        return 0;
    default: return 1;
    }
}
