/* solver_step_loop.c: from one communication point to the next, internal step by internal step.
 *
 * Fixed steps: the communication step is divided into equal internal steps, none longer than the fixed step (but for
 * round-off). Adaptive steps: errors are held at the tolerance by a step size control with memory, proportional and
 * integral for explicit methods, predictive for the implicit one; a, b, c are of the method's row, in 64ths.
 *
 *     explicit   h_new = 0.9 h e^-b e_last^c     (without history: 0.9 h e^-a)
 *     implicit   h_new = 0.9 h min(e^-a, (h/h_last) (e_last/e^2)^a)
 *
 * Powers are products of repeated square roots, which IEEE 754 defines to the last bit; hence exponents in 64ths.
 *
 * Sources: Gustafsson: Control theoretic techniques for stepsize selection in explicit (implicit) Runge-Kutta methods,
 * ACM Trans. Math. Softw. 17 (1991) 533-554 and 20 (1994) 496-517; Hairer, Norsett, Wanner: Solving Ordinary
 * Differential Equations I, II.4 (first step size); Hairer, Wanner: the same, II, IV.2 and IV.8.
 */
#include <float.h>
#include <string.h>

#include "solver.h"

#define MB2FMU_SAFETY 0.9
#define MB2FMU_SHRINK 0.2        /* smallest factor from one step size to the next */
#define MB2FMU_GROWTH 5.0        /* largest one */
#define MB2FMU_LONGEST_STEP 1e12 /* s; where nothing moves proposals would grow beyond all numbers */

/* x^(sixtyfourths/64) for x > 0 and 0 <= sixtyfourths < 64. */
static double mb2fmu_solver_root(double x, int sixtyfourths)
{
    double result = 1.0;
    double root = x;
    for (int bit = 32; bit > 0; bit /= 2) {
        root = sqrt(root);
        if (sixtyfourths & bit) {
            result *= root;
        }
    }
    return result;
}

/* Size of a vector in units of the tolerance at x and next: root mean square of its components. */
static double mb2fmu_loop_norm(const mb2fmu_integrator *integrator, const double vector[], const double x[],
                               const double next[])
{
    double sum = 0.0;
    for (int i = 0; i < MB2FMU_N_STATES; i++) {
        const double size = fabs(x[i]) > fabs(next[i]) ? fabs(x[i]) : fabs(next[i]);
        const double ratio = vector[i] / (integrator->memory.tolerance * (size + integrator->work.scale[i]));
        sum += ratio * ratio;
    }
    return sqrt(sum / MB2FMU_SIZE(MB2FMU_N_STATES));
}

/* Error of the step just tried. Where it is too large, notes the state with the largest share in it. */
static double mb2fmu_loop_error(mb2fmu_integrator *integrator, double t)
{
    mb2fmu_work *const work = &integrator->work;
    const double error = mb2fmu_loop_norm(integrator, work->error, work->x, work->next);
    double largest = -1.0;
    for (int i = 0; !(error <= 1.0) && i < MB2FMU_N_STATES; i++) {
        const double ratio = fabs(work->error[i]) / (fabs(work->x[i]) + work->scale[i]);
        if (!(ratio <= largest)) {
            largest = ratio;
            work->fault_state = i;
            work->fault_time = t;
        }
    }
    return error;
}

