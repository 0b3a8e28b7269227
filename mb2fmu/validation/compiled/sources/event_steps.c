#include "event_steps.h"

#include "dop853_coefficients.h"

#include <math.h>
#include <string.h>

#define CHECKS_PER_STEP 4
#define ITP_TRUNCATION 0.2
#define FIRST_CHECK_FRACTION 0x1p-20 /* part of a step: the first look behind an event */

/* Slopes of dense output and its coefficients F after the step of size h from t; SciPy's ``_dense_output_impl``. */
static int form_dense_output(struct solver *s, double t, double h, double F[])
{
    const struct tableau *c = &DOP853;
    const int64_t n = s->n;
    const double *begin = s->begin;
    const double *first = s->begin + n;
    for (int k = STAGES + 1; k < DENSE_STAGES; k++) {
        const double *weights = c->A_extra[k - STAGES - 1];
        for (int64_t i = 0; i < n; i++) {
            double sum = weights[0] * first[i];
            for (int l = 1; l < k; l++) {
                sum += weights[l] * s->K[l * n + i];
            }
            s->trial[i] = begin[i] + h * sum;
        }
        const int status = solver_slope(s, t + c->C_extra[k - STAGES - 1] * h, s->trial, s->K + k * n);
        if (status != OK) {
            return status;
        }
    }
    for (int64_t i = 0; i < n; i++) {
        const double change = s->y[i] - begin[i];
        F[i] = change;
        F[n + i] = h * first[i] - change;
        F[2 * n + i] = 2.0 * change - h * (s->K[STAGES * n + i] + first[i]);
        for (int row = 0; row < DENSE_ROWS; row++) {
            double sum = c->D[row][0] * first[i];
            for (int l = 1; l < DENSE_STAGES; l++) {
                sum += c->D[row][l] * s->K[l * n + i];
            }
            F[(3 + row) * n + i] = h * sum;
        }
    }
    return OK;
}

static void evaluate_dense_output(const struct solver *s, const double F[], double part, double y[])
{
    for (int64_t i = 0; i < s->n; i++) {
        double value = 0.0;
        for (int k = 0; k < 3 + DENSE_ROWS; k++) {
            value = (value + F[(2 + DENSE_ROWS - k) * s->n + i]) * (k % 2 ? 1.0 - part : part);
        }
        y[i] = s->begin[i] + value;
    }
}

/* The dense output of one step, in which margins are looked at. */
struct look {
    double t;
    double h;
    const double *F;
    int status;
};

/* How far the nearest switch is from being wrong, over its limit; infinite if none says so. */
static double smallest_margin(struct solver *s, struct look *l, double t)
{
    struct modes *m = s->j->modes;
    double smallest = INFINITY;
    evaluate_dense_output(s, l->F, (t - l->t) / l->h, s->trial);
    l->status = reference_margins(s->e, m, t, s->trial, s->r, s->j->parameters, m->margins);
    for (int64_t i = 0; i < m->switches && l->status == OK; i++) {
        smallest = fmin(smallest, m->margins[i] - m->limits[i]); /* NaN says nothing */
    }
    return smallest;
}

/* The first instant at which the smallest margin is negative: first_crossing_search.find_first_crossing. */
static double locate(struct solver *s, struct look *l, double low, double high, double before, double beyond)
{
    const double whole = high - low;
    const double resolution = nextafter(fabs(high), INFINITY) - fabs(high);
    double left = ceil(log2(fmax(whole / resolution, 1.0))) + 1.0;
    double least = resolution;
    while (l->status == OK) {
        const double width = high - low;
        const double middle = low + 0.5 * width;
        if (!(width > 0.0 && low < middle && middle < high)) {
            break;
        }
        const double straight = low + width * before / (before - beyond);
        const double inwards = copysign(1.0, middle - straight);
        const double shift = fmax(ITP_TRUNCATION * width * width / whole, least);
        const double reach = fmax(0.5 * resolution * pow(2.0, left) - 0.5 * width, 0.0);
        double at = straight + inwards * fmin(shift, fabs(middle - straight));
        if (!(fabs(at - middle) <= reach)) {
            at = middle - inwards * reach;
        }
        if (!(low < at && at < high)) {
            at = middle;
        }
        const double found = smallest_margin(s, l, at);
        if (found < 0.0) {
            high = at;
            beyond = found;
        } else {
            low = at;
            before = found;
        }
        least = high - low > 0.5 * width ? 4.0 * least : resolution;
        left -= 1.0;
    }
    return high;
}

