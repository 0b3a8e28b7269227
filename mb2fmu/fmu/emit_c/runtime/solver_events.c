/* solver_events.c: events within an internal step; a part of solver_step_loop.c where the model has modes.
 *
 * After each internal step margins are looked at on the way, at quarters of it, on the method's own interpolant. Where
 * one is negative the first instant at which any is gets bracketed, by false position (Illinois) with bisection where
 * that is slow, down to the last digit of time. A step with an error estimate is tried again, as far as there. Then
 * it ends there, behind the event, and modes are found anew; with Event Mode the loop ends there instead, and the host
 * has the modes found.
 *
 * Behind an event a margin may be zero, and its mode right at this instant only: that of "h <= 0" where a ball leaves
 * the ground. If the ball is back within a quarter of the step, no look sees that it was away, and it falls through. So
 * the first look behind an event is a millionth of the step after it.
 *
 * Source: Dowell and Jarratt: A modified regula falsi method, BIT 11 (1971) 168.
 */
#include "events.h"

#define MB2FMU_LOOKS 4
#define MB2FMU_MOST_CUTS 120
#define MB2FMU_EARLY_LOOK (1.0 / 1048576.0)

/* The smallest margin at a part s of the last accepted step, plus the slack; what fails is far below 0. */
static double mb2fmu_margin_at(mb2fmu_integrator *integrator, mb2fmu_problem *problem, double part, double x[])
{
    mb2fmu_work *const work = &integrator->work;
    const double t = work->start + part * work->step;
    double least = MB2FMU_INFINITY;
    mb2fmu_method_of(&integrator->memory)->dense(work, part, x);
    mb2fmu_solver_inputs(work, problem, t);
    if (mb2fmu_due(&work->settling, t, x, work->r, problem->p, problem->w, MB2FMU_SLACK) < -1) {
        return -MB2FMU_INFINITY;
    }
    for (int k = 0; k < MB2FMU_N_INDICATORS; k++) {
        const double margin = work->settling.margin[k] + MB2FMU_SLACK;
        least = margin < least ? margin : least;
    }
    return least;
}

/* The part of the step at which the first margin has become negative, and x there: the far end of the bracket. */
static double mb2fmu_first_crossing(mb2fmu_integrator *integrator, mb2fmu_problem *problem, double low, double high,
                                    double at_high, double x[])
{
    mb2fmu_work *const work = &integrator->work;
    const double latest = fabs(work->start) + work->step;
    double at_low = mb2fmu_margin_at(integrator, problem, low, x);
    int side = 0;
    for (int cut = 0; cut < MB2FMU_MOST_CUTS && (high - low) * work->step > DBL_EPSILON * latest * 0.5; cut++) {
        const double weight = at_low - at_high;
        double part = cut % 4 == 3 || !(weight > 0.0 && weight < MB2FMU_INFINITY)
                          ? 0.5 * (low + high)
                          : low + (high - low) * (at_low / weight);
        double at;
        if (!(part > low && part < high)) {
            part = 0.5 * (low + high);
        }
        if (!(part > low && part < high)) {
            break;
        }
        at = mb2fmu_margin_at(integrator, problem, part, x);
        if (at < 0.0) {
            high = part;
            at_high = at;
            at_low *= side < 0 ? 0.5 : 1.0;
            side = -1;
        } else {
            low = part;
            at_low = at;
            at_high *= side > 0 ? 0.5 : 1.0;
            side = 1;
        }
    }
    (void)mb2fmu_margin_at(integrator, problem, high, x);
    return high;
}

/* Looks through the step just tried: where the first event lies, and x there in work.point. */
static void mb2fmu_loop_search(mb2fmu_integrator *integrator, mb2fmu_problem *problem, mb2fmu_step_loop *loop)
{
    mb2fmu_work *const work = &integrator->work;
    double low = 0.0;
    mb2fmu_loop_bracket(work, loop);
    work->dense = 0;
    loop->searched = 1;
    loop->crossing = 2.0;
    for (int look = 1; look <= MB2FMU_LOOKS && loop->crossing > 1.0; look++) {
        double high = (double)look / MB2FMU_LOOKS;
        double at_high = mb2fmu_margin_at(integrator, problem, high, work->point);
        if (look == 1 && loop->fresh && !(at_high < 0.0)) {
            const double early = mb2fmu_margin_at(integrator, problem, MB2FMU_EARLY_LOOK, work->point);
            if (early < 0.0) {
                high = MB2FMU_EARLY_LOOK;
                at_high = early;
            }
        }
        if (at_high < 0.0) {
            loop->crossing = mb2fmu_first_crossing(integrator, problem, low, high, at_high, work->point);
        }
        low = high;
    }
}

/* Whether an event lies within the step just tried, so that it is to be tried again, as far as the event. The error of
 * the long step says nothing of what x' does right before the event alone (Stribeck's rise of friction as slip comes to
 * rest): none of its stages needs to lie there. The last stage of the short step does. */
static int mb2fmu_loop_goes_past(mb2fmu_integrator *integrator, mb2fmu_problem *problem, mb2fmu_step_loop *loop)
{
    const int tried_again = loop->approach > 0.0;
    mb2fmu_loop_search(integrator, problem, loop);
    if (tried_again || loop->crossing > 1.0 - MB2FMU_EARLY_LOOK || loop->crossing <= MB2FMU_EARLY_LOOK ||
        !(loop->crossing * loop->step > loop->least)) {
        return 0;
    }
    loop->approach = loop->crossing * loop->step;
    loop->searched = 0;
    return 1;
}

/* After a step: what an event in it changed, and how far the loop is. */
static double mb2fmu_loop_events(mb2fmu_integrator *integrator, mb2fmu_problem *problem, mb2fmu_step_loop *loop,
                                 double passed)
{
    mb2fmu_work *const work = &integrator->work;
    loop->jumped = loop->crossing <= 1.0;
    loop->outcome = MB2FMU_STEP_OK;
    if (!loop->jumped) {
        return passed;
    }
    const double reached = loop->crossing < 1.0 ? loop->passed + loop->crossing * loop->step : passed;
    const double at_once = 4.0 * DBL_EPSILON * (fabs(loop->start) + loop->span) + MB2FMU_AT_ONCE * loop->span;
    loop->at_once = reached > loop->passed + at_once ? 0 : loop->at_once + 1;
    memcpy(work->x, work->point, sizeof work->x);
    mb2fmu_solver_inputs(work, problem, loop->start + reached);
    problem->events++;
    if (problem->event_mode) {
        problem->at_event = 1;
        mb2fmu_integrator_invalidate(integrator);
        return reached;
    }
    work->settling.before = NULL;
    problem->unsettled = mb2fmu_settle(&work->settling, loop->start + reached, work->x, work->r, problem->p,
                                       problem->w, 0.5 * MB2FMU_SLACK, 0, 1);
    if (problem->unsettled != 0 || loop->at_once > MB2FMU_MOST_AT_ONCE || problem->events > MB2FMU_MOST_EVENTS) {
        loop->outcome = problem->unsettled > 0 ? MB2FMU_STEP_SINGULAR : MB2FMU_STEP_UNSETTLED;
        problem->failed = problem->unsettled > 0 ? problem->unsettled : 0;
        work->fault_time = loop->start + reached;
    }
    mb2fmu_integrator_invalidate(integrator);
    return reached;
}
