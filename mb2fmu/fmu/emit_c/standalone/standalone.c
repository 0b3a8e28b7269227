/* standalone.c: the equations and the solver of an FMU behind plain C functions, without FMI.
 *
 * Included by the generated file <name>.c, after the runtime; declarations and their contracts are in <name>.h. What is
 * evaluated is the FMU's own code, so every result has the bits that the FMU has.
 */
#include <stdlib.h>
#include <string.h>

struct MB2FMU_UNIT(model) {
    mb2fmu_prepared w;
    mb2fmu_integrator integrator;
    mb2fmu_clock clock;
    double p[MB2FMU_SIZE(MB2FMU_N_PARAMETERS)];
    double y[MB2FMU_SIZE(MB2FMU_N_OUT)];
    double next[MB2FMU_SIZE(MB2FMU_N_STATES)];
#if MB2FMU_N_MEMORY > 0
    double memory[MB2FMU_N_MEMORY]; /* of before a step, or what was found */
#endif
#if MB2FMU_N_MODES > 0
    int settled; /* no parameter was set since the last step, which left these states with these inputs */
    double settled_x[MB2FMU_SIZE(MB2FMU_N_STATES)];
    double settled_r[MB2FMU_SIZE(MB2FMU_N_INPUTS)];
#endif
    char message[512];
    double room[];
};

/* Notes why a solve failed, and hands its number on. */
static int standalone_failed(MB2FMU_UNIT(model) * model, int failed)
{
    model->message[0] = '\0';
    if (failed != 0) {
        (void)snprintf(model->message, sizeof model->message, "%s", model_failure(failed));
    }
    return failed;
}

/* What is remembered begins anew. */
static void standalone_forget(MB2FMU_UNIT(model) * model)
{
#if MB2FMU_N_MEMORY > 0
    memcpy(model->w.values + MB2FMU_N_CALCULATED, model_first_memory, sizeof model_first_memory);
#else
    (void)model;
#endif
}

#if MB2FMU_N_MEMORY > 0
/* The point that has been reached is remembered. 0 or the number of the solve that failed. */
static int standalone_remember(MB2FMU_UNIT(model) * model, double t, const double r[], const double x[])
{
    const int failed = model_remember(t, x, r, model->p, &model->w, model->memory);
    if (failed == 0) {
        memcpy(model->w.values + MB2FMU_N_CALCULATED, model->memory, sizeof model->memory);
    }
    return failed;
}
#endif

#if MB2FMU_N_MODES > 0
/* Notes why no modes are right, and hands the answer on. */
static int standalone_unsettled(MB2FMU_UNIT(model) * model, double t, int answer)
{
    const mb2fmu_settling *const s = &model->integrator.work.settling;
    const int one = s->last[0], other = s->last[1];
    char time[MB2FMU_NUMBER_SIZE];
    if (answer >= 0) {
        return standalone_failed(model, answer);
    }
    (void)snprintf(model->message, sizeof model->message, "at time %s: %s; changed last: %s%s%s",
                   mb2fmu_solver_number(time, t),
                   answer == MB2FMU_CHATTERS
                       ? "no modes are right: they switch to and fro"
                       : "events set a state to two values at once, or to what is no finite number",
                   one < 0 ? "none" : model_switches[one].name, other < 0 ? "" : ", ",
                   other < 0 ? "" : model_switches[other].name);
    return answer;
}

/* Modes as a unit finds them when it leaves Initialization Mode, and the states behind an event at the start. */
static int standalone_begin_modes(MB2FMU_UNIT(model) * model, double t, const double r[], double x[])
{
    mb2fmu_settling *const s = &model->integrator.work.settling;
    s->before = NULL;
    model->settled = 0;
    int answer = mb2fmu_begin_modes(s, t, x, r, model->p, &model->w);
    if (answer == 0) {
        answer = standalone_remember(model, t, r, x);
    }
    if (answer == 0) {
        memcpy(model->next, x, MB2FMU_N_STATES * sizeof x[0]);
        answer = mb2fmu_settle(s, t, model->next, r, model->p, &model->w, 0.5 * MB2FMU_SLACK, 0, 1);
    }
    if (answer == 0 && s->changed) {
        memcpy(x, model->next, MB2FMU_N_STATES * sizeof x[0]);
    }
    return standalone_unsettled(model, t, answer);
}