/* Proposes a size for the very first step. */
static void mb2fmu_loop_first_step(mb2fmu_integrator *integrator, mb2fmu_problem *problem, const mb2fmu_step_loop *loop)
{
    const double t = loop->start + loop->passed;
    const double longest = loop->span - loop->passed;
    mb2fmu_work *const work = &integrator->work;
    mb2fmu_integrator_memory *const memory = &integrator->memory;
    const double size = mb2fmu_loop_norm(integrator, work->x, work->x, work->x);
    const double speed = mb2fmu_loop_norm(integrator, memory->slope, work->x, work->x);
    double h = size > 1e-5 && speed > 1e-5 && speed < MB2FMU_INFINITY ? 0.01 * (size / speed) : 1e-6;
    h = h < longest ? h : longest;
    h = h > loop->least ? h : loop->least;
    for (int i = 0; i < MB2FMU_N_STATES; i++) {
        work->point[i] = work->x[i] + h * memory->slope[i];
    }
    if (mb2fmu_solver_evaluate(integrator, problem, t + h, work->point, work->k[1]) != MB2FMU_STEP_OK) {
        memory->step = 0.01 * h;
        return;
    }
    for (int i = 0; i < MB2FMU_N_STATES; i++) {
        work->error[i] = work->k[1][i] - memory->slope[i];
    }
    const double bend = mb2fmu_loop_norm(integrator, work->error, work->x, work->x) / h;
    const double steepest = bend > speed ? bend : speed;
    double wish = h > 1e-3 ? 1e-3 * h : 1e-6;
    if (steepest > 1e-15) {
        wish = mb2fmu_solver_root(0.01 / steepest, mb2fmu_method_of(memory)->exponent);
    }
    memory->step = wish < 100.0 * h ? wish : 100.0 * h;
    if (!(memory->step > 0.01 * h)) {
        memory->step = 0.01 * h;
    }
}

/* Ratio of the next step size to h, after a step of h with that error > 0 was accepted. */
static double mb2fmu_loop_factor(const mb2fmu_integrator_memory *memory, double h, double error)
{
    const mb2fmu_method *const method = mb2fmu_method_of(memory);
    const int history = memory->last_error > 0.0 && memory->last_step > 0.0;
    const int *const exponents = method->with_history;
    if (history && method->control == MB2FMU_PROPORTIONAL_INTEGRAL) {
        return MB2FMU_SAFETY * mb2fmu_solver_root(memory->last_error, exponents[1]) /
               mb2fmu_solver_root(error, exponents[0]);
    }
    const double plain = MB2FMU_SAFETY / mb2fmu_solver_root(error, method->exponent);
    if (!history) {
        return plain;
    }
    const double ratio = h / memory->last_step;
    const double predicted = plain * ratio * mb2fmu_solver_root(memory->last_error / error, exponents[1]);
    return predicted < plain ? predicted : plain;
}

/* Draws from an accepted step what the next one may be. A step that the communication point cut short says nothing
 * against longer ones unless its error is noticeable, and it is no history. */
static void mb2fmu_loop_learn(mb2fmu_integrator_memory *memory, double h, double error, int after_rejection)
{
    const double least = mb2fmu_method_of(memory)->least_error;
    const double largest = after_rejection ? 1.0 : MB2FMU_GROWTH;
    double factor = error > 0.0 ? mb2fmu_loop_factor(memory, h, error) : largest;
    factor = factor < largest ? factor : largest;
    factor = factor > MB2FMU_SHRINK ? factor : MB2FMU_SHRINK;
    const double wish = h * factor;
    const int cut = h < 0.5 * memory->step && error < 0.01;
    if (!cut || wish > memory->step) {
        memory->step = wish < MB2FMU_LONGEST_STEP ? wish : MB2FMU_LONGEST_STEP;
    }
    if (!cut) {
        memory->last_step = h;
        memory->last_error = error > least ? error : least;
    }
}

/* After a rejection; error is infinite where the step could not even be computed. */
static double mb2fmu_loop_shrink(const mb2fmu_integrator_memory *memory, double error)
{
    if (!(error < MB2FMU_INFINITY)) {
        return MB2FMU_SHRINK;
    }
    const double factor = MB2FMU_SAFETY / mb2fmu_solver_root(error, mb2fmu_method_of(memory)->exponent);
    return factor > MB2FMU_SHRINK ? factor : MB2FMU_SHRINK;
}

/* The proposed step, or the rest of the way in one or in two equal steps. */
static double mb2fmu_loop_choose(const mb2fmu_step_loop *loop, double proposed)
{
    const double proposal = proposed > loop->least ? proposed : loop->least;
    const double left = loop->span - loop->passed;
    if (left <= proposal * (1.0 + 1e-10)) {
        return left;
    }
    return left < 2.0 * proposal ? 0.5 * left : proposal;
}

