/* instance.h: the core that both FMI versions and both kinds of an FMU share.
 *
 * Why it exists: FMI 2 and FMI 3, Model Exchange and Co-Simulation differ in names, in what may be called when, and in
 * how an answer is given; values, evaluation, derivatives, state and messages are the same. fmi2.c and fmi3.c are thin
 * shells around what is declared here.
 *
 * All memory of an instance is one block; no array lies on the stack, so that 64 kB of it suffice.
 */
#ifndef MB2FMU_INSTANCE_H
#define MB2FMU_INSTANCE_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "floating_point.h"
#include "model.h"
#include "solver.h"
#include "state_bytes.h"

/* Where memory comes from; tests put functions here that fail when they are told to. Memory is zeroed. */
#ifndef MB2FMU_CALLOC
#define MB2FMU_CALLOC(n, size) calloc((n), (size))
#define MB2FMU_FREE(block) free(block)
#endif

#if defined(__GNUC__)
#define MB2FMU_FORMAT(text, values) __attribute__((__format__(__printf__, text, values)))
#else
#define MB2FMU_FORMAT(text, values)
#endif

/* The numbers are those of fmi2Status and of fmi3Status. */
enum mb2fmu_status { MB2FMU_OK = 0, MB2FMU_WARNING = 1, MB2FMU_DISCARD = 2, MB2FMU_ERROR = 3, MB2FMU_FATAL = 4 };

enum mb2fmu_kind { MB2FMU_MODEL_EXCHANGE = 0, MB2FMU_CO_SIMULATION = 1 };

/* States of the protocol, one bit each; they stand in serialized states, so the numbers stay. FMI 3 has no "step
 * failed"; what FMI 2 calls "error" is a part of FMI 3's "Terminated". */
enum mb2fmu_mode {
    MB2FMU_INSTANTIATED = 1,
    MB2FMU_INITIALIZATION = 2,
    MB2FMU_EVENT = 4,
    MB2FMU_CONTINUOUS = 8,
    MB2FMU_STEP = 16,
    MB2FMU_STEP_FAILED = 32,
    MB2FMU_INTERMEDIATE = 64,
    MB2FMU_TERMINATED = 128,
    MB2FMU_FAILED = 256
};

/* Whether something is solved for in Initialization Mode. */
#define MB2FMU_STARTS (MB2FMU_N_INITIALIZED > 0 || MB2FMU_N_MEMORY > 0)

/* Everything a later result depends on, but for the integrator's memory: what get, set and serialize handle. */
typedef struct {
    int mode; /* enum mb2fmu_mode */
    int solver;
    int stop_defined;
    int experiment_defined; /* FMI 2: fmi2SetupExperiment was called */
    int last_status;        /* of the last step: enum mb2fmu_status */
    mb2fmu_clock clock;     /* time; does not drift over 1e7 steps */
    double start;
    double stop;
    double tolerance;
    double solver_step; /* s; 0: the communication step */
    double x[MB2FMU_SIZE(MB2FMU_N_STATES)];
#if MB2FMU_N_INITIALIZED > 0
    double declared[MB2FMU_N_STATES]; /* start values as set, before those that are guesses are solved for */
#endif
    double r[MB2FMU_SIZE(MB2FMU_N_INPUTS)];
    double slope[MB2FMU_SIZE(MB2FMU_N_INPUTS)]; /* r': between now and the next point inputs are r + slope (t - time) */
    int given[MB2FMU_SIZE(MB2FMU_N_INPUTS)];    /* 1: the importer gave the value for just this time */
    double p[MB2FMU_SIZE(MB2FMU_N_PARAMETERS)];
#if MB2FMU_N_MEMORY > 0
    double memory[MB2FMU_N_MEMORY]; /* changes at accepted steps only */
#endif
#if MB2FMU_N_MODES > 0
    int settled; /* Co-Simulation: since its own integration came here nothing was set but inputs */
    double settled_r[MB2FMU_SIZE(MB2FMU_N_INPUTS)]; /* as it came here with them */
#endif
} mb2fmu_snapshot;

/* What has been computed for the present t, x, r, p. */
enum mb2fmu_level {
    MB2FMU_LEVEL_PREPARED = 1,
    MB2FMU_LEVEL_DERIVATIVES = 2,
    MB2FMU_LEVEL_POSITION = 4,
    MB2FMU_LEVEL_VELOCITY = 8,
    MB2FMU_LEVEL_ACCELERATION = 16,
    MB2FMU_LEVEL_DEPENDENT_SPEEDS = 32,
    MB2FMU_LEVEL_ACCELERATIONS = 64,
    MB2FMU_LEVEL_INDICATORS = 256,
    MB2FMU_LEVEL_STARTED = 128 /* in Initialization Mode: what depends on start values is solved for */
};

