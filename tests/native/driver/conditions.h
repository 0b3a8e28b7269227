/* conditions.h: what a host may have set before it calls a unit. */
#ifndef DRIVER_CONDITIONS_H
#define DRIVER_CONDITIONS_H

/* Control bits of the processor's floating-point unit, without flags. */
typedef unsigned long long driver_control;

typedef struct {
    int traps;    /* invalid operation, division by zero and overflow kill the process */
    int flush;    /* subnormal numbers become zero */
    int rounding; /* 0 to nearest, 1 down, 2 up, 3 to zero */
} driver_conditions;

/* Sets them for the calling thread; what the control register then holds. */
driver_control driver_set_conditions(const driver_conditions *);
driver_control driver_get_control(void);
/* Back to what a program begins with. */
void driver_set_control(driver_control);

#endif
