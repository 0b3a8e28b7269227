#include "contacts.h"

#include "contact_modes.h"
#include "dense.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define ON 0.5                      /* a mode is on above this */
#define OPENING 0.25                /* state of a contact that leaves */
#define REIMPACT_SPEED 1e-3         /* of the speed below which a contact rests */
#define ZERO_SLIP 1e-6              /* of the same */
#define APPROACH_START 1e-9         /* of the same: an approach that only begins */
#define SPEED_MARGIN 1e-15
#define SMALLEST_IMPULSE 1e-300
#define SINGULAR_PART 1e-10
#define SURELY_PRESSED 1e-9         /* of the rates: what is pressed less may as well be open */

/* Everything at one instant; n = k + f. */
struct instant {
    int64_t k;
    int64_t f;
    int64_t n;
    double *W;             /* what a force along each line changes the rates by, shape (n, n) */
    double *state_effects; /* and the states, shape (n_x, n) */
    double *x_dot;         /* without forces, shape (n_x,) */
    double *base;          /* rates of the lines without forces, shape (n,) */
    double *kept;          /* modes of switches and values that hold, shape (switches + n,) */
    double *contacts;      /* seven quantities of each contact, then five of each friction */
    double *v;             /* rates, shape (n,) */
    double *e;             /* coefficients of restitution now, shape (k,) */
    double *minimum;       /* shape (k,) */
    double *known;         /* shape (f,) */
    double *impulses;      /* of impacts, shape (n,) */
    double *speeding;      /* of changes of modes, shape (n,) */
    double *rests;         /* after impacts, shape (k,) */
    double *slides;        /* after impacts, shape (f,) */
    double *rests_on;      /* after changes of modes, shape (k,) */
    double *slides_on;     /* after changes of modes, shape (f,) */
    struct contact_solution found;
    struct contact_solution other;
    struct contact_modes before;
    int64_t *present; /* shape (k,) */
    double *numbers;
    int64_t *integers;
};

enum quantity { ACCELERATION, RATE, RESTITUTION, REST_BELOW, CLOSED, RESTING, APPROACHING, QUANTITIES };
enum slip_quantity { SLIP_RATE, SLIP, THRESHOLD, COEFFICIENT, SLIDING, SLIP_QUANTITIES };

static const double *of_contacts(const struct instant *s, enum quantity quantity)
{
    return s->contacts + quantity * s->k;
}

static const double *of_frictions(const struct instant *s, enum slip_quantity quantity)
{
    return s->contacts + QUANTITIES * s->k + quantity * s->f;
}

/* The sense of slip before. */
static double sense_of(const struct instant *s, int64_t j)
{
    const double sliding = of_frictions(s, SLIDING)[j];
    return fabs(sliding) > ON ? copysign(1.0, sliding) : 0.0;
}

void hold_contacts(struct modes *m, const struct contacts *c, const double x[])
{
    for (int64_t line = 0; line < c->count + c->frictions; line++) {
        const int64_t friction = line - c->count;
        const int64_t contact = friction < 0 ? line : c->rough[friction];
        if (x[c->resting[contact]] > ON && (friction < 0 || fabs(x[c->sliding[friction]]) < ON)) {
            m->held[m->held_count++] = m->switches + line;
        }
    }
}

double speed_of_line(const struct modes *m, const struct contacts *c, int64_t line)
{
    const int64_t place = line < c->count ? RATE * c->count + line
                                          : QUANTITIES * c->count + SLIP * c->frictions + line - c->count;
    return m->outputs[c->first + place];
}

static double *take(double **memory, int64_t count)
{
    double *taken = *memory;
    *memory += count;
    return taken;
}

static int64_t *take_integers(int64_t **memory, int64_t count)
{
    int64_t *taken = *memory;
    *memory += count;
    return taken;
}

static struct contact_solution take_solution(const struct instant *s, double **numbers, int64_t **integers)
{
    double *forces = take(numbers, s->n);
    double *y = take(numbers, s->n);
    const struct contact_modes modes = {
        take_integers(integers, s->k), take_integers(integers, s->f), take(numbers, s->f)};
    return (struct contact_solution){modes, forces, y};
}

