/* batch_step_loop.h: whole motions of many instances, each with its own time and step size, by Dormand and Prince's pair or,
 * where MB2FMU_BATCH_IMPLICIT is 1, by RODASP.
 *
 * Why it exists: parameter studies need the motions, not x' alone. One vector holds as many instances as it has lanes;
 * an instance that is done makes room for the next one, so that no lane waits. Every lane has the bits that
 * solver_step_loop.c and the method's file give one instance: the same operations in the same order, with choices instead of
 * branches. States from MB2FMU_BATCH_JUDGED on (derivatives of those before) have no say in step sizes, nor in whether
 * a step is good. To be included by templates/ensemble.c.jinja, after its batch_… functions and sizes (MB2FMU_BATCH_…).
 *
 * Sources: those of solver_step_loop.c, solver_dopri5.c and solver_rosenbrock.c.
 */
#ifndef MB2FMU_BATCH_WALK_H
#define MB2FMU_BATCH_WALK_H

#include "batch_course.h"

#if MB2FMU_BATCH_IMPLICIT
#include "rodasp.h"
#define MB2FMU_STAGES MB2FMU_RODASP_STAGES
#define MB2FMU_EXPONENT 16 /* of the error, in 64ths, as in solver_methods.c */
#define MB2FMU_LEAST_ERROR 1e-2
#else
#define MB2FMU_STAGES 7
#define MB2FMU_EXPONENT 13
#define MB2FMU_LEAST_ERROR 1e-4
#endif
#define MB2FMU_ROOM(n) ((n) > 0 ? (n) : 1)
#define MB2FMU_EPSILON 2.220446049250313e-16

enum { MB2FMU_ERROR_STAYS = 1, MB2FMU_NOT_FINITE = 2, MB2FMU_TOO_MANY_STEPS = 3 };

/* Instances that are under way, one in each lane. */
typedef struct {
    mb2fmu_reals x[MB2FMU_ROOM(MB2FMU_BATCH_STATES)], point[MB2FMU_ROOM(MB2FMU_BATCH_STATES)];
    mb2fmu_reals k[MB2FMU_STAGES][MB2FMU_ROOM(MB2FMU_BATCH_STATES)], error[MB2FMU_ROOM(MB2FMU_BATCH_STATES)];
    mb2fmu_reals scale[MB2FMU_ROOM(MB2FMU_BATCH_STATES)];
    mb2fmu_reals r[MB2FMU_ROOM(MB2FMU_BATCH_INPUTS)], p[MB2FMU_ROOM(MB2FMU_BATCH_PARAMETERS)];
    mb2fmu_reals w[MB2FMU_ROOM(MB2FMU_BATCH_PREPARED)], y[MB2FMU_ROOM(MB2FMU_BATCH_OUTPUTS)];
    mb2fmu_reals put[MB2FMU_ROOM(MB2FMU_BATCH_PROJECTED)], work[MB2FMU_ROOM(MB2FMU_BATCH_WORK)];
    mb2fmu_reals clock, rest;   /* the last communication point, and what rounding took from it */
    mb2fmu_reals passed;        /* since then, s */
    mb2fmu_reals step;          /* proposed */
    mb2fmu_reals last_step, last_error;
    mb2fmu_reals tried;         /* steps since the last communication point */
#if MB2FMU_BATCH_IMPLICIT
    mb2fmu_reals jacobian[MB2FMU_ROOM(MB2FMU_BATCH_STATES * MB2FMU_BATCH_JUDGED + MB2FMU_BATCH_STATES)]; /* by rows, then f_t */
    mb2fmu_reals matrix[MB2FMU_ROOM(MB2FMU_BATCH_JUDGED * MB2FMU_BATCH_JUDGED + MB2FMU_BATCH_JUDGED)];
    mb2fmu_reals slope[MB2FMU_ROOM(MB2FMU_BATCH_STATES)];
    mb2fmu_words linear; /* lanes whose Jacobian could be computed */
    int linearized;      /* in all lanes, at their present points */
#else
    mb2fmu_reals last_root, least_root; /* (2/64)th powers of last_error, and of the least that it can be */
#endif
    mb2fmu_words rejected;      /* the last step was */
    mb2fmu_words unprepared;    /* what depends on parameters cannot be computed */
    mb2fmu_words busy;          /* an instance is under way */
    long instance[MB2FMU_LANES], at[MB2FMU_LANES];
} mb2fmu_group;