/* x' at the start of a step, if the step before has not left it. */
static enum mb2fmu_outcome mb2fmu_loop_slope(mb2fmu_integrator *integrator, mb2fmu_problem *problem, double t)
{
    mb2fmu_integrator_memory *const memory = &integrator->memory;
    if (memory->slope_known) {
        return MB2FMU_STEP_OK;
    }
    const enum mb2fmu_outcome outcome =
        mb2fmu_solver_evaluate(integrator, problem, t, integrator->work.x, memory->slope);
    memory->slope_known = outcome == MB2FMU_STEP_OK;
    return outcome;
}

static int mb2fmu_loop_is_adaptive(const mb2fmu_integrator *integrator)
{
    return mb2fmu_method_of(&integrator->memory)->control != MB2FMU_FIXED_STEPS;
}

/* At the end of a step, inputs turned out to be others than those it was made with. What x' differs by tells the error
 * that was made by that: where the inputs' error grew with the square of time it is h/3 times the difference, and it
 * grows with h^3. The step is made, but the next one is chosen so that this error is within the tolerance, too. */
static void mb2fmu_loop_turn(mb2fmu_integrator *integrator, mb2fmu_problem *problem, double t, int known)
{
    mb2fmu_work *const work = &integrator->work;
    mb2fmu_integrator_memory *const memory = &integrator->memory;
    for (int i = 0; i < MB2FMU_N_STATES; i++) {
        work->error[i] = memory->slope[i];
    }
    mb2fmu_integrator_invalidate(integrator);
    if (!known || mb2fmu_loop_slope(integrator, problem, t) != MB2FMU_STEP_OK) {
        return;
    }
    for (int i = 0; i < MB2FMU_N_STATES; i++) {
        work->error[i] = (memory->slope[i] - work->error[i]) * (work->step / 3.0);
    }
    const double error = mb2fmu_loop_norm(integrator, work->error, work->before_step, work->x);
    const double factor = error < MB2FMU_INFINITY ? MB2FMU_SAFETY / mb2fmu_solver_root(error, 21) : MB2FMU_SHRINK;
    const double wish = work->step * (factor > MB2FMU_SHRINK ? factor : MB2FMU_SHRINK);
    if (error > 0.0 && wish < memory->step) {
        memory->step = wish;
    }
}

#if MB2FMU_N_MEMORY > 0
/* What is remembered from one accepted step to the next; where it cannot be found the old serves on. */
static void mb2fmu_loop_remember(mb2fmu_integrator *integrator, mb2fmu_problem *problem, double t)
{
    mb2fmu_work *const work = &integrator->work;
    double found[MB2FMU_N_MEMORY];
    mb2fmu_solver_inputs(work, problem, t);
    if (model_remember(t, work->x, work->r, problem->p, problem->w, found) == 0) {
        memcpy(problem->w->values + MB2FMU_N_CALCULATED, found, sizeof found);
    }
}
#endif

/* What the interpolant of the step just tried is made from; k and next are there already. */
static void mb2fmu_loop_bracket(mb2fmu_work *work, const mb2fmu_step_loop *loop)
{
    memcpy(work->before_step, work->x, sizeof work->x);
    work->start = loop->start + loop->passed;
    work->step = loop->step;
}

#if MB2FMU_N_MODES > 0
#include "solver_events.c"
#endif

