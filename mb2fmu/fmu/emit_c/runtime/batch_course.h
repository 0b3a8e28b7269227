/* batch_course.h: from where to where many instances are moved, and where to their numbers go; the same for those side by
 * side (batch_step_loop.h) and for those that one FMU runs one after the other (batch_unit.c).
 */
#ifndef MB2FMU_BATCH_COURSE_H
#define MB2FMU_BATCH_COURSE_H

/* What is to be run. */
typedef struct {
    long points;                /* communication steps */
    long most;                  /* internal steps that may be tried within one of them */
    long parameter_rows;        /* 1, or one row for each instance */
    long input_rows;            /* 1, or one row for each communication step */
    long selected;              /* outputs that are kept at all communication points */
    double start, step;         /* s */
    double tolerance;           /* relative */
    const double *scale;        /* absolute over relative tolerance, of each state */
    const double *x0, *p, *r;   /* row by row */
    const unsigned char *turns; /* inputs change after this communication point; points + 1; where there are rows of them */
    const long *select;         /* which outputs */
    double *path_x, *path_y;    /* at all communication points, instance by instance, or NULL */
    double *end_x, *end_y;      /* at the last one */
    long *why;                  /* of each instance: 0, or why it ended early: 1, 2, 3 as below */
    double *when;               /* s */
} mb2fmu_course;

#endif
