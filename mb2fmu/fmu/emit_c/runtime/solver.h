/* solver.h: stepping of Co-Simulation: integrators with one interface, time keeping, slopes of outputs.
 *
 * Why it exists: the FMI shell asks for "x at t + h" and gets it, or a reason; it knows no method. All methods
 * (solver_methods.c: a row each, with one internal step and dense output; solver_step_loop.c: from one communication
 * point to the next) are entered through cosimulation.c. These three files may be included in any order.
 *
 * Promises
 *   - transactional: a step that fails leaves x and the integrator's memory as they were, and says why with numbers;
 *     nothing that is not finite is ever handed out as a state;
 *   - deterministic: only +, -, *, / and square roots; the same calls give the same bits, everywhere;
 *   - nothing is allocated, nothing recursive, no array on the stack;
 *   - internal steps end at the communication point, because inputs may change there; how long a step could have been
 *     is remembered, so that many short communication steps do not shorten it.
 *
 * Sources: FMI 2.0.5, 4.2; FMI 3.0.2, 4.2 (Intermediate Update Mode, early return). Methods: see their files.
 */
#ifndef MB2FMU_SOLVER_H
#define MB2FMU_SOLVER_H

#include <stddef.h>
#include <stdint.h>

#include "linear_algebra.h"
#include "model.h"
#if MB2FMU_N_MODES > 0
#include "events.h"
#endif

/* Internal steps (tried ones) within one communication step, after which it is given up: MB2FMU_STEP_TOO_MANY.
 * Generated FMUs have fewer where x' costs more (model_config.h), so that the work of a step is bounded, and not its
 * steps only. */
#ifndef MB2FMU_MAX_INTERNAL_STEPS
#define MB2FMU_MAX_INTERNAL_STEPS 10000000
#endif

/* The same with fixed steps, whose number the importer chose: more are refused before the first of them. */
#ifndef MB2FMU_MAX_FIXED_STEPS
#define MB2FMU_MAX_FIXED_STEPS MB2FMU_MAX_INTERNAL_STEPS
#endif

/* Adaptive methods look after every so many tried steps whether the rest can be done at the pace of these. They give up
 * at once if it would take the limit this many times over: with an enormous input the steps that can be made are so
 * small that the limit itself is minutes away. Less than that may still turn out well, where the motion calms down.
 * They look more often for what is more hopeless still, as where a mechanism is driven into a singular position. */
#define MB2FMU_PACE_STEPS (MB2FMU_MAX_INTERNAL_STEPS / 64)
#define MB2FMU_HOPELESS 10.0
#define MB2FMU_EARLY_PACE_STEPS (MB2FMU_PACE_STEPS / 64 + 16)
#define MB2FMU_EARLY_HOPELESS 100.0

/* Relative tolerances outside of this range are moved to its ends; what is no positive number becomes the default. */
#define MB2FMU_MIN_TOLERANCE 1e-12
#define MB2FMU_MAX_TOLERANCE 1e-2

/* Values of the Enumeration parameter `solver`. */
enum mb2fmu_solver {
    MB2FMU_SOLVER_DOPRI5 = 1,  /* Dormand-Prince 5(4), adaptive */
    MB2FMU_SOLVER_RK4,         /* classical Runge-Kutta of order 4, fixed step */
    MB2FMU_SOLVER_EULER,       /* semi-implicit Euler, fixed step */
    MB2FMU_SOLVER_ROSENBROCK   /* RODASP 4(3), stiffly accurate, exact Jacobian, adaptive */
    /* more: see solver_methods.c */
};

enum mb2fmu_outcome {
    MB2FMU_STEP_OK = 0,
    MB2FMU_STEP_TOO_SMALL,  /* the error stays above the tolerance down to steps of 16 eps |t|; or h is no step */
    MB2FMU_STEP_NOT_FINITE, /* x' or x is infinite or not a number */
    MB2FMU_STEP_SINGULAR,   /* a linear solve failed */
    MB2FMU_STEP_TOO_MANY,   /* more than MB2FMU_MAX_INTERNAL_STEPS, made or foreseen */
    MB2FMU_STEP_UNSETTLED   /* an event finds no modes, or events follow each other without end */
};

/* What the host's hook answers: a sum of these. */
enum mb2fmu_answer {
    MB2FMU_GO_ON = 0,
    MB2FMU_INPUTS_CHANGED = 1, /* r0, r1 or t0 are others from here on: what depends on them is forgotten */
    MB2FMU_STOP = 2            /* return early: here */
};

/* Called after every accepted internal step (also the last one of a communication step) with the time and state
 * reached. *until is the time at which integration will end; the hook may lower it to a later early return time
 * (values that are not after t mean t). mb2fmu_integrator_dense is valid for the step that ends at t. */
