/* What CVODE asks of a Model Exchange FMU: x' and event indicators at a time and states, without Python in between.
 *
 * The twin of _FailureAwareCvodeSolver in fmpy_instances.py, which sets the functions of the FMU.
 */

#include <stddef.h>

#ifdef _WIN32
#define EXPORTED __declspec(dllexport)
#else
#define EXPORTED __attribute__((visibility("default")))
#endif

struct fmu_functions {
    void *instance;
    int (*set_time)(void *instance, double time);
    int (*set_states)(void *instance, const double states[], size_t count);
    int (*get_derivatives)(void *instance, double derivatives[], size_t count);
    int (*get_indicators)(void *instance, double indicators[], size_t count);
    size_t states, indicators; /* how many */
    size_t numbers_offset;     /* of the pointer to the numbers, in the content of one of CVODE's vectors */
};

struct cvode_vector { /* the beginning of it */
    char *content;
};

enum { WARNING = 1, DISCARD = 2 };                           /* of FMI */
enum { SUCCEEDED = 0, TRY_SHORTER_STEP = 1, GIVE_UP = -1 }; /* of CVODE */

EXPORTED int cvode_derivatives(double t, const struct cvode_vector *y, struct cvode_vector *y_dot, void *user_data);
EXPORTED int cvode_indicators(double t, const struct cvode_vector *y, double *indicators, void *user_data);

static double *numbers_of(const struct cvode_vector *vector, const struct fmu_functions *fmu)
{
    return *(double **)(void *)(vector->content + fmu->numbers_offset);
}

/* A call's status as CVODE takes it: where there is no value, a shorter step may do after Discard, and nothing else. */
static int answer(int status)
{
    return status <= WARNING ? SUCCEEDED : status == DISCARD ? TRY_SHORTER_STEP : GIVE_UP;
}

static int set_time_and_states(double t, const struct cvode_vector *y, const struct fmu_functions *fmu)
{
    const int status = fmu->set_time(fmu->instance, t);
    if (status > WARNING || !fmu->states)
        return status;
    return fmu->set_states(fmu->instance, numbers_of(y, fmu), fmu->states);
}

int cvode_derivatives(double t, const struct cvode_vector *y, struct cvode_vector *y_dot, void *user_data)
{
    const struct fmu_functions *const fmu = user_data;
    int status = set_time_and_states(t, y, fmu);
    if (!fmu->states) /* one dummy state */
        *numbers_of(y_dot, fmu) = 0.0;
    else if (status <= WARNING)
        status = fmu->get_derivatives(fmu->instance, numbers_of(y_dot, fmu), fmu->states);
    return answer(status);
}

int cvode_indicators(double t, const struct cvode_vector *y, double *indicators, void *user_data)
{
    const struct fmu_functions *const fmu = user_data;
    const int status = set_time_and_states(t, y, fmu);
    return answer(status > WARNING ? status : fmu->get_indicators(fmu->instance, indicators, fmu->indicators));
}