static inline int mb2fmu_is_marked(mb2fmu_words marked, int lane)
{
    mb2fmu_word_lanes lanes;
    lanes.words = marked;
    return lanes.lane[lane] != 0;
}

static inline mb2fmu_words mb2fmu_mark(mb2fmu_words marked, int lane, int as)
{
    mb2fmu_word_lanes lanes;
    lanes.words = marked;
    lanes.lane[lane] = as ? ~(uint64_t)0 : (uint64_t)0;
    return lanes.words;
}

/* x' at times and states; in lanes without a result NaN. */
static void mb2fmu_group_slope(mb2fmu_group *g, mb2fmu_reals t, const mb2fmu_reals x[], mb2fmu_reals slope[])
{
    mb2fmu_words lost = g->unprepared;
    (void)batch_rhs(t, x, g->r, g->p, g->w, &lost, g->work, slope);
    if (mb2fmu_anywhere(lost)) {
        for (int i = 0; i < MB2FMU_BATCH_STATES; i++) {
            slope[i] = mb2fmu_choose(lost, mb2fmu_all(MB2FMU_NAN), slope[i]);
        }
    }
}

/* x^(1/64), x^(2/64), x^(4/64), … x^(32/64): what powers with exponents in 64ths are products of. */
typedef struct {
    mb2fmu_reals of[6];
} mb2fmu_roots;

static inline mb2fmu_roots mb2fmu_roots_of(mb2fmu_reals x)
{
    mb2fmu_roots roots;
    for (int bit = 5; bit >= 0; bit--) {
        x = mb2fmu_each_sqrt(x);
        roots.of[bit] = x;
    }
    return roots;
}

static inline mb2fmu_reals mb2fmu_power(const mb2fmu_roots *roots, int sixtyfourths)
{
    mb2fmu_reals result = mb2fmu_all(1.0);
    for (int bit = 5; bit >= 0; bit--) {
        if (sixtyfourths >> bit & 1) {
            result = result * roots->of[bit];
        }
    }
    return result;
}

/* Size of vectors in units of the tolerance at x and next. */
static mb2fmu_reals mb2fmu_group_norm(const mb2fmu_group *g, const mb2fmu_course *course, const mb2fmu_reals vector[],
                                      const mb2fmu_reals x[], const mb2fmu_reals next[])
{
    mb2fmu_reals sum = mb2fmu_all(0.0);
    for (int i = 0; i < MB2FMU_BATCH_JUDGED; i++) {
        const mb2fmu_reals here = mb2fmu_each_abs(x[i]), there = mb2fmu_each_abs(next[i]);
        const mb2fmu_reals size = mb2fmu_choose(MB2FMU_WHERE(here > there), here, there);
        const mb2fmu_reals ratio = vector[i] / (course->tolerance * (size + g->scale[i]));
        sum = sum + ratio * ratio;
    }
    return mb2fmu_each_sqrt(sum / (double)MB2FMU_ROOM(MB2FMU_BATCH_JUDGED));
}

/* Sizes below which no step is made. */
static mb2fmu_reals mb2fmu_group_least(const mb2fmu_group *g, const mb2fmu_course *course)
{
    const mb2fmu_reals here = mb2fmu_each_abs(g->clock), there = mb2fmu_each_abs(g->clock + course->step);
    return 16.0 * MB2FMU_EPSILON * mb2fmu_choose(MB2FMU_WHERE(here > there), here, there);
}