static void mb2fmu_loop_accept(mb2fmu_integrator *integrator, mb2fmu_problem *problem, mb2fmu_step_loop *loop,
                               double passed)
{
    mb2fmu_work *const work = &integrator->work;
#if MB2FMU_N_MODES > 0
    if (!loop->searched) {
        mb2fmu_loop_search(integrator, problem, loop);
    }
    loop->searched = 0;
#else
    mb2fmu_loop_bracket(work, loop);
#endif
    for (int i = 0; i < MB2FMU_N_STATES; i++) {
        work->x[i] = work->next[i];
    }
    work->dense = 1;
    work->linearized = 0;
#if MB2FMU_N_MODES > 0
    passed = mb2fmu_loop_events(integrator, problem, loop, passed);
#endif
    loop->passed = passed;
    problem->steps++;
    const double t = passed < loop->span ? loop->start + passed : loop->end;
#if MB2FMU_N_MEMORY > 0
    mb2fmu_loop_remember(integrator, problem, t);
#endif
    if (problem->accepted == NULL) {
        return;
    }
    const int adaptive = mb2fmu_loop_is_adaptive(integrator);
    const int known = adaptive && mb2fmu_loop_slope(integrator, problem, t) == MB2FMU_STEP_OK;
    double until = loop->end;
    const int answer = problem->accepted(problem->host, t, work->x, &until);
    if (answer & MB2FMU_INPUTS_CHANGED) {
        mb2fmu_loop_turn(integrator, problem, t, known);
    }
    loop->stopped = (answer & MB2FMU_STOP) != 0 || until <= t;
    if (until < loop->end && !loop->stopped) {
        loop->end = until;
        loop->span = until - loop->start;
        loop->stopped = !(loop->passed < loop->span);
    }
}

/* A step was good: what follows from it, and on. */
static void mb2fmu_loop_advance(mb2fmu_integrator *integrator, mb2fmu_problem *problem,
                                mb2fmu_step_loop *loop, double error, int after_rejection)
{
    mb2fmu_integrator_memory *const memory = &integrator->memory;
    const double left = loop->span - loop->passed;
    const int last = mb2fmu_method_of(memory)->last_stage;
    mb2fmu_loop_learn(memory, loop->step, error, after_rejection);
    memory->slope_known = last >= 0;
    for (int i = 0; i < MB2FMU_N_STATES; i++) {
        memory->slope[i] = last >= 0 ? integrator->work.k[last][i] : 0.0;
    }
    mb2fmu_loop_accept(integrator, problem, loop, loop->step < left ? loop->passed + loop->step : loop->span);
}

/* Whether the rest would take the limit so many times over at the pace of the last tried steps, which is no more than
 * twice that of those before: what begins fast and calms down gathers pace. */
static int mb2fmu_loop_lags(const mb2fmu_step_loop *loop, mb2fmu_look *look, int64_t tried, int64_t every, double times)
{
    if (tried == 0 || tried % every != 0) {
        return 0;
    }
    const double progress = loop->passed - look->paced;
    const int gathers = progress > 2.0 * look->pace;
    const double rounds = times * (double)MB2FMU_MAX_INTERNAL_STEPS / (double)every;
    look->paced = loop->passed;
    look->pace = progress;
    return !gathers && progress * rounds < loop->span - loop->passed;
}

static int mb2fmu_loop_is_hopeless(mb2fmu_step_loop *loop, int64_t tried)
{
    loop->hopeless =
        mb2fmu_loop_lags(loop, &loop->looks[0], tried, MB2FMU_EARLY_PACE_STEPS, MB2FMU_EARLY_HOPELESS) ||
        mb2fmu_loop_lags(loop, &loop->looks[1], tried, MB2FMU_PACE_STEPS, MB2FMU_HOPELESS);
    return loop->hopeless;
}