typedef int (*mb2fmu_accepted)(void *host, double t, const double x[], double *until);

/* The right-hand side as the solvers see it: inputs are r(t) = r0 + r1 (t - t0). Filled in by the caller. */
typedef struct {
    const double *p;          /* free parameters */
    mb2fmu_prepared *w;       /* what model_prepare made of them */
    const double *r0;         /* inputs at t0 */
    const double *r1;         /* their first derivatives, or NULL: constant inputs */
    double t0;                /* s */
    mb2fmu_accepted accepted; /* hook, or NULL */
    void *host;               /* handed to the hook */
    /* written by mb2fmu_integrate */
    double reached;           /* time reached: t + h, or less after an early return; t after a failure */
    int failed;               /* after MB2FMU_STEP_SINGULAR: number of the linear solve; 0: the implicit method's */
    unsigned long calls;      /* evaluations of x' are added up here */
    unsigned long steps;      /* accepted internal steps, likewise */
    unsigned long rejected;   /* rejected ones, likewise */
#if MB2FMU_N_MODES > 0
    int event_mode;           /* a step ends at an event, which the host handles */
    int at_event;             /* it did */
    unsigned long events;     /* as steps */
    int unsettled;            /* after MB2FMU_STEP_UNSETTLED: what mb2fmu_settle answered */
#endif
} mb2fmu_problem;

/* What lasts from one communication step to the next: the part that belongs to the FMU state. */
typedef struct {
    double tolerance;                        /* relative, within the range above */
    double fixed_step;                       /* s; 0: one internal step per communication step */
    double step;                             /* proposal for the next internal step, s; 0: none yet */
    double last_step;                        /* the last one accepted in full length, s; 0: no history */
    double last_error;                       /* its error in units of the tolerance; 0: no history */
    double slope[MB2FMU_SIZE(MB2FMU_N_STATES)]; /* x' at the present point if slope_known, else 0 */
    int64_t solver;                          /* enum mb2fmu_solver */
    int64_t slope_known;                     /* 0 or 1 */
} mb2fmu_integrator_memory;

#define MB2FMU_INTEGRATOR_REALS (5 + MB2FMU_SIZE(MB2FMU_N_STATES))
#define MB2FMU_INTEGRATOR_INTEGERS 2
#define MB2FMU_MAX_STAGES 7

/* What is meaningful within one call only (and for mb2fmu_integrator_dense until the next one). */
typedef struct {
    double scale[MB2FMU_SIZE(MB2FMU_N_STATES)]; /* absolute tolerance / tolerance: 0.01 nominal; set by reset */
    double x[MB2FMU_SIZE(MB2FMU_N_STATES)];     /* start of the internal step that is tried */
    double next[MB2FMU_SIZE(MB2FMU_N_STATES)];  /* its end */
    double before_step[MB2FMU_SIZE(MB2FMU_N_STATES)]; /* start of the last accepted one */
    double point[MB2FMU_SIZE(MB2FMU_N_STATES)]; /* argument of a stage */
    double error[MB2FMU_SIZE(MB2FMU_N_STATES)];
    double k[MB2FMU_MAX_STAGES][MB2FMU_SIZE(MB2FMU_N_STATES)];
    double r[MB2FMU_SIZE(MB2FMU_N_INPUTS)];
    double seeds[MB2FMU_SIZE(MB2FMU_N_SEEDS)];
    double out[MB2FMU_SIZE(MB2FMU_N_OUT)];
    double jacobian[MB2FMU_SIZE(MB2FMU_N_STATES * MB2FMU_N_STATES)]; /* 0 where nothing is written */
    double drift[MB2FMU_SIZE(MB2FMU_N_STATES)]; /* d f / d t along r(t) */
    double matrix[MB2FMU_SIZE(MB2FMU_N_STATES * (MB2FMU_N_STATES + 1))];
    double start, step;   /* of the last accepted internal step, s */
    double fault_time;    /* where the last fault was found, s */
    int fault_state;      /* and the state that showed it; -1: none did */
    int linearized;       /* jacobian and drift belong to x */
    int dense;            /* k, before_step, next, start, step describe an accepted step of memory.solver */
    mb2fmu_integrator_memory before; /* memory at the call, for failures */
#if MB2FMU_N_MODES > 0
    mb2fmu_settling settling;
#endif
} mb2fmu_work;

/* Plain data: copying the struct copies everything; copying or serializing `memory` alone is enough, too. */
typedef struct mb2fmu_integrator {
    mb2fmu_integrator_memory memory;
    mb2fmu_work work;
} mb2fmu_integrator;