/* Categories of messages, as the description lists them. */
enum mb2fmu_category {
    MB2FMU_CATEGORY_WARNING = 0,
    MB2FMU_CATEGORY_DISCARD,
    MB2FMU_CATEGORY_ERROR,
    MB2FMU_N_CATEGORIES
};

#define MB2FMU_MESSAGE_SIZE 1024
#define MB2FMU_REFUSAL_SIZE 160 /* why there is no instance: room for a token */

typedef struct {
    enum mb2fmu_kind kind;
    const char *function; /* that is being called, for messages */
    int calls;            /* that are under way: more than one inside callbacks */
    mb2fmu_snapshot now;
    mb2fmu_integrator integrator;

    unsigned levels; /* of enum mb2fmu_level: those that are valid */
    mb2fmu_prepared w[1]; /* one: arguments are pointers */
    double dx[MB2FMU_SIZE(MB2FMU_N_STATES)];
    double position[MB2FMU_SIZE(MB2FMU_N_POSITION)];
    double velocity[MB2FMU_SIZE(MB2FMU_N_VELOCITY)];
    double acceleration[MB2FMU_SIZE(MB2FMU_N_ACCELERATION)];
    double dependent_speeds[MB2FMU_SIZE(MB2FMU_N_DEPENDENT_SPEEDS)];
    double accelerations[MB2FMU_SIZE(MB2FMU_N_ACCELERATIONS)];
#if MB2FMU_N_MODES > 0
    double indicators[MB2FMU_SIZE(MB2FMU_N_INDICATORS)]; /* with the offset that importers see */
#endif

    double seeds[MB2FMU_N_SEEDS];
    double out[MB2FMU_SIZE(MB2FMU_N_OUT)];
#if MB2FMU_N_INITIALIZED > 0 && !defined(MB2FMU_WITHOUT_ADJOINT)
    double start_seeds[MB2FMU_N_SEEDS];
#endif
#if MB2FMU_STARTS
    double guess[MB2FMU_SIZE(MB2FMU_N_STATES)];     /* from which the start was found; valid with LEVEL_STARTED */
    double way_p[MB2FMU_SIZE(MB2FMU_N_PARAMETERS)]; /* on the way to it */
    double found[MB2FMU_SIZE(MB2FMU_N_MEMORY)];
#endif

    double x_next[MB2FMU_SIZE(MB2FMU_N_STATES)]; /* of the communication step under way */
    mb2fmu_snapshot before;                      /* what it goes back to if it fails */
    mb2fmu_problem *problem;                     /* while intermediate updates can come */
    double line_start[MB2FMU_SIZE(MB2FMU_N_INPUTS)]; /* inputs where the internal step began */
    double line_end[MB2FMU_SIZE(MB2FMU_N_INPUTS)];   /* and where their lines have led at its end */
    int line_given[MB2FMU_SIZE(MB2FMU_N_INPUTS)];    /* the importer gave the value at the beginning */
    double reals[MB2FMU_INTEGRATOR_REALS];           /* the integrator's memory on its way from or to bytes */
    unsigned char required[MB2FMU_N_VARIABLES];  /* FMI 3: variables of intermediate updates */
    int early_return_allowed;
    int event_mode; /* the importer handles events of Co-Simulation, by FMI 3's Event Mode */
    int at_event;   /* the last step ended at one */
    int intermediate_set; /* in this update something was set: getting is over */
    int refused;          /* a call was refused since the communication step began */

    mb2fmu_environment host; /* the host's floating-point environment, for callbacks */
    void *environment;       /* of the host, handed to its callbacks */
    void (*logger)(void);
    void (*intermediate_update)(void);
    unsigned char logging[MB2FMU_N_CATEGORIES];
    char *name; /* behind this structure */
    char message[MB2FMU_MESSAGE_SIZE];
    char escaped[2 * MB2FMU_MESSAGE_SIZE];
} mb2fmu_instance;

/* --- log.c -------------------------------------------------------------------------------------------------------- */

/* Text in out[size], always ended. Knows %s, %d, %u, %zu and %g (a double with the 15 digits that say what a person
 * wrote), in every locale the same. */