static enum mb2fmu_outcome mb2fmu_loop_adaptive(mb2fmu_integrator *integrator, mb2fmu_problem *problem,
                                                mb2fmu_step_loop *loop)
{
    mb2fmu_integrator_memory *const memory = &integrator->memory;
    const mb2fmu_attempt attempt = mb2fmu_method_of(memory)->attempt;
    const double latest = fabs(loop->start) > fabs(loop->end) ? fabs(loop->start) : fabs(loop->end);
    int after_rejection = 0;
    loop->least = 16.0 * DBL_EPSILON * latest;
    for (int64_t tried = 0; tried < MB2FMU_MAX_INTERNAL_STEPS && !mb2fmu_loop_is_hopeless(loop, tried); tried++) {
        const double t = loop->start + loop->passed;
#if MB2FMU_N_MODES > 0
        loop->fresh = loop->approach > 0.0 ? loop->fresh : !memory->slope_known;
#endif
        enum mb2fmu_outcome outcome = mb2fmu_loop_slope(integrator, problem, t);
        if (outcome != MB2FMU_STEP_OK) {
            return outcome;
        }
        if (!(memory->step > 0.0)) {
            mb2fmu_loop_first_step(integrator, problem, loop);
        }
        loop->step = mb2fmu_loop_choose(loop, memory->step);
#if MB2FMU_N_MODES > 0
        loop->step = loop->approach > 0.0 ? loop->approach : loop->step;
#endif
        outcome = attempt(integrator, problem, t, loop->step);
        const double error = outcome == MB2FMU_STEP_OK ? mb2fmu_loop_error(integrator, t) : MB2FMU_INFINITY;
#if MB2FMU_N_MODES > 0
        if (error <= 1.0 && mb2fmu_loop_goes_past(integrator, problem, loop)) {
            continue;
        }
        loop->approach = 0.0;
#endif
        if (error <= 1.0) {
            mb2fmu_loop_advance(integrator, problem, loop, error, after_rejection);
#if MB2FMU_N_MODES > 0
            if (loop->outcome != MB2FMU_STEP_OK || problem->at_event) {
                return loop->outcome;
            }
#endif
            if (loop->stopped || !(loop->passed < loop->span)) {
                return MB2FMU_STEP_OK;
            }
            after_rejection = 0;
            continue;
        }
        problem->rejected++;
        after_rejection = 1;
        memory->step = loop->step * mb2fmu_loop_shrink(memory, error);
        if (!(memory->step >= loop->least)) {
            return outcome == MB2FMU_STEP_OK ? MB2FMU_STEP_TOO_SMALL : outcome;
        }
    }
    return MB2FMU_STEP_TOO_MANY;
}

/* Number of equal internal steps; 0: too many. A multiple of the fixed step but for round-off is not divided once
 * more. */
static int64_t mb2fmu_loop_pieces(double span, double fixed_step)
{
    const double pieces = fixed_step > 0.0 ? ceil(span / fixed_step * (1.0 - 1e-9)) : 1.0;
    if (!(pieces <= MB2FMU_MAX_FIXED_STEPS)) {
        return 0;
    }
    return pieces > 1.0 ? (int64_t)pieces : 1;
}

static enum mb2fmu_outcome mb2fmu_loop_fixed(mb2fmu_integrator *integrator, mb2fmu_problem *problem,
                                             mb2fmu_step_loop *loop)
{
    const mb2fmu_attempt attempt = mb2fmu_method_of(&integrator->memory)->attempt;
    while (loop->passed < loop->span && !loop->stopped) {
        const double base = loop->passed;
        const double span = loop->span;
        const int64_t pieces = mb2fmu_loop_pieces(span - base, integrator->memory.fixed_step);
        if (pieces == 0) {
            return MB2FMU_STEP_TOO_MANY;
        }
        loop->step = (span - base) / (double)pieces;
        /* The hook may bring the end nearer: then the rest is divided anew. */
        for (int64_t piece = 1; piece <= pieces && loop->span >= span && !loop->stopped; piece++) {
            const enum mb2fmu_outcome outcome = attempt(integrator, problem, loop->start + loop->passed, loop->step);
            if (outcome != MB2FMU_STEP_OK) {
                return outcome;
            }
#if MB2FMU_N_MODES > 0
            loop->fresh = 1;
#endif
            mb2fmu_loop_accept(integrator, problem, loop,
                               piece < pieces ? base + (double)piece * loop->step : span);
#if MB2FMU_N_MODES > 0
            if (loop->outcome != MB2FMU_STEP_OK || problem->at_event) {
                return loop->outcome;
            }
            if (loop->jumped) {
                break;
            }
#endif
        }
    }
    return MB2FMU_STEP_OK;
}