/* Memory, zeros, which the caller frees: ``W`` and ``present`` are its beginnings. Returns NO_MEMORY or OK. */
static int begin_instant(struct instant *s, int64_t n_x, int64_t switches)
{
    const int64_t n = s->n;
    const int64_t most = n * n + (n_x + 27) * n + n_x + switches + CONTACT_NUMBERS(n);
    double *numbers = (double *)calloc((size_t)most, sizeof(double));
    int64_t *integers = (int64_t *)calloc((size_t)(4 * n + CONTACT_INTEGERS(n)), sizeof(int64_t));
    s->W = numbers;
    s->present = integers;
    if (!numbers || !integers) {
        return NO_MEMORY;
    }
    numbers += n * n;
    integers += s->k;
    s->state_effects = take(&numbers, n_x * n);
    s->x_dot = take(&numbers, n_x);
    s->base = take(&numbers, n);
    s->kept = take(&numbers, switches + n);
    s->contacts = take(&numbers, QUANTITIES * s->k + SLIP_QUANTITIES * s->f);
    s->v = take(&numbers, n);
    s->impulses = take(&numbers, n);
    s->speeding = take(&numbers, n);
    s->e = take(&numbers, s->k);
    s->minimum = take(&numbers, s->k);
    s->rests = take(&numbers, s->k);
    s->rests_on = take(&numbers, s->k);
    s->known = take(&numbers, s->f);
    s->slides = take(&numbers, s->f);
    s->slides_on = take(&numbers, s->f);
    s->found = take_solution(s, &numbers, &integers);
    s->other = take_solution(s, &numbers, &integers);
    s->before = (struct contact_modes){take_integers(&integers, s->k), NULL, take(&numbers, s->f)};
    s->numbers = numbers;
    s->integers = integers;
    return OK;
}

/* W and the effects on the states, by trying the force along each line alone beside none. */
static int measure_effects(struct equations *e, struct modes *m, const struct contacts *c, struct instant *s, double t,
    const double x[], const double p[])
{
    const int64_t n = s->n;
    const int64_t n_x = states_of(e);
    const int64_t *rates = m->rates + m->switches;
    double wanted = 1.0;
    int status = observe_in_modes(e, m, t, x, p, s->x_dot);
    for (int64_t i = 0; i < n; i++) {
        s->base[i] = m->outputs[rates[i]];
        wanted = fmax(wanted, fabs(s->base[i]));
    }
    memcpy(s->contacts, m->outputs + c->first, (size_t)(QUANTITIES * s->k + SLIP_QUANTITIES * s->f) * sizeof(double));
    for (int64_t j = 0; j < n; j++) {
        double *force = m->r + m->inputs + m->switches + j;
        double *probe = m->probes + m->switches + j;
        int settled = 0;
        for (int trial = 0; trial < PROBE_TRIALS && !settled && status == OK; trial++) {
            *force = *probe;
            status = observe_in_modes(e, m, t, x, p, m->x_dot);
            settled = is_comparable(probe, fabs(m->outputs[rates[j]] - s->base[j]), wanted);
        }
        for (int64_t i = 0; i < n; i++) {
            s->W[i * n + j] = (m->outputs[rates[i]] - s->base[i]) / *force;
        }
        for (int64_t i = 0; i < n_x; i++) {
            s->state_effects[i * n + j] = (m->x_dot[i] - s->x_dot[i]) / *force;
        }
        *force = 0.0;
    }
    if (status != OK) {
        return status;
    }
    const int64_t quantities = QUANTITIES * s->k + SLIP_QUANTITIES * s->f;
    return all_finite(n * n, s->W) && all_finite(n, s->base) && all_finite(quantities, s->contacts) ? OK : UNSOLVED;
}

