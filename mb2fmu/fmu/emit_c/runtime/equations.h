/* equations.h: the equations of an FMU as tables of functions, in as many variants as there are kinds of processors.
 *
 * Why it exists: equations are printed into translation units of their own, which are compiled side by side: the
 * motion (equations*.c), which can be printed and compiled before it is differentiated, and on x86-64 is compiled once
 * more for processors with AVX2 (with MB2FMU_AVX2 defined), and its derivatives (derived*.c), compiled once. Each
 * variant of the motion is one constant table; an instance takes that for its processor when it is made (dispatch.c),
 * so nothing depends on loaders or linkers. What large models seldom evaluate is in derived_once*.c.
 * Names that leave a translation unit are hidden and begin with the identifier of the FMU (MB2FMU_UNIT of
 * model_config.h), so that two FMUs can be linked into one program.
 *
 * Arguments, results and what is returned are those of model.h; `w` are values of model_prepare, `work` is scratch.
 */
#ifndef MB2FMU_EQUATIONS_H
#define MB2FMU_EQUATIONS_H

#include "model_config.h"
#include "portability.h"

#ifndef MB2FMU_N_PROJECTED
#define MB2FMU_N_PROJECTED 0
#endif
#ifndef MB2FMU_N_MEMORY
#define MB2FMU_N_MEMORY 0
#endif
#ifndef MB2FMU_N_MODES
#define MB2FMU_N_MODES 0
#endif
#ifndef MB2FMU_N_TIMED
#define MB2FMU_N_TIMED 0
#endif
#ifndef MB2FMU_N_INITIALIZED
#define MB2FMU_N_INITIALIZED 0
#endif

typedef struct mb2fmu_equations {
    int (*prepare)(const double p[], double w[], double work[]);
    int (*rhs)(double t, const double x[], const double r[], const double p[], const double w[], double work[],
               double dx[]);
    int (*position)(double t, const double x[], const double r[], const double p[], const double w[], double work[],
                    double y[]);
    int (*velocity)(double t, const double x[], const double r[], const double p[], const double w[], double work[],
                    double y[]);
    int (*acceleration)(double t, const double x[], const double r[], const double p[], const double w[],
                        double work[], double y[]);
    int (*dependent_speeds)(double t, const double x[], const double r[], const double p[], const double w[],
                            double work[], double y[]);
    int (*accelerations)(double t, const double x[], const double r[], const double p[], const double w[],
                         double work[], double y[]);
#if MB2FMU_N_PROJECTED > 0
    int (*project)(double t, const double x[], const double r[], const double p[], const double w[], double work[],
                   double y[]);
#endif
#if MB2FMU_N_MEMORY > 0
    int (*remember)(double t, const double x[], const double r[], const double p[], const double w[], double work[],
                    double y[]);
#endif
#if MB2FMU_N_MODES > 0
    int (*indicators)(double t, const double x[], const double r[], const double p[], const double w[], double work[],
                      double y[]);
    int (*surfaces)(double t, const double x[], const double r[], const double p[], const double w[], double work[],
                    double y[]);
    int (*event)(double t, const double x[], const double r[], const double p[], const double w[], double work[],
                 double y[]);
#endif
#if MB2FMU_N_TIMED > 0
    int (*next_time_event)(double t, const double x[], const double r[], const double p[], const double w[],
                           double work[], double y[]);
#endif
} mb2fmu_equations;

/* The derivatives, and initial states that are solved for; in `prepare` what these alone need, in w behind the rest. */
typedef struct mb2fmu_derivatives {
    int (*prepare)(const double p[], double w[], double work[]);
#if MB2FMU_N_INITIALIZED > 0
    int (*initialize)(double t, const double x[], const double r[], const double p[], const double w[], double work[],
                      double y[]);
    int (*initialize_tangent)(double t, const double x[], const double r[], const double p[], const double w[],
                              double work[], const double s[], double out[]);
#ifndef MB2FMU_WITHOUT_ADJOINT
    int (*initialize_adjoint)(double t, const double x[], const double r[], const double p[], const double w[],
                              double work[], const double bar[], double sbar[]);
#endif
#endif
    int (*tangent)(double t, const double x[], const double r[], const double p[], const double w[], double work[],
                   const double s[], double out[]);
#ifndef MB2FMU_WITHOUT_ADJOINT
    int (*adjoint)(double t, const double x[], const double r[], const double p[], const double w[], double work[],
                   const double bar[], double sbar[]);
#endif
    int (*jacobian)(double t, const double x[], const double r[], const double p[], const double w[], double work[],
                    double values[], double dfdt[]);
    int values;                  /* doubles in w, memory included, of both tables */
    int work;                    /* doubles of scratch that any function of both needs */
    int n_failures;
    const char *const *failures; /* what is wrong when solve number k + 1 fails, of both */
} mb2fmu_derivatives;

/* Name of something in the variant that is being compiled. */
#ifdef MB2FMU_AVX2
#define MB2FMU_VARIANT(name) MB2FMU_UNIT(avx2_##name)
#else
#define MB2FMU_VARIANT(name) MB2FMU_UNIT(any_##name)
#endif

extern MB2FMU_HIDDEN const mb2fmu_equations MB2FMU_UNIT(any_equations);
extern MB2FMU_HIDDEN const mb2fmu_derivatives MB2FMU_UNIT(any_derivatives);
/* only where MB2FMU_WITH_AVX2 is defined: */
extern MB2FMU_HIDDEN const mb2fmu_equations MB2FMU_UNIT(avx2_equations);

#endif