/* Modes as a step begins: inputs and parameters may have been set since the last one; what is held is put at rest. */
static int standalone_settle(MB2FMU_UNIT(model) * model, double t, const double r[], double x[])
{
    mb2fmu_settling *const s = &model->integrator.work.settling;
    const int same = model->settled && memcmp(x, model->settled_x, MB2FMU_N_STATES * sizeof x[0]) == 0;
    s->before = same ? model->settled_r : NULL;
    int answer = mb2fmu_settle(s, t, x, r, model->p, &model->w, 0.5 * MB2FMU_SLACK, 1, 1);
    if (answer == 0 && !s->changed) {
        answer = mb2fmu_keep_at_rest(s, t, x, r, model->p, &model->w);
    }
    if (answer == 0 && s->changed) {
        mb2fmu_integrator_invalidate(&model->integrator);
    }
    return standalone_unsettled(model, t, answer);
}
#endif

int MB2FMU_UNIT(set_parameters)(MB2FMU_UNIT(model) * model, const double p[])
{
    memcpy(model->p, p, MB2FMU_N_PARAMETERS * sizeof p[0]);
    mb2fmu_integrator_invalidate(&model->integrator);
#if MB2FMU_N_MODES > 0
    model->settled = 0;
#endif
    return standalone_failed(model, model_prepare(model->p, &model->w));
}

MB2FMU_UNIT(model) * MB2FMU_UNIT(create)(void)
{
    MB2FMU_UNIT(model) *const model = calloc(1, sizeof *model + model_room() * sizeof(double));
    if (model == NULL) {
        return NULL;
    }
    model_start(&model->w, model->room);
    mb2fmu_integrator_reset(&model->integrator, MB2FMU_DEFAULT_SOLVER, MB2FMU_DEFAULT_TOLERANCE,
                            MB2FMU_DEFAULT_INTERNAL_STEP);
    standalone_forget(model);
    (void)MB2FMU_UNIT(set_parameters)(model, MB2FMU_UNIT(p0));
    return model;
}

void MB2FMU_UNIT(destroy)(MB2FMU_UNIT(model) * model)
{
    free(model);
}

const char *MB2FMU_UNIT(message)(const MB2FMU_UNIT(model) * model)
{
    return model->message;
}

int MB2FMU_UNIT(derivatives)(MB2FMU_UNIT(model) * model, double t, const double x[], const double r[], double dx[])
{
    return standalone_failed(model, model_rhs(t, x, r, model->p, &model->w, dx));
}

int MB2FMU_UNIT(outputs)(MB2FMU_UNIT(model) * model, double t, const double x[], const double r[], double y[])
{
    double *const position = model->y;
    double *const velocity = position + MB2FMU_N_POSITION;
    double *const acceleration = velocity + MB2FMU_N_VELOCITY;
    int failed = model_position(t, x, r, model->p, &model->w, position);
    failed = failed != 0 ? failed : model_velocity(t, x, r, model->p, &model->w, velocity);
    failed = failed != 0 ? failed : model_acceleration(t, x, r, model->p, &model->w, acceleration);
    for (int i = 0; i < MB2FMU_UNIT(n_outputs); i++) {
        const int index = standalone_outputs[i].index;
        switch (standalone_outputs[i].source) {
        case MB2FMU_SOURCE_POSITION:
            y[i] = position[index];
            break;
        case MB2FMU_SOURCE_VELOCITY:
            y[i] = velocity[index];
            break;
        default:
            y[i] = acceleration[index];
            break;
        }
    }
    return standalone_failed(model, failed);
}

int MB2FMU_UNIT(jacobian)(MB2FMU_UNIT(model) * model, double t, const double x[], const double r[], double jacobian[])
{
    memset(jacobian, 0, MB2FMU_N_STATES * MB2FMU_N_STATES * sizeof jacobian[0]);
    return standalone_failed(model, model_jacobian(t, x, r, model->p, &model->w, jacobian, model->next));
}