/* A normal force has the friction of what slides in it: W and the effects become those of the lines alone. */
static void separate_frictions(const struct contacts *c, struct instant *s, int64_t n_x)
{
    for (int64_t j = 0; j < s->f; j++) {
        const double share = of_frictions(s, COEFFICIENT)[j] * sense_of(s, j);
        for (int64_t i = 0; i < s->n; i++) {
            s->W[i * s->n + c->rough[j]] += share * s->W[i * s->n + s->k + j];
        }
        for (int64_t i = 0; i < n_x; i++) {
            s->state_effects[i * s->n + c->rough[j]] += share * s->state_effects[i * s->n + s->k + j];
        }
    }
}

/* Rates of gaps and slip before; of what is known to approach, at most just below where it is an impact. */
static void set_approach_rates(struct instant *s)
{
    memcpy(s->v, of_contacts(s, RATE), (size_t)s->k * sizeof(double));
    memcpy(s->v + s->k, of_frictions(s, SLIP), (size_t)s->f * sizeof(double));
    for (int64_t i = 0; i < s->k; i++) {
        const double reimpact = -REIMPACT_SPEED * of_contacts(s, REST_BELOW)[i] * of_contacts(s, RESTING)[i];
        if (of_contacts(s, APPROACHING)[i] > ON) {
            s->v[i] = fmin(s->v[i], reimpact * (1.0 + SPEED_MARGIN) - SMALLEST_IMPULSE);
        }
    }
}

static int comes_to_rest(const struct instant *s, int64_t i)
{
    return -of_contacts(s, RESTITUTION)[i] * s->v[i] < of_contacts(s, REST_BELOW)[i];
}

static int is_approaching(const struct instant *s, int64_t i)
{
    return s->v[i] < -REIMPACT_SPEED * of_contacts(s, REST_BELOW)[i] * of_contacts(s, RESTING)[i];
}

static struct contact_problem problem_of(const struct contacts *c, const struct instant *s)
{
    return (struct contact_problem){
        .contacts = s->k, .frictions = s->f, .rough = c->rough, .W = s->W, .q = s->v,
        .mu = of_frictions(s, COEFFICIENT), .minimum = s->minimum, .known = s->known, .present = s->present};
}

/* Impulses of what is present, by Newton's or Poisson's law, in ``found``; the coefficients are in s->e. */
static int solve_impact(const struct contacts *c, struct instant *s)
{
    struct contact_problem problem = problem_of(c, s);
    const struct contact_solution compression = s->other;
    int64_t first = 0;
    int any = 0;
    while (!s->present[first]) {
        first++;
    }
    memset(s->minimum, 0, (size_t)s->k * sizeof(double));
    memset(s->known, 0, (size_t)s->f * sizeof(double));
    if (!c->poisson[first]) {
        double *target = s->other.y;
        memcpy(target, s->v, (size_t)s->n * sizeof(double));
        for (int64_t i = 0; i < s->k; i++) {
            target[i] -= s->e[i] * fmax(-s->v[i], 0.0);
        }
        problem.q = target;
        return find_contact_modes(&problem, NULL, &s->found, s->numbers, s->integers);
    }
    int status = find_contact_modes(&problem, NULL, &s->found, s->numbers, s->integers);
    for (int64_t i = 0; i < s->k; i++) {
        s->minimum[i] = s->e[i] * s->found.forces[i];
        any |= s->minimum[i] > 0.0;
    }
    if (status != OK || !any) {
        return status;
    }
    memcpy(compression.forces, s->found.forces, (size_t)s->n * sizeof(double));
    memcpy(compression.y, s->found.y, (size_t)s->n * sizeof(double));
    problem.q = compression.y;
    status = find_contact_modes(&problem, NULL, &s->found, s->numbers, s->integers);
    for (int64_t i = 0; i < s->n; i++) {
        s->found.forces[i] += compression.forces[i];
    }
    return status;
}

/* Adds the impulses of one impact, and what they do to rates, rest and slip. */
static void take_impact(const struct contacts *c, struct instant *s, int together)
{
    for (int64_t i = 0; i < s->k; i++) {
        if (s->present[i] && s->found.forces[i] > 0.0) {
            const double before = together ? of_contacts(s, RESTING)[i] : 0.0;
            s->rests[i] = fmax((double)comes_to_rest(s, i), before);
        }
    }
    for (int64_t i = 0; i < s->n; i++) {
        s->impulses[i] += s->found.forces[i];
        for (int64_t j = 0; j < s->n; j++) {
            s->v[i] += s->W[i * s->n + j] * s->found.forces[j];
        }
    }
    for (int64_t j = 0; j < s->f; j++) {
        s->slides[j] = together || s->present[c->rough[j]] ? s->found.modes.senses[j] : s->slides[j];
    }
}