/* Proposals for the very first steps; g->k[0] is x' there. */
static mb2fmu_reals mb2fmu_group_first_step(mb2fmu_group *g, const mb2fmu_course *course)
{
    const mb2fmu_reals least = mb2fmu_group_least(g, course), longest = mb2fmu_all(course->step);
    const mb2fmu_reals size = mb2fmu_group_norm(g, course, g->x, g->x, g->x);
    const mb2fmu_reals speed = mb2fmu_group_norm(g, course, g->k[0], g->x, g->x);
    const mb2fmu_words usual = MB2FMU_WHERE(size > mb2fmu_all(1e-5)) & MB2FMU_WHERE(speed > mb2fmu_all(1e-5)) &
                               MB2FMU_WHERE(speed < mb2fmu_all(MB2FMU_INFINITY));
    mb2fmu_reals h = mb2fmu_choose(usual, 0.01 * (size / speed), mb2fmu_all(1e-6));
    h = mb2fmu_choose(MB2FMU_WHERE(h < longest), h, longest);
    h = mb2fmu_choose(MB2FMU_WHERE(h > least), h, least);
    for (int i = 0; i < MB2FMU_BATCH_STATES; i++) {
        g->point[i] = g->x[i] + h * g->k[0][i];
    }
    mb2fmu_group_slope(g, g->clock + h, g->point, g->k[1]);
    mb2fmu_words good = ~mb2fmu_nowhere();
    for (int i = 0; i < MB2FMU_BATCH_JUDGED; i++) {
        good &= mb2fmu_finite(g->k[1][i]);
        g->error[i] = g->k[1][i] - g->k[0][i];
    }
    const mb2fmu_reals bend = mb2fmu_group_norm(g, course, g->error, g->x, g->x) / h;
    const mb2fmu_reals steepest = mb2fmu_choose(MB2FMU_WHERE(bend > speed), bend, speed);
    mb2fmu_reals wish = mb2fmu_choose(MB2FMU_WHERE(h > mb2fmu_all(1e-3)), 1e-3 * h, mb2fmu_all(1e-6));
    const mb2fmu_roots roots = mb2fmu_roots_of(0.01 / steepest);
    wish = mb2fmu_choose(MB2FMU_WHERE(steepest > mb2fmu_all(1e-15)), mb2fmu_power(&roots, MB2FMU_EXPONENT), wish);
    mb2fmu_reals step = mb2fmu_choose(MB2FMU_WHERE(wish < 100.0 * h), wish, 100.0 * h);
    step = mb2fmu_choose(MB2FMU_WHERE(step > 0.01 * h), step, 0.01 * h);
    return mb2fmu_choose(good, step, 0.01 * h);
}

/* --- communication points ----------------------------------------------------------------------------------------- */

static void mb2fmu_group_inputs(mb2fmu_group *g, const mb2fmu_course *course, int lane)
{
    const long row = course->input_rows == 1 ? 0 : g->at[lane] < course->points ? g->at[lane] : course->points - 1;
    for (int i = 0; i < MB2FMU_BATCH_INPUTS; i++) {
        mb2fmu_lanes lanes;
        lanes.reals = g->r[i];
        lanes.lane[lane] = course->r[row * MB2FMU_BATCH_INPUTS + i];
        g->r[i] = lanes.reals;
    }
}

static void mb2fmu_group_copy(const mb2fmu_reals from[], int n, int lane, double to[])
{
    for (int i = 0; i < n; i++) {
        mb2fmu_lanes lanes;
        lanes.reals = from[i];
        to[i] = lanes.lane[lane];
    }
}

