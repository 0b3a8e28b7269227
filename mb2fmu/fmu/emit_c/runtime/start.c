/* start.c: start values on the constraints, found in Initialization Mode.
 *
 * Start values that are guesses are solved for, from what was set; where something is remembered, what the dependent
 * coordinates are at first. Newton's method stays on the branch of the assembly that it begins on. Where that has no
 * solution, and guesses are still the FMU's own, the way is made in pieces: the FMU's own start, which is assembled,
 * is moved to what was set, time, start values and parameters together, as a hand would move the crank. So the branch
 * is kept as long as no singular position lies between. Nothing of this depends on what was set before and then set
 * again.
 */
#include "instance.h"

#if MB2FMU_STARTS

#define MB2FMU_SHORTEST_WAY (1.0 / 1024.0)

/* Solves at one place; what is found goes to instance->out, or becomes what is remembered. 0 or the number of the solve
 * that failed. */
static int mb2fmu_solve_start(mb2fmu_instance *instance, double t, const double x[], const double p[])
{
#if MB2FMU_N_INITIALIZED > 0
    return model_initialize(t, x, instance->now.r, p, instance->w, instance->out);
#else
    const int failed = model_remember(t, x, instance->now.r, p, instance->w, instance->found);
    if (failed == 0) {
        memcpy(instance->w->values + MB2FMU_N_CALCULATED, instance->found, sizeof instance->found);
    }
    return failed;
#endif
}

/* States as they were set. */
static const double *mb2fmu_states_as_set(const mb2fmu_instance *instance)
{
#if MB2FMU_N_INITIALIZED > 0
    return instance->now.declared;
#else
    return instance->now.x;
#endif
}

/* Guesses for a piece of the way are what was found for the last one. 0 where the importer has set its own. */
static int mb2fmu_guess_from(mb2fmu_instance *instance, const double from[])
{
    const double *const set = mb2fmu_states_as_set(instance);
    for (int i = 0; i < MB2FMU_N_VARIABLES; ++i) {
        const mb2fmu_variable *const variable = &model_variables[i];
        const int k = variable->index;
        if (variable->source == MB2FMU_SOURCE_STATE && variable->initial == MB2FMU_INITIAL_APPROX) {
            if (memcmp(&set[k], &instance->before.x[k], sizeof set[k]) != 0) {
                return 0;
            }
            instance->guess[k] = from[k];
        }
    }
    return 1;
}

/* A piece of the way, to `part` of all of it. */
static int mb2fmu_loop_on(mb2fmu_instance *instance, double part, const double from[])
{
    const mb2fmu_snapshot *const own = &instance->before;
    const double *const set = mb2fmu_states_as_set(instance);
    int failed;
    int i;
    for (i = 0; i < MB2FMU_N_STATES; ++i) {
        instance->guess[i] = part < 1.0 ? own->x[i] + part * (set[i] - own->x[i]) : set[i];
    }
    for (i = 0; i < MB2FMU_N_PARAMETERS; ++i) {
        const double p = instance->now.p[i];
        instance->way_p[i] = part < 1.0 ? own->p[i] + part * (p - own->p[i]) : p;
    }
    (void)mb2fmu_guess_from(instance, from);
    failed = model_prepare(instance->way_p, instance->w);
    return failed == 0 ? mb2fmu_solve_start(instance, part * instance->now.clock.time, instance->guess, instance->way_p)
                       : failed;
}

/* In pieces from the FMU's own start, after `failed` from there in one. */
static int mb2fmu_loop_to_start(mb2fmu_instance *instance, int failed)
{
    double *const from = instance->x_next;
    double done = 0.0;
    double size = 0.5;
    memset(&instance->before, 0, sizeof instance->before);
    mb2fmu_set_start_values(&instance->before);
    memcpy(from, instance->before.x, sizeof instance->x_next);
    if (!mb2fmu_guess_from(instance, from)) {
        return failed;
    }
    while (done < 1.0 && size >= MB2FMU_SHORTEST_WAY) {
        const double next = done + size < 1.0 ? done + size : 1.0;
        const int lost = mb2fmu_loop_on(instance, next, from);
        if (lost == 0) {
            done = next;
#if MB2FMU_N_INITIALIZED > 0
            memcpy(from, instance->out, sizeof instance->x_next);
#endif
        } else {
            failed = lost;
            size *= 0.5;
        }
    }
    return done < 1.0 ? failed : 0;
}

static int mb2fmu_find_start(mb2fmu_instance *instance)
{
    mb2fmu_snapshot *const now = &instance->now;
    int failed;
    if (now->mode != MB2FMU_INITIALIZATION || (instance->levels & MB2FMU_LEVEL_STARTED) != 0) {
        return 0;
    }
#if MB2FMU_N_MEMORY > 0
    memcpy(now->memory, model_first_memory, sizeof now->memory);
    mb2fmu_recall(instance);
#endif
    failed = mb2fmu_provide(instance, MB2FMU_LEVEL_PREPARED);
    if (failed != 0) {
        return failed;
    }
    memcpy(instance->guess, mb2fmu_states_as_set(instance), sizeof instance->guess);
    failed = mb2fmu_solve_start(instance, now->clock.time, instance->guess, now->p);
    if (failed != 0) {
        failed = mb2fmu_loop_to_start(instance, failed);
    }
    if (failed != 0) {
        instance->levels = 0; /* what depends on parameters was prepared for others */
        mb2fmu_recall(instance);
        return failed;
    }
#if MB2FMU_N_INITIALIZED > 0
    memcpy(now->x, instance->out, sizeof now->declared);
#else
    memcpy(now->memory, instance->found, sizeof instance->found);
#endif
    instance->levels = MB2FMU_LEVEL_PREPARED | MB2FMU_LEVEL_STARTED;
#if MB2FMU_N_MODES > 0
    mb2fmu_recall(instance);
    failed = mb2fmu_find_modes(instance);
    if (failed != 0) {
        instance->levels = 0;
    }
    return failed;
#else
    return 0;
#endif
}

#endif