/* Impulses of contacts with friction at this instant, what rests after it, and senses of slip. */
static int find_rough_impacts(const struct contacts *c, struct instant *s)
{
    int status = OK;
    set_approach_rates(s);
    for (int64_t j = 0; j < s->f; j++) {
        s->slides[j] = sense_of(s, j);
    }
    for (int64_t group = 0; group < (c->sequential ? s->k : 1) && status == OK; group++) {
        int any = 0;
        for (int64_t i = 0; i < s->k; i++) {
            s->present[i] = (!c->sequential || i == group) && of_contacts(s, CLOSED)[i] > ON;
            any |= s->present[i] && is_approaching(s, i);
            s->e[i] = comes_to_rest(s, i) ? 0.0 : of_contacts(s, RESTITUTION)[i];
        }
        if (any) {
            status = solve_impact(c, s);
            take_impact(c, s, !c->sequential && s->k > 1);
        }
    }
    return status;
}

/* The same without friction, one contact after the other. */
static void find_smooth_impacts_in_order(struct instant *s)
{
    set_approach_rates(s);
    for (int64_t i = 0; i < s->k; i++) {
        const double own = s->W[i * s->n + i];
        if (!(of_contacts(s, CLOSED)[i] > ON) || !is_approaching(s, i) || own <= 0.0) {
            continue;
        }
        const int stops = comes_to_rest(s, i);
        s->impulses[i] = -s->v[i] * (stops ? 1.0 : 1.0 + of_contacts(s, RESTITUTION)[i]) / own;
        s->rests[i] = stops;
        for (int64_t j = 0; j < s->n; j++) {
            s->v[j] += s->W[j * s->n + i] * s->impulses[i];
        }
    }
}

/* Whether no two contacts that take part say the same. */
static int is_regular(struct instant *s)
{
    struct orthogonal d = {
        .a = s->numbers, .left = s->numbers + s->n * s->n, .pivot = s->integers + s->n};
    int64_t *taking_part = s->integers;
    d.right = d.left + s->n;
    d.spare = d.right + s->n;
    for (int64_t i = 0; i < s->k; i++) {
        if (s->present[i]) {
            taking_part[d.rows++] = i;
        }
    }
    d.columns = d.rows;
    for (int64_t i = 0; i < d.rows; i++) {
        for (int64_t j = 0; j < d.rows; j++) {
            const double sizes = s->W[taking_part[i] * (s->n + 1)] * s->W[taking_part[j] * (s->n + 1)];
            d.a[j * d.rows + i] = sizes > 0.0 ? s->W[taking_part[i] * s->n + taking_part[j]] / sqrt(sizes) : 0.0;
        }
    }
    decompose(&d, SINGULAR_PART);
    return d.rank == d.rows;
}

/* The impulse of a contact, if it is clear that there is one; what is closed without any may begin to approach. */
static int take_smooth_impulse(struct instant *s, int64_t i, double size)
{
    double after = s->v[i];
    s->impulses[i] = s->found.forces[i];
    for (int64_t j = 0; j < s->n; j++) {
        after += s->W[i * s->n + j] * (s->present[j] ? s->found.forces[j] : 0.0);
    }
    if (of_contacts(s, APPROACHING)[i] > ON && fabs(after) <= APPROACH_START * of_contacts(s, REST_BELOW)[i]) {
        s->impulses[i] = fmax(s->impulses[i], SMALLEST_IMPULSE);
    }
    s->rests[i] = s->impulses[i] > 0.0 && comes_to_rest(s, i) ? 1.0 : s->rests[i];
    return s->found.forces[i] == 0.0 || s->W[i * s->n + i] * s->found.forces[i] > SURELY_PRESSED * size;
}