/* Stores states and outputs of marked lanes at communication points, as far as they are asked for. */
static void mb2fmu_group_keep(mb2fmu_group *g, const mb2fmu_course *course, mb2fmu_words marked)
{
    int last = 0;
    for (int i = 0; i < MB2FMU_LANES; i++) {
        last |= mb2fmu_is_marked(marked, i) && g->at[i] == course->points;
    }
    if (!last && course->selected == 0 && course->path_x == NULL) {
        return;
    }
    if (last || course->selected > 0) {
        mb2fmu_words lost = g->unprepared;
        (void)batch_outputs(g->clock, g->x, g->r, g->p, g->w, &lost, g->work, g->y);
        for (int i = 0; i < MB2FMU_BATCH_OUTPUTS; i++) {
            g->y[i] = mb2fmu_choose(lost, mb2fmu_all(MB2FMU_NAN), g->y[i]);
        }
    }
    for (int i = 0; i < MB2FMU_LANES; i++) {
        if (!mb2fmu_is_marked(marked, i)) {
            continue;
        }
        const long place = g->instance[i] * (course->points + 1) + g->at[i];
        if (course->path_x != NULL) {
            mb2fmu_group_copy(g->x, MB2FMU_BATCH_STATES, i, course->path_x + place * MB2FMU_BATCH_STATES);
        }
        for (long j = 0; j < course->selected; j++) {
            mb2fmu_group_copy(g->y + course->select[j], 1, i, course->path_y + place * course->selected + j);
        }
        if (g->at[i] == course->points) {
            mb2fmu_group_copy(g->x, MB2FMU_BATCH_STATES, i, course->end_x + g->instance[i] * MB2FMU_BATCH_STATES);
            mb2fmu_group_copy(g->y, MB2FMU_BATCH_OUTPUTS, i, course->end_y + g->instance[i] * MB2FMU_BATCH_OUTPUTS);
        }
    }
}

/* Puts states on the constraints, in marked lanes in which that is possible. */
static void mb2fmu_group_project(mb2fmu_group *g, mb2fmu_words marked)
{
#if MB2FMU_BATCH_PROJECTED > 0
    mb2fmu_words lost = g->unprepared;
    (void)batch_project(g->clock, g->x, g->r, g->p, g->w, &lost, g->work, g->put);
    marked &= ~lost;
    for (int i = 0; i < MB2FMU_BATCH_PROJECTED && i < MB2FMU_BATCH_JUDGED; i++) {
        marked &= mb2fmu_finite(g->put[i]);
    }
    for (int i = 0; i < MB2FMU_BATCH_PROJECTED; i++) {
        g->x[i] = mb2fmu_choose(marked, g->put[i], g->x[i]);
    }
#else
    (void)g;
    (void)marked;
#endif
}

/* Hands the next inputs to marked lanes, and forms x' anew in those where inputs or states jump. */
static void mb2fmu_group_turn(mb2fmu_group *g, const mb2fmu_course *course, mb2fmu_words marked)
{
    mb2fmu_words jumped = mb2fmu_nowhere(), again = mb2fmu_nowhere();
    for (int i = 0; i < MB2FMU_LANES && course->input_rows > 1; i++) {
        if (mb2fmu_is_marked(marked, i)) {
            mb2fmu_group_inputs(g, course, i);
            jumped = mb2fmu_mark(jumped, i, course->turns[g->at[i]]);
        }
    }
    g->last_step = mb2fmu_choose(jumped, mb2fmu_all(0.0), g->last_step);
    g->last_error = mb2fmu_choose(jumped, mb2fmu_all(0.0), g->last_error);
    again = MB2FMU_BATCH_PROJECTED > 0 ? marked : jumped;
    if (mb2fmu_anywhere(again & g->busy)) {
        mb2fmu_group_slope(g, g->clock, g->x, g->k[1]);
        for (int i = 0; i < MB2FMU_BATCH_STATES; i++) {
            g->k[0][i] = mb2fmu_choose(again, g->k[1][i], g->k[0][i]);
        }
    }
}