/* As new: everything forgotten. An unknown solver becomes MB2FMU_DEFAULT_SOLVER. fixed_step in s: of solvers 2 and 3;
 * what is no positive number means one internal step per communication step. Nominal values: from model_variables. */
MB2FMU_UNUSED static void mb2fmu_integrator_reset(mb2fmu_integrator *integrator, int solver, double tolerance,
                                                  double fixed_step);

/* Advances x from t to t + h, h > 0. On failure x and memory are as before, and `message` (size > 0, always
 * terminated) says why. With a hook it may end before t + h: see mb2fmu_problem.reached. */
MB2FMU_UNUSED static enum mb2fmu_outcome mb2fmu_integrate(mb2fmu_integrator *integrator, mb2fmu_problem *problem,
                                                          double t, double h, double x[], char *message, size_t size);

/* An input, its derivative, a parameter or a state changed other than by mb2fmu_integrate: the first-same-as-last
 * stage, dense output and error history are void; the proposed step size stays. */
MB2FMU_UNUSED static void mb2fmu_integrator_invalidate(mb2fmu_integrator *integrator);

/* x at a time within the last accepted internal step, by the method's own interpolant, of the order that its row in
 * solver_methods.c says. Returns 0; 1 if there is no such step or t lies outside of it. For use in the hook, or after
 * mb2fmu_integrate until the integrator is touched again. */
MB2FMU_UNUSED static int mb2fmu_integrator_dense(const mb2fmu_integrator *integrator, double t, double x[]);

/* Memory as numbers, in the order of the fields of mb2fmu_integrator_memory: MB2FMU_INTEGRATOR_REALS doubles, then
 * MB2FMU_INTEGRATOR_INTEGERS integers. Loading returns 0, or 1 for what no integrator of this version can have saved;
 * the integrator is then as before. */
MB2FMU_UNUSED static void mb2fmu_integrator_save(const mb2fmu_integrator *integrator, double reals[],
                                                 int64_t integers[]);
MB2FMU_UNUSED static int mb2fmu_integrator_load(mb2fmu_integrator *integrator, const double reals[],
                                                const int64_t integers[]);

/* Derivatives of all results with respect to time along the motion, in the order of MB2FMU_OUT_...:
 * d h/d t + d h/d x x' + d h/d r r1 (of x': x''). `out` has MB2FMU_N_OUT values; not checked for being finite. Neither
 * the integrator's memory nor its dense output is touched; may be called in the hook. */
MB2FMU_UNUSED static enum mb2fmu_outcome mb2fmu_output_slope(mb2fmu_integrator *integrator, mb2fmu_problem *problem,
                                                             double t, const double x[], double out[]);

/* --- time --------------------------------------------------------------------------------------------------------
 *
 * The sum of all steps since the start, kept as an unevaluated sum of two doubles: equal steps give start + count h
 * rounded once, any steps give their exact sum rounded once (for all practical numbers of steps), and a step too
 * small to be seen in `time` is not lost. */
typedef struct {
    double time;   /* s */
    double rest;   /* what rounding took from it, s */
    int64_t steps; /* since the start */
} mb2fmu_clock;

MB2FMU_UNUSED static void mb2fmu_clock_start(mb2fmu_clock *clock, double start);
MB2FMU_UNUSED static void mb2fmu_clock_advance(mb2fmu_clock *clock, double h);

/* Whether a clock can have come to be by adding steps: what rounding took away is no more than half of the last digit
 * of the time, and the steps can have been counted. */
#define MB2FMU_MOST_STEPS ((int64_t)1 << 52)
MB2FMU_UNUSED static int mb2fmu_clock_possible(const mb2fmu_clock *clock);

/* What two sums of the same steps may differ by. */
MB2FMU_UNUSED static double mb2fmu_clock_slack(const mb2fmu_clock *clock, double h);

/* Whether the host's idea of the present time is ours: it may err by what adding up the steps one by one can cost, and
 * by 1e-6 of the step h. */
MB2FMU_UNUSED static int mb2fmu_clock_agrees(const mb2fmu_clock *clock, double point, double h);

/* Whether a step of h would pass `stop` by more than round-off, judged the same way. */
MB2FMU_UNUSED static int mb2fmu_clock_passes(const mb2fmu_clock *clock, double h, double stop);

/* --- between the files of the solvers ----------------------------------------------------------------------------- */

/* work.r = inputs at t */
MB2FMU_UNUSED static void mb2fmu_solver_inputs(mb2fmu_work *work, const mb2fmu_problem *problem, double t);

/* dx = f(t, x) with inputs at t; counts, and checks that it is finite. */
MB2FMU_UNUSED static enum mb2fmu_outcome mb2fmu_solver_evaluate(mb2fmu_integrator *integrator, mb2fmu_problem *problem,
                                                                double t, const double x[], double dx[]);