/* The same without friction, all at once. What hardly presses, and impulses that are not unique, are for others. */
static int find_smooth_impacts_at_once(const struct contacts *c, struct instant *s)
{
    int any = 0;
    double size = 0.0;
    set_approach_rates(s);
    for (int64_t i = 0; i < s->k; i++) {
        s->present[i] = of_contacts(s, CLOSED)[i] > ON;
        any |= s->present[i] != 0;
        s->e[i] = comes_to_rest(s, i) ? 0.0 : of_contacts(s, RESTITUTION)[i];
        size = s->present[i] ? fmax(size, fabs(s->v[i])) : size;
    }
    if (!any) {
        return OK;
    }
    int status = is_regular(s) ? solve_impact(c, s) : UNSOLVED;
    for (int64_t i = 0; i < s->k && status == OK; i++) {
        status = !s->present[i] || take_smooth_impulse(s, i, size) ? OK : UNSOLVED;
    }
    return status;
}

/* What impulses throw off does not rest; what does not rest does not slide. */
static void open_what_is_thrown(const struct contacts *c, struct instant *s)
{
    for (int64_t i = 0; i < s->k; i++) {
        const double rate = of_contacts(s, RATE)[i];
        const double drift = of_contacts(s, RESTING)[i] > 0.0 ? fmax(rate, 0.0) : 0.0;
        double after = 0.0;
        for (int64_t j = 0; j < s->n; j++) {
            after += s->W[i * s->n + j] * s->impulses[j];
        }
        if (rate + after > drift + REIMPACT_SPEED * of_contacts(s, REST_BELOW)[i]) {
            s->rests[i] = 0.0;
        }
    }
    for (int64_t j = 0; j < s->f; j++) {
        s->slides[j] = s->rests[c->rough[j]] > ON ? s->slides[j] : 0.0;
    }
}

static double speed_to_rest(const struct contacts *c, const struct instant *s, int64_t j)
{
    return of_contacts(s, REST_BELOW)[c->rough[j]];
}

/* What is known of slip before a change of modes: its sense, where it is neither at rest nor driven back. */
static void set_known_senses(const struct contacts *c, struct instant *s)
{
    for (int64_t j = 0; j < s->f; j++) {
        const double slip = of_frictions(s, SLIP)[j];
        const double rest = speed_to_rest(c, s, j);
        const int has_reversed = sense_of(s, j) * slip <= 0.0 && fabs(slip) < rest;
        s->known[j] = fabs(slip) < ZERO_SLIP * rest || has_reversed ? 0.0 : slip > 0.0 ? 1.0 : -1.0;
    }
}

/* Rates that a change of modes takes away: drift of gaps, and slip beyond that with which sliding begins. */
static void set_excess_speeds(const struct contacts *c, struct instant *s, struct contact_modes *modes)
{
    for (int64_t i = 0; i < s->k; i++) {
        const double rate = of_contacts(s, RATE)[i];
        s->v[i] = fabs(rate) <= of_contacts(s, REST_BELOW)[i] ? rate : 0.0; /* a faster one has been set */
    }
    for (int64_t j = 0; j < s->f; j++) {
        const double slip = of_frictions(s, SLIP)[j];
        const double sense = modes->senses[j];
        const int begins =
            sense != 0.0 && (s->known[j] == 0.0 || sense * slip < ZERO_SLIP * speed_to_rest(c, s, j));
        s->v[s->k + j] = slip - (begins ? sense * fmax(sense * slip, of_frictions(s, THRESHOLD)[j]) : 0.0);
        modes->stuck[j] = modes->pressed[c->rough[j]] && (begins || sense == 0.0);
        modes->senses[j] = modes->stuck[j] ? 0.0 : sense;
    }
}