/* Marked lanes reached a communication point: their clocks go on. */
static void mb2fmu_group_communicate(mb2fmu_group *g, const mb2fmu_course *course, mb2fmu_words marked)
{
    const mb2fmu_reals total = g->clock + course->step, added = total - g->clock;
    const mb2fmu_reals rest = g->rest + ((g->clock - (total - added)) + (course->step - added));
    const mb2fmu_reals clock = total + rest;
    g->rest = mb2fmu_choose(marked, rest - (clock - total), g->rest);
    g->clock = mb2fmu_choose(marked, clock, g->clock);
    g->passed = mb2fmu_choose(marked, mb2fmu_all(0.0), g->passed);
    g->tried = mb2fmu_choose(marked, mb2fmu_all(0.0), g->tried);
    g->rejected &= ~marked;
    mb2fmu_group_project(g, marked);
    for (int i = 0; i < MB2FMU_LANES; i++) {
        g->at[i] += mb2fmu_is_marked(marked, i);
    }
    mb2fmu_group_keep(g, course, marked); /* as in a unit, inputs change after outputs have been read */
    for (int i = 0; i < MB2FMU_LANES; i++) {
        if (g->at[i] == course->points) {
            g->busy = mb2fmu_mark(g->busy, i, 0);
        }
    }
    if (course->input_rows > 1 || MB2FMU_BATCH_PROJECTED > 0) {
        mb2fmu_group_turn(g, course, marked);
    }
}

/* --- steps -------------------------------------------------------------------------------------------------------- */

#if MB2FMU_BATCH_IMPLICIT
#include "batch_rosenbrock.h"
#else
#include "batch_dopri5.h"
#endif

/* Draws from tried steps what the next ones may be. */
static void mb2fmu_group_learn(mb2fmu_group *g, mb2fmu_reals h, mb2fmu_reals error, mb2fmu_words good)
{
    const mb2fmu_reals zero = mb2fmu_all(0.0), shrink = mb2fmu_all(0.2);
    const mb2fmu_roots roots = mb2fmu_roots_of(error);
    const mb2fmu_reals plain = 0.9 / mb2fmu_power(&roots, MB2FMU_EXPONENT);
    const mb2fmu_reals largest = mb2fmu_choose(g->rejected, mb2fmu_all(1.0), mb2fmu_all(5.0));
    mb2fmu_reals factor = mb2fmu_group_factor(g, h, error, plain, &roots);
    factor = mb2fmu_choose(MB2FMU_WHERE(error > zero), factor, largest);
    factor = mb2fmu_choose(MB2FMU_WHERE(factor < largest), factor, largest);
    factor = mb2fmu_choose(MB2FMU_WHERE(factor > shrink), factor, shrink);
    const mb2fmu_reals wish = h * factor;
    const mb2fmu_words cut = MB2FMU_WHERE(h < 0.5 * g->step) & MB2FMU_WHERE(error < mb2fmu_all(0.01));
    const mb2fmu_reals bounded = mb2fmu_choose(MB2FMU_WHERE(wish < mb2fmu_all(1e12)), wish, mb2fmu_all(1e12));
    const mb2fmu_reals proposed = mb2fmu_choose(~cut | MB2FMU_WHERE(wish > g->step), bounded, g->step);
    const mb2fmu_reals remembered = mb2fmu_choose(MB2FMU_WHERE(error > mb2fmu_all(MB2FMU_LEAST_ERROR)), error, mb2fmu_all(MB2FMU_LEAST_ERROR));
    /* After a rejection; the error is infinite where the step could not even be computed. */
    mb2fmu_reals less = mb2fmu_choose(MB2FMU_WHERE(plain > shrink), plain, shrink);
    less = mb2fmu_choose(MB2FMU_WHERE(error < mb2fmu_all(MB2FMU_INFINITY)), less, shrink);
    g->step = mb2fmu_choose(good, proposed, h * less);
    g->last_step = mb2fmu_choose(good & ~cut, h, g->last_step);
    g->last_error = mb2fmu_choose(good & ~cut, remembered, g->last_error);
    mb2fmu_group_remember(g, error, &roots, good & ~cut);
    g->rejected = ~good;
}