/* Where what is remembered begins: twice, as an FMU does, when it looks for its start, and when it has found it. */
static int standalone_begin_memory(MB2FMU_UNIT(model) * model, double t, const double r[], double x[])
{
    int failed = 0;
#if MB2FMU_N_MEMORY > 0 && MB2FMU_N_INITIALIZED == 0
    failed = standalone_remember(model, t, r, x);
#endif
#if MB2FMU_N_MODES > 0
    return failed != 0 ? standalone_failed(model, failed) : standalone_begin_modes(model, t, r, x);
#elif MB2FMU_N_MEMORY > 0
    failed = failed != 0 ? failed : standalone_remember(model, t, r, x);
#else
    (void)t;
    (void)r;
    (void)x;
#endif
    return standalone_failed(model, failed);
}

/* Begins at time t from the start values x, which are moved where they are guesses. */
static int standalone_begin(MB2FMU_UNIT(model) * model, double t, const double r[], double x[])
{
    int failed = 0;
    standalone_forget(model);
    mb2fmu_clock_start(&model->clock, t);
    mb2fmu_integrator_reset(&model->integrator, MB2FMU_DEFAULT_SOLVER, MB2FMU_DEFAULT_TOLERANCE,
                            MB2FMU_DEFAULT_INTERNAL_STEP);
#if MB2FMU_N_INITIALIZED > 0
    failed = model_initialize(t, x, r, model->p, &model->w, model->next);
    if (failed != 0) {
        return standalone_failed(model, failed);
    }
    memcpy(x, model->next, MB2FMU_N_STATES * sizeof x[0]);
#endif
    failed = standalone_begin_memory(model, t, r, x);
    mb2fmu_integrator_invalidate(&model->integrator);
    return failed;
}

int MB2FMU_UNIT(start)(MB2FMU_UNIT(model) * model, double t, const double r[], double x[])
{
    memcpy(x, MB2FMU_UNIT(x0), MB2FMU_N_STATES * sizeof x[0]);
    return standalone_begin(model, t, r, x);
}

double MB2FMU_UNIT(time)(const MB2FMU_UNIT(model) * model)
{
    return model->clock.time;
}

/* From x at the model's time, in place; what is remembered goes with it. */
static int standalone_step_loop(MB2FMU_UNIT(model) * model, double h, const double r[], double x[])
{
    mb2fmu_problem problem = {0};
    problem.p = model->p;
    problem.w = &model->w;
    problem.r0 = r;
    problem.t0 = model->clock.time;
#if MB2FMU_N_MODES > 0
    const int answer = standalone_settle(model, problem.t0, r, x);
    if (answer != 0) {
        return answer;
    }
#endif
    return (int)mb2fmu_integrate(&model->integrator, &problem, problem.t0, h, x, model->message,
                                 sizeof model->message);
}

int MB2FMU_UNIT(step)(MB2FMU_UNIT(model) * model, double h, const double r[], double x[])
{
    int failed;
    model->message[0] = '\0';
#if MB2FMU_N_MEMORY > 0
    memcpy(model->memory, model->w.values + MB2FMU_N_CALCULATED, sizeof model->memory);
#endif
    memcpy(model->next, x, MB2FMU_N_STATES * sizeof x[0]);
    failed = standalone_step_loop(model, h, r, model->next);
    if (failed == 0) {
        memcpy(x, model->next, MB2FMU_N_STATES * sizeof x[0]);
        mb2fmu_clock_advance(&model->clock, h);
#if MB2FMU_N_MODES > 0
        model->settled = 1;
        memcpy(model->settled_x, x, MB2FMU_N_STATES * sizeof x[0]);
        memcpy(model->settled_r, r, MB2FMU_N_INPUTS * sizeof r[0]);
#endif
        return 0;
    }
#if MB2FMU_N_MEMORY > 0
    memcpy(model->w.values + MB2FMU_N_CALCULATED, model->memory, sizeof model->memory);
#endif
    return failed;
}

void MB2FMU_UNIT(inputs_changed)(MB2FMU_UNIT(model) * model)
{
    mb2fmu_integrator_invalidate(&model->integrator);
}