/* What rests, sticks and slides after a change of modes, and the impulses that adapt speeds to it. */
static int change_modes(const struct contacts *c, struct instant *s)
{
    const struct contact_problem problem = problem_of(c, s);
    set_known_senses(c, s);
    memset(s->minimum, 0, (size_t)s->k * sizeof(double));
    memcpy(s->v, s->base, (size_t)s->n * sizeof(double));
    for (int64_t i = 0; i < s->k; i++) {
        s->before.pressed[i] = s->present[i] = of_contacts(s, RESTING)[i] > ON;
    }
    for (int64_t j = 0; j < s->f; j++) {
        s->before.senses[j] = sense_of(s, j);
    }
    const int status = find_contact_modes(&problem, &s->before, &s->found, s->numbers, s->integers);
    if (status != OK) {
        return status;
    }
    for (int64_t i = 0; i < s->k; i++) {
        const double after = s->found.modes.pressed[i] ? 1.0 : OPENING;
        s->rests_on[i] = s->present[i] ? after : of_contacts(s, RESTING)[i];
    }
    memcpy(s->slides_on, s->found.modes.senses, (size_t)s->f * sizeof(double));
    set_excess_speeds(c, s, &s->found.modes);
    solve_in_modes(&problem, &s->found.modes, s->speeding, s->other.y, s->numbers, s->integers);
    return OK;
}

static void write_jumps(const struct equations *e, const struct instant *s, const double impulses[], double jumps[])
{
    memset(jumps, 0, (size_t)e->n_u * sizeof(double));
    for (int64_t i = 0; i < e->n_independent; i++) {
        for (int64_t j = 0; j < s->n; j++) {
            jumps[e->independent[i]] += s->state_effects[(e->n_q + i) * s->n + j] * impulses[j];
        }
    }
}

static double *append(double *to, const double from[], int64_t count)
{
    memcpy(to, from, (size_t)count * sizeof(double));
    return to + count;
}

/* In the order of ``ContactEquations.impact_unknowns``. */
static void write_results(const struct equations *e, const struct modes *m, const struct instant *s)
{
    double *to = append(m->r + m->inputs, s->kept, m->switches + s->n);
    to = append(to, s->impulses, s->k);
    to = append(to, s->rests, s->k);
    if (s->f) {
        to = append(to, s->impulses + s->k, s->f);
        to = append(to, s->slides, s->f);
        to = append(to, s->rests_on, s->k);
        to = append(to, s->slides_on, s->f);
    }
    write_jumps(e, s, s->impulses, to);
    if (s->f) {
        write_jumps(e, s, s->speeding, to + e->n_u);
    }
}

static int apply_laws(const struct contacts *c, struct instant *s, int hit, int change)
{
    int status = OK;
    const size_t k = (size_t)s->k * sizeof(double);
    const size_t f = (size_t)s->f * sizeof(double);
    memcpy(s->rests, of_contacts(s, RESTING), k);
    memcpy(s->rests_on, of_contacts(s, RESTING), k);
    memcpy(s->slides, of_frictions(s, SLIDING), f);
    memcpy(s->slides_on, of_frictions(s, SLIDING), f);
    if (s->f == 0) {
        if (c->sequential) {
            find_smooth_impacts_in_order(s);
        } else {
            status = find_smooth_impacts_at_once(c, s);
        }
    } else if (hit) {
        status = find_rough_impacts(c, s);
    }
    if (status == OK && (s->f == 0 || hit)) {
        open_what_is_thrown(c, s);
    }
    return status == OK && s->f && change ? change_modes(c, s) : status;
}

int reference_contact_results(struct equations *e, struct modes *m, const struct contacts *c, double t, const double x[],
    const double inputs[], const double p[], int hit, int change)
{
    struct instant s = {.k = c->count, .f = c->frictions, .n = c->count + c->frictions};
    int status = begin_instant(&s, states_of(e), m->switches);
    if (status == OK) {
        memcpy(s.kept, m->r + m->inputs, (size_t)(m->switches + s.n) * sizeof(double));
        memcpy(m->r, inputs, (size_t)e->n_r * sizeof(double));
        status = measure_effects(e, m, c, &s, t, x, p);
    }
    if (status == OK) {
        separate_frictions(c, &s, states_of(e));
        status = apply_laws(c, &s, hit, change);
    }
    if (status == OK) {
        write_results(e, m, &s);
    }
    free(s.W);
    free(s.present);
    return status;
}
