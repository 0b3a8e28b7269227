/* runge_kutta_stages.c: the stages of one explicit Runge-Kutta step of a Model Exchange FMU, and its error.
 *
 * Why it exists: a call by ctypes takes a hundred times as long as the call itself, and nine of ten calls of an audit are
 * those of the auditor's integrator. Each call is noted for the supervisor as calls from Python are, what the FMU fills
 * is guarded as there, and the states that it gets are overwritten after the call, as an importer may do.
 */
#include <math.h>
#include <stdint.h>
#include <string.h>

enum { FILL_BYTE = 0xA5, GUARD = 4, NAME_BYTES = 96, MOST_SUCCESSFUL = 1, DISORDER = -1 };

typedef struct {
    void *instance;
    int (*set_time)(void *, double);
    int (*set_states)(void *, const double *, size_t);
    int (*get_derivatives)(void *, double *, size_t);
    volatile uint64_t *calls; /* the supervisor's count, and behind it the name of the present function */
    char *name;
    const char *names; /* of the three functions */
    size_t n_states;
    double *given; /* n_states + GUARD: what the FMU gets, then what it fills */
} fmu;

/* Returns the status of a call; notes its beginning. */
#define CALL(number, function, ...)                                                     \
    (memcpy(f->name, f->names + (number) * NAME_BYTES, NAME_BYTES), *f->calls += 1, \
     f->function(f->instance, __VA_ARGS__))

static int is_unwritten(const double *value)
{
    static const uint64_t unwritten = 0xA5A5A5A5A5A5A5A5u;
    return memcmp(value, &unwritten, sizeof unwritten) == 0;
}

/* Writes x' at a time and states; returns 0, or DISORDER where the FMU leaves values unwritten or writes beyond them, or
 * the number of the function that it refused, from 1. */
static int evaluate(const fmu *f, double time, const double *states, double *derivatives, int *status)
{
    const size_t size = f->n_states * sizeof(double);
    *status = CALL(0, set_time, time);
    if (*status < 0 || *status > MOST_SUCCESSFUL) {
        return 1;
    }
    memcpy(f->given, states, size);
    *status = CALL(1, set_states, f->given, f->n_states);
    memset(f->given, FILL_BYTE, size + GUARD * sizeof(double));
    if (*status < 0 || *status > MOST_SUCCESSFUL) {
        return 2;
    }
    *status = CALL(2, get_derivatives, f->given, f->n_states);
    if (*status < 0 || *status > MOST_SUCCESSFUL) {
        return 3;
    }
    memcpy(derivatives, f->given, size);
    for (size_t i = 0; i < f->n_states + GUARD; i++) {
        if (is_unwritten(f->given + i) != (i >= f->n_states)) {
            return DISORDER;
        }
    }
    return 0;
}

/* Writes the stages behind the first one and the state of the last.
 *
 * f: the FMU.    n_stages: behind the first.    rows, nodes: of the method, n_stages × n_stages and n_stages.
 * time, size: of the step, in s.    before: the states at its beginning.
 * stages: (n_stages + 1) × n_states, of which the first is given.    state: n_states.    status: of the last call.
 * Returns as evaluate. */
int integrate_stages(const fmu *f, size_t n_stages, const double *rows, const double *nodes, double time, double size,
                     const double *before, double *stages, double *state, int *status)
{
    const size_t n = f->n_states;
    for (size_t s = 0; s < n_stages; s++) {
        for (size_t i = 0; i < n; i++) {
            double sum = 0.0;
            for (size_t k = 0; k <= s; k++) {
                sum += rows[s * n_stages + k] * stages[k * n + i];
            }
            state[i] = before[i] + size * sum;
        }
        const int refused = evaluate(f, time + nodes[s] * size, state, stages + (s + 1) * n, status);
        if (refused != 0) {
            return refused;
        }
    }
    return 0;
}

/* Returns the largest error of a step, relative to its limit; infinite where an error is not finite.
 *
 * stages, before, state: as integrate_stages left them.    weights: of the method, for all n_stages + 1 stages.
 * size: of the step, in s.    tolerance: relative.    nominals: magnitudes of the n states, > 0. */
double measure_step_error(size_t n, size_t n_stages, const double *weights, double size, double tolerance,
                          const double *nominals, const double *before, const double *state, const double *stages)
{
    double largest = 0.0;
    for (size_t i = 0; i < n; i++) {
        double sum = 0.0;
        for (size_t k = 0; k <= n_stages; k++) {
            sum += weights[k] * stages[k * n + i];
        }
        const double error = fabs(size * sum);
        double magnitude = fabs(state[i]);
        magnitude = fabs(before[i]) > magnitude ? fabs(before[i]) : magnitude;
        magnitude = 1e-3 * nominals[i] > magnitude ? 1e-3 * nominals[i] : magnitude;
        const double ratio = isfinite(error) ? error / (tolerance * magnitude) : INFINITY;
        largest = ratio > largest ? ratio : largest;
    }
    return largest;
}