/* EVENT if some margin becomes negative on the way of the step of size h from t: EventStepLoop's looks. */
static int look_for_crossing(struct solver *s, double t, double h, double *instant)
{
    struct modes *m = s->j->modes;
    double *F = s->begin + 2 * s->n;
    struct look look = {t, h, F, form_dense_output(s, t, h, F)};
    if (look.status != OK) {
        return look.status;
    }
    look.status = reference_margins(s->e, m, t, s->begin, s->r, s->j->parameters, m->limits);
    double before = INFINITY;
    for (int64_t i = 0; i < m->switches; i++) {
        const double margin = m->limits[i];
        m->limits[i] = (margin < 0.0 ? 2.0 * margin : 0.0) - 1e-15;
        before = fmin(before, margin - m->limits[i]);
    }
    double low = t;
    for (int k = m->behind ? 0 : 1; k <= CHECKS_PER_STEP && look.status == OK; k++) {
        const double high = t + (k ? (double)k / CHECKS_PER_STEP : FIRST_CHECK_FRACTION) * h;
        const double margin = smallest_margin(s, &look, high);
        if (look.status == OK && margin < 0.0) {
            *instant = locate(s, &look, low, high, before, margin);
            return look.status == OK ? EVENT : look.status;
        }
        low = high;
        before = margin;
    }
    m->behind = 0;
    return look.status;
}

/* The margins of an event: at the start of its step, where it is, and a thousandth and a half of the last step before. */
static int see_margins(struct solver *s, double start, double t, double h)
{
    static const double parts[2] = {1.0 - 1e-3, 0.5};
    struct modes *m = s->j->modes;
    double *F = s->begin + 2 * s->n;
    double *seen = m->seen;
    int status = reference_margins(s->e, m, start, s->start, s->r, s->j->parameters, seen);
    status = status == OK ? reference_margins(s->e, m, t, s->y, s->r, s->j->parameters, seen + m->switches) : status;
    status = status == OK ? form_dense_output(s, t - h, h, F) : status;
    for (int k = 0; k < 2 && status == OK; k++) {
        seen += m->switches;
        evaluate_dense_output(s, F, parts[k], s->trial);
        status = reference_margins(
            s->e, m, t - h + parts[k] * h, s->trial, s->r, s->j->parameters, seen + m->switches);
    }
    return status;
}

static void keep_beginning(struct solver *s, double begin[])
{
    memcpy(begin, s->y, (size_t)s->n * sizeof(double));
    memcpy(begin + s->n, s->K, (size_t)s->n * sizeof(double));
}

static void return_to_beginning(struct solver *s, const double begin[])
{
    memcpy(s->y, begin, (size_t)s->n * sizeof(double));
    memcpy(s->K, begin + s->n, (size_t)s->n * sizeof(double));
}

/* From the start of a step to the event in it. */
static int step_to_event(struct solver *s, double start, double instant, double longest)
{
    double t = start;
    double size = s->j->step;
    double h = 0.0;
    int status = OK;
    return_to_beginning(s, s->start);
    while (status == OK && t < instant) {
        h = t;
        keep_beginning(s, s->begin);
        status = solver_advance(s, &t, instant, longest, &size);
        h = t - h;
    }
    return status == OK ? see_margins(s, start, instant, h) : status;
}

int advance_in_modes(struct solver *s, double *t, double end, double longest)
{
    const double start = *t;
    const double size = s->j->step;
    keep_beginning(s, s->begin);
    keep_beginning(s, s->start);
    int status = solver_advance(s, t, end, longest, &s->j->step);
    if (status != OK) {
        s->j->step = size;
        return status;
    }
    double instant = *t;
    status = look_for_crossing(s, start, *t - start, &instant);
    if (status == OK) {
        return OK;
    }
    s->j->step = *t - start;
    if (status == EVENT && step_to_event(s, start, instant, longest) == OK) {
        *t = instant;
        return EVENT;
    }
    *t = start;
    return_to_beginning(s, s->start);
    return CROSSED;
}