MB2FMU_FORMAT(3, 0)
static void mb2fmu_print(char out[], size_t size, const char *format, va_list arguments);

/* Tells the host, where it wants to know, "function: text", and hands back the status. */
MB2FMU_FORMAT(3, 4)
static enum mb2fmu_status mb2fmu_fail(mb2fmu_instance *instance, enum mb2fmu_status status, const char *format, ...);

/* 1 and all on or off where n is 0. */
static enum mb2fmu_status mb2fmu_set_logging(mb2fmu_instance *instance, int on, size_t n,
                                             const char *const categories[]);

/* --- fmi2.c or fmi3.c: calls the host's logger, in the host's floating-point environment. */
static void mb2fmu_tell(mb2fmu_instance *instance, enum mb2fmu_status status, const char *category,
                        const char *message);

/* --- handles.c ---------------------------------------------------------------------------------------------------- */

static void *mb2fmu_handle_take(mb2fmu_instance *instance);
static mb2fmu_instance *mb2fmu_handle_find(void *handle);
static mb2fmu_instance *mb2fmu_handle_release(void *handle);

/* --- instance.c --------------------------------------------------------------------------------------------------- */

/* NULL where there is no memory. */
static mb2fmu_instance *mb2fmu_instance_create(enum mb2fmu_kind kind, const char *name);

/* Where something is remembered: the evaluations get what stands in the snapshot. */
static void mb2fmu_recall(mb2fmu_instance *instance);

/* The point that has been reached is remembered. 0 or the number of the solve that failed. */
static int mb2fmu_remember(mb2fmu_instance *instance);

/* As after creation: all values are start values. */
static void mb2fmu_instance_reset(mb2fmu_instance *instance);

/* What the host set; they tell dependents by what changed. */
static void mb2fmu_set_time(mb2fmu_instance *instance, double t);
static enum mb2fmu_status mb2fmu_import_time(mb2fmu_instance *instance, double t);
static void mb2fmu_changed(mb2fmu_instance *instance, enum mb2fmu_source source);

/* "in Event Mode" and so on, as the version calls it; protocol.c. */
static const char *mb2fmu_mode_name(int mode);

/* Start and stop time (stop_defined 0: none) and tolerance (0: the FMU's own). */
static enum mb2fmu_status mb2fmu_set_experiment(mb2fmu_instance *instance, int tolerance_defined, double tolerance,
                                                double start, int stop_defined, double stop);

/* The start values become the state that simulation begins with. */
static enum mb2fmu_status mb2fmu_finish_initialization(mb2fmu_instance *instance);

/* --- start.c ------------------------------------------------------------------------------------------------------ */

/* In Initialization Mode: solves for what depends on the start values that were set. 0 or the number of the solve that
 * failed. */
#if MB2FMU_STARTS
static int mb2fmu_find_start(mb2fmu_instance *instance);
#endif

/* --- values.c ----------------------------------------------------------------------------------------------------- */

/* Makes a level valid. 0 or the number of the solve that failed. */
static int mb2fmu_provide(mb2fmu_instance *instance, unsigned wanted);

/* Makes valid what variables of that source need. */
static enum mb2fmu_status mb2fmu_need(mb2fmu_instance *instance, enum mb2fmu_source source);

/* Name of a variable that lives there, for messages. */
static const char *mb2fmu_name_of(enum mb2fmu_source source, int index);

/* The variable of that reference if it is real, or NULL with a message. */
static const mb2fmu_variable *mb2fmu_real(mb2fmu_instance *instance, unsigned reference);

/* 0 and a message where a variable cannot be read in the present state. */
static int mb2fmu_readable(mb2fmu_instance *instance, unsigned reference, const mb2fmu_variable *variable);

static enum mb2fmu_status mb2fmu_get_reals(mb2fmu_instance *instance, const unsigned references[], size_t n,
                                           double values[]);
static enum mb2fmu_status mb2fmu_set_reals(mb2fmu_instance *instance, const unsigned references[], size_t n,
                                           const double values[]);

/* The solver's number: an integer in FMI 2, a 64-bit one in FMI 3. */
static enum mb2fmu_status mb2fmu_get_choice(mb2fmu_instance *instance, unsigned reference, int *value);
static enum mb2fmu_status mb2fmu_set_choice(mb2fmu_instance *instance, unsigned reference, long long value);

/* Event Mode: modes that are right, and what an event does. *changed: bits of continuous states did. */
static enum mb2fmu_status mb2fmu_update(mb2fmu_instance *instance, int *changed);