/* Ends marked instances, whose step from t on could not be made, or was one too many. */
static void mb2fmu_group_give_up(mb2fmu_group *g, const mb2fmu_course *course, mb2fmu_words lost, mb2fmu_words computed,
                                 mb2fmu_words worn, mb2fmu_reals t)
{
    mb2fmu_lanes times;
    times.reals = t;
    for (int i = 0; i < MB2FMU_LANES; i++) {
        if (mb2fmu_is_marked(lost | worn, i)) {
            const int why = mb2fmu_is_marked(computed, i) ? MB2FMU_ERROR_STAYS : MB2FMU_NOT_FINITE;
            course->why[g->instance[i]] = mb2fmu_is_marked(lost, i) ? why : MB2FMU_TOO_MANY_STEPS;
            course->when[g->instance[i]] = times.lane[i];
        }
    }
    g->busy &= ~(lost | worn);
}

/* Tries one step in every lane. */
static void mb2fmu_group_advance(mb2fmu_group *g, const mb2fmu_course *course)
{
    const mb2fmu_reals least = mb2fmu_group_least(g, course), left = course->step - g->passed, t = g->clock + g->passed;
    const mb2fmu_reals proposal = mb2fmu_choose(MB2FMU_WHERE(g->step > least), g->step, least);
    const mb2fmu_reals halved = mb2fmu_choose(MB2FMU_WHERE(left < 2.0 * proposal), 0.5 * left, proposal);
    const mb2fmu_reals h = mb2fmu_choose(MB2FMU_WHERE(left <= proposal * (1.0 + 1e-10)), left, halved);
    const mb2fmu_words sound = mb2fmu_group_stages(g, t, h);
    mb2fmu_reals error = mb2fmu_group_norm(g, course, g->error, g->x, g->point);
    error = mb2fmu_choose(sound, error, mb2fmu_all(MB2FMU_INFINITY));
    const mb2fmu_words good = MB2FMU_WHERE(error <= mb2fmu_all(1.0));
    mb2fmu_group_learn(g, h, error, good);
    for (int i = 0; i < MB2FMU_BATCH_STATES; i++) {
        g->x[i] = mb2fmu_choose(good, g->point[i], g->x[i]);
    }
    mb2fmu_group_hand_on(g, good);
    const mb2fmu_reals whole = mb2fmu_all(course->step);
    g->passed = mb2fmu_choose(good, mb2fmu_choose(MB2FMU_WHERE(h < left), g->passed + h, whole), g->passed);
    g->tried = g->tried + mb2fmu_all(1.0);
    const mb2fmu_words lost = g->busy & ~good & ~MB2FMU_WHERE(g->step >= least);
    const mb2fmu_words worn = g->busy & MB2FMU_WHERE(g->tried >= mb2fmu_all((double)course->most));
    if (mb2fmu_anywhere(lost | worn)) {
        mb2fmu_group_give_up(g, course, lost, sound, worn, t);
    }
    const mb2fmu_words reached = g->busy & ~MB2FMU_WHERE(g->passed < whole);
    if (mb2fmu_anywhere(reached)) {
        mb2fmu_group_communicate(g, course, reached);
    }
}

/* --- lanes -------------------------------------------------------------------------------------------------------- */

static void mb2fmu_group_load(mb2fmu_reals to[], int n, int lane, const double from[])
{
    for (int i = 0; i < n; i++) {
        mb2fmu_lanes lanes;
        lanes.reals = to[i];
        lanes.lane[lane] = from[i];
        to[i] = lanes.reals;
    }
}