/* Whether MB2FMU_N_STATES values are finite; if not, notes the time and the first one that is not. */
MB2FMU_UNUSED static enum mb2fmu_outcome mb2fmu_solver_check(mb2fmu_work *work, double t, const double values[]);

/* One internal step of size h from (t, work.x) to work.next. Adaptive methods expect x' at (t, work.x) in memory.slope
 * and leave the estimated error in work.error. */
typedef enum mb2fmu_outcome (*mb2fmu_attempt)(mb2fmu_integrator *integrator, mb2fmu_problem *problem, double t,
                                              double h);

/* x at work.start + s work.step, 0 <= s <= 1. */
typedef void (*mb2fmu_dense)(const mb2fmu_work *work, double s, double x[]);

/* How step sizes are chosen; see solver_step_loop.c. */
enum mb2fmu_control { MB2FMU_FIXED_STEPS, MB2FMU_PROPORTIONAL_INTEGRAL, MB2FMU_PREDICTIVE };

/* A method of integration. Exponents of the step size control are in 64ths: of the error, and with history of the error
 * and of the one before. */
typedef struct {
    const char *name;
    mb2fmu_attempt attempt;
    mb2fmu_dense dense;
    int order;
    int dense_order;
    int last_stage;              /* of the work's k: x' at the end of the step; -1: none is */
    enum mb2fmu_control control;
    int exponent;
    int with_history[2];
    double least_error;          /* what is remembered of an error is not less */
} mb2fmu_method;

MB2FMU_UNUSED static int mb2fmu_solver_known(int64_t solver);
MB2FMU_UNUSED static const mb2fmu_method *mb2fmu_method_of(const mb2fmu_integrator_memory *memory);

/* What is wrong when solve number `failed` of the model has just failed, as a clause. Of equations that contradict each
 * other (the lines behind the clause are their names) it says by how much each stays open. */
#define MB2FMU_CLAUSE_SIZE 512
MB2FMU_UNUSED static const char *mb2fmu_clause(const mb2fmu_prepared *w, int failed, char text[MB2FMU_CLAUSE_SIZE]);

/* How fast a loop goes on, looked at every so many tried steps. */
typedef struct {
    double paced; /* what had been passed at the last look, s */
    double pace;  /* what had been passed between the last two looks, s */
} mb2fmu_look;

/* Where a loop from one communication point to the next is. Time inside is counted from the point on, so that a late
 * start costs no accuracy. */
typedef struct {
    double start;  /* the communication point, s */
    double end;    /* where it shall end, s; the hook may bring it nearer */
    double span;   /* what is to be passed, s */
    double passed; /* what has been passed, s */
    double step;   /* the internal step, s */
    double least;  /* adaptive methods: internal steps are no smaller unless the way itself is, s */
    mb2fmu_look looks[2]; /* adaptive methods: every MB2FMU_EARLY_PACE_STEPS, and every MB2FMU_PACE_STEPS */
    int stopped;   /* the hook said so */
    int hopeless;  /* adaptive methods: given up for the pace, before the limit */
#if MB2FMU_N_MODES > 0
    int fresh;     /* nothing is known of steps before this one: it may begin behind an event */
    int searched;  /* the step just tried has been looked through; crossing and work.point are its */
    double crossing; /* part of that step behind which the first event lies; above 1: there is none */
    double approach; /* adaptive methods: the step is tried again, as far as this event, s; 0: it is not */
    int jumped;    /* the last step ended at an event */
    int at_once;   /* events in a row, each at once after the one before: MB2FMU_AT_ONCE */
    enum mb2fmu_outcome outcome; /* of the last event */
#endif
} mb2fmu_step_loop;

/* Whether the solver that is chosen has step size control. */
MB2FMU_UNUSED static int mb2fmu_loop_is_adaptive(const mb2fmu_integrator *integrator);

/* Internal steps until span is passed. On failure loop.passed and loop.step are those of the step that failed. */
MB2FMU_UNUSED static enum mb2fmu_outcome mb2fmu_loop_adaptive(mb2fmu_integrator *integrator, mb2fmu_problem *problem,
                                                              mb2fmu_step_loop *loop);
MB2FMU_UNUSED static enum mb2fmu_outcome mb2fmu_loop_fixed(mb2fmu_integrator *integrator, mb2fmu_problem *problem,
                                                           mb2fmu_step_loop *loop);

/* A step has been accepted: work.next, at loop.start + passed, becomes work.x, and the hook is asked. */
MB2FMU_UNUSED static void mb2fmu_loop_accept(mb2fmu_integrator *integrator, mb2fmu_problem *problem,
                                             mb2fmu_step_loop *loop, double passed);

#endif
