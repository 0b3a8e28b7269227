/* batch_unit.c: one native FMU of FMI 2, run over and over in Co-Simulation with other parameters and start values.
 *
 * Why it exists: side by side in vector registers (batch_step_loop.h) all instances do the same; at events each goes its own
 * way. So models with events are run one by one, by their own unit and with its bits, in a loop that costs nothing beside
 * it. It is no part of a unit: it is compiled once for all of them, and told where an FMU's functions are.
 */
#include <stddef.h>

#include "batch_course.h"
#include "fmi2FunctionTypes.h"

#if defined(_WIN32)
#define MB2FMU_SEEN __declspec(dllexport)
#elif defined(__GNUC__)
#define MB2FMU_SEEN __attribute__((visibility("default")))
#else
#define MB2FMU_SEEN
#endif

enum { MB2FMU_UNIT_SAYS = 4 }; /* why an instance ended early: the FMU's message tells */

/* An FMU, where its functions are, and what its variables are called. */
typedef struct {
    fmi2Component component;
    fmi2ResetTYPE *reset;
    fmi2SetupExperimentTYPE *setup;
    fmi2EnterInitializationModeTYPE *enter;
    fmi2ExitInitializationModeTYPE *leave;
    fmi2SetRealTYPE *set;
    fmi2GetRealTYPE *get;
    fmi2DoStepTYPE *step;
    const fmi2ValueReference *states, *parameters, *inputs, *outputs, *selected;
    long n_states, n_parameters, n_inputs, n_outputs;
    long instance; /* at work: whoever hears a message knows which one it is about */
} mb2fmu_run_unit;

/* Sets or reads n variables. */
static int mb2fmu_write(const mb2fmu_run_unit *unit, const fmi2ValueReference references[], long n, const double values[])
{
    return n == 0 || unit->set(unit->component, references, (size_t)n, values) <= fmi2Warning;
}

static int mb2fmu_read(const mb2fmu_run_unit *unit, const fmi2ValueReference references[], long n, double values[])
{
    return n == 0 || unit->get(unit->component, references, (size_t)n, values) <= fmi2Warning;
}

static int mb2fmu_begin(const mb2fmu_run_unit *unit, const mb2fmu_course *course, long instance)
{
    const long row = course->parameter_rows == 1 ? 0 : instance;
    return unit->reset(unit->component) <= fmi2Warning &&
           unit->setup(unit->component, fmi2True, course->tolerance, course->start, fmi2False, 0.0) <= fmi2Warning &&
           mb2fmu_write(unit, unit->parameters, unit->n_parameters, course->p + row * unit->n_parameters) &&
           mb2fmu_write(unit, unit->states, unit->n_states, course->x0 + instance * unit->n_states) &&
           mb2fmu_write(unit, unit->inputs, unit->n_inputs, course->r) &&
           unit->enter(unit->component) <= fmi2Warning && unit->leave(unit->component) <= fmi2Warning;
}

/* Reads what is asked for at a communication point. */
static int mb2fmu_keep(const mb2fmu_run_unit *unit, const mb2fmu_course *course, long instance, long point)
{
    const long place = instance * (course->points + 1) + point;
    int good = mb2fmu_read(unit, unit->selected, course->selected, course->path_y + place * course->selected);
    if (course->path_x != NULL) {
        good = good && mb2fmu_read(unit, unit->states, unit->n_states, course->path_x + place * unit->n_states);
    }
    if (point == course->points) {
        good = good && mb2fmu_read(unit, unit->states, unit->n_states, course->end_x + instance * unit->n_states);
        good = good && mb2fmu_read(unit, unit->outputs, unit->n_outputs, course->end_y + instance * unit->n_outputs);
    }
    return good;
}

/* The number of communication points that were reached; one more than there are steps if all went well. */
static long mb2fmu_run_one(const mb2fmu_run_unit *unit, const mb2fmu_course *course, long instance)
{
    if (!mb2fmu_begin(unit, course, instance)) {
        return 0;
    }
    for (long point = 0; point <= course->points; point++) {
        const double t = course->start + (double)(point - 1) * course->step;
        if (point > 0 && unit->step(unit->component, t, course->step, fmi2True) > fmi2Warning) {
            return point;
        }
        if (!mb2fmu_keep(unit, course, instance, point)) {
            return point;
        }
        if (course->input_rows > 1 && course->turns[point] &&
            !mb2fmu_write(unit, unit->inputs, unit->n_inputs, course->r + point * unit->n_inputs)) {
            return point;
        }
    }
    return course->points + 1;
}

/* Runs instances first to end - 1. */
MB2FMU_SEEN void mb2fmu_unit_runs(mb2fmu_run_unit *unit, const mb2fmu_course *course, long first, long end);
void mb2fmu_unit_runs(mb2fmu_run_unit *unit, const mb2fmu_course *course, long first, long end)
{
    for (long i = first; i < end; i++) {
        unit->instance = i;
        const long reached = mb2fmu_run_one(unit, course, i);
        if (reached <= course->points) {
            course->why[i] = MB2FMU_UNIT_SAYS;
            course->when[i] = course->start + (double)(reached > 0 ? reached - 1 : 0) * course->step;
        }
    }
}