/* Starts instances in idle lanes, from `first` on; the next that waits. Lanes that stay idle compute on with what they have. */
static long mb2fmu_group_fill(mb2fmu_group *g, const mb2fmu_course *course, long first, long end)
{
    mb2fmu_words begun = mb2fmu_nowhere();
    for (int i = 0; i < MB2FMU_LANES; i++) {
        if (!mb2fmu_is_marked(g->busy, i) && first < end) {
            const long row = course->parameter_rows == 1 ? 0 : first;
            g->instance[i] = first;
            g->at[i] = 0;
            begun = mb2fmu_mark(begun, i, 1);
            mb2fmu_group_load(g->x, MB2FMU_BATCH_STATES, i, course->x0 + first * MB2FMU_BATCH_STATES);
            mb2fmu_group_load(g->p, MB2FMU_BATCH_PARAMETERS, i, course->p + row * MB2FMU_BATCH_PARAMETERS);
            mb2fmu_group_inputs(g, course, i);
            first++;
        }
    }
    g->busy |= begun;
    const mb2fmu_reals zero = mb2fmu_all(0.0);
    g->unprepared = mb2fmu_nowhere();
    (void)batch_prepare(g->p, g->w, &g->unprepared, g->work);
    g->clock = mb2fmu_choose(begun, mb2fmu_all(course->start), g->clock);
    g->rest = mb2fmu_choose(begun, zero, g->rest);
    g->passed = mb2fmu_choose(begun, zero, g->passed);
    g->last_step = mb2fmu_choose(begun, zero, g->last_step);
    g->last_error = mb2fmu_choose(begun, zero, g->last_error);
    g->rejected &= ~begun;
    g->tried = mb2fmu_choose(begun, zero, g->tried);
    mb2fmu_group_begin(g);
    mb2fmu_group_keep(g, course, begun);
    mb2fmu_reals old[MB2FMU_ROOM(MB2FMU_BATCH_STATES)];
    for (int i = 0; i < MB2FMU_BATCH_STATES; i++) {
        old[i] = g->k[0][i];
    }
    mb2fmu_group_slope(g, g->clock, g->x, g->k[0]);
    const mb2fmu_reals step = mb2fmu_group_first_step(g, course);
    g->step = mb2fmu_choose(begun, step, g->step);
    for (int i = 0; i < MB2FMU_BATCH_STATES; i++) {
        g->k[0][i] = mb2fmu_choose(begun, g->k[0][i], old[i]);
    }
    return first;
}

/* Moves instances `first` to `end` - 1 to their last communication points. */
static void mb2fmu_group_run(mb2fmu_group *g, const mb2fmu_course *course, long first, long end)
{
    for (int i = 0; i < MB2FMU_BATCH_STATES; i++) {
        g->scale[i] = mb2fmu_all(course->scale[i]);
    }
    for (int i = 0; i < MB2FMU_LANES; i++) { /* lanes that are never used have values, too */
        g->instance[i] = first;
        g->at[i] = 0;
        mb2fmu_group_load(g->x, MB2FMU_BATCH_STATES, i, course->x0 + first * MB2FMU_BATCH_STATES);
        mb2fmu_group_load(g->p, MB2FMU_BATCH_PARAMETERS, i, course->p);
        mb2fmu_group_inputs(g, course, i);
    }
    g->clock = g->rest = g->passed = g->step = g->last_step = g->last_error = g->tried = mb2fmu_all(0.0);
    g->rejected = g->unprepared = g->busy = mb2fmu_nowhere();
    for (int i = 0; i < MB2FMU_BATCH_STATES; i++) {
        g->k[0][i] = mb2fmu_all(0.0);
    }
    while (first < end || mb2fmu_anywhere(g->busy)) {
        if (first < end && mb2fmu_anywhere(~g->busy)) {
            first = mb2fmu_group_fill(g, course, first, end);
        }
        mb2fmu_group_advance(g, course);
    }
}

#endif