/* When the next event is that time alone brings; infinity where none is. */
static double mb2fmu_next_event(mb2fmu_instance *instance);

/* Modes at the start, in Initialization Mode. 0, or why there are none: see mb2fmu_settle. */
#if MB2FMU_N_MODES > 0
static int mb2fmu_find_modes(mb2fmu_instance *instance);
static enum mb2fmu_status mb2fmu_unsettled(mb2fmu_instance *instance, enum mb2fmu_status status, int answer);
#endif

/* A failed solve or a result that is no number, as this kind and version may answer it. */
static enum mb2fmu_status mb2fmu_no_result(const mb2fmu_instance *instance);
static enum mb2fmu_status mb2fmu_singular(mb2fmu_instance *instance, int failed);

/* Where there is no result: NaN for all values. Hands back the status. */
static enum mb2fmu_status mb2fmu_undefined(enum mb2fmu_status status, double values[], size_t n);

/* --- vectors.c: those of Model Exchange --------------------------------------------------------------------------- */

static enum mb2fmu_status mb2fmu_get_derivatives(mb2fmu_instance *instance, double values[], size_t n);
static enum mb2fmu_status mb2fmu_get_states(mb2fmu_instance *instance, double values[], size_t n);
static enum mb2fmu_status mb2fmu_set_states(mb2fmu_instance *instance, const double values[], size_t n);
static enum mb2fmu_status mb2fmu_get_nominals(mb2fmu_instance *instance, double values[], size_t n);
static enum mb2fmu_status mb2fmu_get_indicators(mb2fmu_instance *instance, double values[], size_t n);

/* --- derivatives.c ------------------------------------------------------------------------------------------------ */

static enum mb2fmu_status mb2fmu_directional(mb2fmu_instance *instance, const unsigned unknowns[], size_t n_unknowns,
                                             const unsigned knowns[], size_t n_knowns, const double seed[],
                                             double sensitivity[]);
#ifndef MB2FMU_WITHOUT_ADJOINT
MB2FMU_UNUSED static enum mb2fmu_status mb2fmu_transposed(mb2fmu_instance *instance, const unsigned unknowns[],
                                                          size_t n_unknowns, const unsigned knowns[],
                                                          size_t n_knowns, const double seed[],
                                                          double sensitivity[]);
#endif

/* Input derivatives (FMI 2) and output derivatives with respect to time, of order 1. */
MB2FMU_UNUSED static enum mb2fmu_status mb2fmu_set_slopes(mb2fmu_instance *instance, const unsigned references[],
                                                          size_t n, const int orders[], const double values[]);
static enum mb2fmu_status mb2fmu_get_slopes(mb2fmu_instance *instance, const unsigned references[], size_t n,
                                            const int orders[], double values[]);

/* --- communication.c ---------------------------------------------------------------------------------------------- */

/* The right-hand side for the solvers, at the present point. 0 or the number of the solve that failed. */
static int mb2fmu_pose(mb2fmu_instance *instance, mb2fmu_problem *problem);

/* One communication step from `point`, of `size` s. OK with *early 1 where the host asked for less. */
static enum mb2fmu_status mb2fmu_step(mb2fmu_instance *instance, double point, double size, int *early);

/* --- fmi2.c or fmi3.c: the host's part in intermediate updates; a sum of enum mb2fmu_answer. */
static int mb2fmu_ask(mb2fmu_instance *instance, double t, double *until);

/* --- state.c ------------------------------------------------------------------------------------------------------ */

static enum mb2fmu_status mb2fmu_get_state(mb2fmu_instance *instance, void **state);
static enum mb2fmu_status mb2fmu_set_state(mb2fmu_instance *instance, void *state);
static enum mb2fmu_status mb2fmu_free_state(mb2fmu_instance *instance, void **state);
static enum mb2fmu_status mb2fmu_state_size(mb2fmu_instance *instance, void *state, size_t *size);
static enum mb2fmu_status mb2fmu_serialize(mb2fmu_instance *instance, void *state, unsigned char bytes[], size_t size);
static enum mb2fmu_status mb2fmu_deserialize(mb2fmu_instance *instance, const unsigned char bytes[], size_t size,
                                             void **state);

/* NULL pointers are allowed where nothing stands behind them. 1 where something is missing, and a message. */
static int mb2fmu_missing(mb2fmu_instance *instance, const void *argument, size_t n, const char *name);

#endif
