/* protocol.h: which call is legal in which state, and what every call begins and ends with.
 *
 * Why it exists: both standards define a state machine of calls. Each version has one table (protocol_fmi2.c,
 * protocol_fmi3.c) of a line per function, and every exported function goes through mb2fmu_enter and mb2fmu_leave,
 * which enforce it, take over the floating-point environment and give it back.
 *
 * A call that is not legal, or is answered with Error, puts the instance into the state "error" (FMI 2.0.5 sections
 * 2.1.3, 3.2.3 and 4.2.4) or "Terminated" (FMI 3.0.2 section 2.3.1), which only resetting it, setting a state that was
 * saved before, or freeing it leaves.
 */
#ifndef MB2FMU_PROTOCOL_H
#define MB2FMU_PROTOCOL_H

#include "instance.h"

/* One function: its name and the states, a sum of enum mb2fmu_mode, in which each kind may be called. */
typedef struct {
    const char *name;
    int model_exchange;
    int co_simulation;
} mb2fmu_rule;

/* A call under way. */
typedef struct {
    mb2fmu_environment host;
    mb2fmu_instance *instance; /* NULL: the importer's pointer is none of ours */
    const char *outer;         /* the function that is being called already: this one is called from a callback */
} mb2fmu_call;

/* The instance, if it may be called; else NULL, and the host was told why. */
static mb2fmu_instance *mb2fmu_enter(mb2fmu_call *call, void *handle, const mb2fmu_rule *rule);

/* The answer to the importer. */
static enum mb2fmu_status mb2fmu_leave(mb2fmu_call *call, enum mb2fmu_status status);

/* Answers of a call that only changes the state of the protocol, or resets. */
static enum mb2fmu_status mb2fmu_go_to(mb2fmu_instance *instance, enum mb2fmu_mode mode);
static enum mb2fmu_status mb2fmu_reset(mb2fmu_instance *instance);

/* Types the FMU has no variables of: asking for none of them is all right. */
static enum mb2fmu_status mb2fmu_absent(mb2fmu_instance *instance, size_t n, const char *type);

/* The whole body of an exported function: `action` must not be inlined (see floating_point.c) and answers an enum
 * mb2fmu_status; it sees `instance`. */
#define MB2FMU_CALL(type, handle, rule, action)                                                              \
    mb2fmu_call call;                                                                                        \
    mb2fmu_instance *const instance = mb2fmu_enter(&call, (handle), &(rule));                                \
    return (type)mb2fmu_leave(&call, instance == NULL ? MB2FMU_ERROR : (action))

#endif
