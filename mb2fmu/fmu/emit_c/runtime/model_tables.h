/* model_tables.h: what the tables of an FMU (model.c) say of it: its variables, its switches, and how it begins.
 *
 * Why it exists: tables are a translation unit of their own, so that the rest of unit.c has nothing of one model but
 * its sizes. Sizes come from model_config.h; see model.h.
 */
#ifndef MB2FMU_MODEL_TABLES_H
#define MB2FMU_MODEL_TABLES_H

#include "portability.h"

#ifndef MB2FMU_N_MEMORY
#define MB2FMU_N_MEMORY 0
#endif
#ifndef MB2FMU_N_MODES
#define MB2FMU_N_MODES 0
#endif
#ifndef MB2FMU_N_ARRAYS
#define MB2FMU_N_ARRAYS 0
#endif
#ifndef MB2FMU_N_INDICATORS
#define MB2FMU_N_INDICATORS 0
#endif
#ifndef MB2FMU_N_TIMED
#define MB2FMU_N_TIMED 0
#endif

/* Names that leave a translation unit, where nobody has said how. */
#ifndef MB2FMU_UNIT
#define MB2FMU_UNIT(name) mb2fmu_unit_##name
#endif
#define model_variables MB2FMU_UNIT(variables)
#define model_arrays MB2FMU_UNIT(arrays)
#define model_switches MB2FMU_UNIT(switches)
#define model_first_memory MB2FMU_UNIT(first_memory)

/* Where a variable's value lives, and what `index` counts. */
enum mb2fmu_source {
    MB2FMU_SOURCE_TIME = 0,          /* t; index 0 */
    MB2FMU_SOURCE_STATE,             /* x[index] */
    MB2FMU_SOURCE_INPUT,             /* r[index] */
    MB2FMU_SOURCE_PARAMETER,         /* p[index] */
    MB2FMU_SOURCE_CALCULATED,        /* w[index] */
    MB2FMU_SOURCE_DEPENDENT_SPEED,   /* model_dependent_speeds, y[index] */
    MB2FMU_SOURCE_DERIVATIVE,        /* model_rhs, dx[index] */
    MB2FMU_SOURCE_SPEED_DERIVATIVE,  /* model_accelerations, y[index] */
    MB2FMU_SOURCE_POSITION,          /* model_position, y[index] */
    MB2FMU_SOURCE_VELOCITY,          /* model_velocity, y[index] */
    MB2FMU_SOURCE_ACCELERATION,      /* model_acceleration, y[index] */
    MB2FMU_SOURCE_SOLVER,            /* the Enumeration parameter that chooses the solver; start is an integer */
    MB2FMU_SOURCE_SOLVER_STEP,       /* internal step of the solvers with fixed steps, s; 0: the communication step */
    MB2FMU_SOURCE_NONE,              /* no variable has this value reference */
    MB2FMU_SOURCE_INDICATOR,         /* model_indicators, y[index], with the offset that importers see */
    MB2FMU_SOURCE_MODE               /* the mode of model_switches[index] */
};

enum mb2fmu_causality {
    MB2FMU_CAUSALITY_INDEPENDENT = 0,
    MB2FMU_CAUSALITY_PARAMETER,
    MB2FMU_CAUSALITY_CALCULATED_PARAMETER,
    MB2FMU_CAUSALITY_INPUT,
    MB2FMU_CAUSALITY_OUTPUT,
    MB2FMU_CAUSALITY_LOCAL
};

enum mb2fmu_variability {
    MB2FMU_VARIABILITY_FIXED = 0,
    MB2FMU_VARIABILITY_TUNABLE,
    MB2FMU_VARIABILITY_DISCRETE,
    MB2FMU_VARIABILITY_CONTINUOUS
};

enum mb2fmu_initial {
    MB2FMU_INITIAL_NONE = 0, /* the independent variable has none */
    MB2FMU_INITIAL_EXACT,
    MB2FMU_INITIAL_APPROX,
    MB2FMU_INITIAL_CALCULATED
};

/* One variable, as the interface decided it. */
typedef struct {
    unsigned char source;      /* enum mb2fmu_source */
    unsigned char causality;   /* enum mb2fmu_causality */
    unsigned char variability; /* enum mb2fmu_variability */
    unsigned char initial;     /* enum mb2fmu_initial */
    int index;                 /* which value of its source */
    double start;              /* MB2FMU_NAN where it has none */
    double minimum;            /* -MB2FMU_INFINITY where it has none */
    double maximum;            /* MB2FMU_INFINITY where it has none */
    double nominal;            /* > 0; 1 where none was given */
    const char *name;          /* UTF-8 */
} mb2fmu_variable;

/* Its place is the value reference. Elements of arrays stand behind the scalars. */
extern MB2FMU_HIDDEN const mb2fmu_variable model_variables[MB2FMU_N_VARIABLES];

#if MB2FMU_N_ARRAYS > 0
typedef struct {
    unsigned reference; /* of the array; the row of its first element, which the others follow */
    unsigned size;      /* elements */
} mb2fmu_array;

extern MB2FMU_HIDDEN const mb2fmu_array model_arrays[MB2FMU_N_ARRAYS];
#endif

/* What a generated FMU says of itself; model_config.h has names for it, which units written by hand define as numbers. */
typedef struct {
    const char *token;    /* of instantiation */
    int solver;           /* 1 to 5, as the Enumeration parameter `solver` counts */
    double tolerance;     /* relative, of the default experiment */
    double internal_step; /* s; 0: none given */
    double start;         /* s, of the default experiment */
    int internal_steps;   /* within one communication step, after which it is given up: adaptive solvers, */
    int fixed_steps;      /* and those with fixed steps; see solver.h */
} mb2fmu_settings;

extern MB2FMU_HIDDEN const mb2fmu_settings MB2FMU_UNIT(settings);

#if MB2FMU_N_MEMORY > 0
extern MB2FMU_HIDDEN const double model_first_memory[MB2FMU_N_MEMORY];
#endif

#if MB2FMU_N_MODES > 0
enum mb2fmu_switch_kind {
    MB2FMU_SWITCH_RELATION = 0, /* mode 1 where the surface is positive, else 0 */
    MB2FMU_SWITCH_STEPS,        /* mode: the largest integer that is not greater than the surface */
    MB2FMU_SWITCH_STICKING,     /* mode -1, 1, or 0: held */
    MB2FMU_SWITCH_CONDITION,    /* of an event of the model's own; mode 1 where it holds */
    MB2FMU_SWITCH_TICKS         /* of one that happens at instants: mode: how often it has */
};

typedef struct {
    unsigned char kind; /* enum mb2fmu_switch_kind */
    int memory;         /* place of its mode in memory */
    int timed;          /* it looks at time alone: model_next_time_event knows when it changes */
    const char *name;   /* UTF-8, for messages */
} mb2fmu_switch;

extern MB2FMU_HIDDEN const mb2fmu_switch model_switches[MB2FMU_N_MODES];
#endif

#endif
