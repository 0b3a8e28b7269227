/* script.h: runs the commands of a script on one or many instances of a unit. */
#ifndef DRIVER_SCRIPT_H
#define DRIVER_SCRIPT_H

#include <stddef.h>

#include "conditions.h"
#include "unit.h"

/* Text that grows. */
typedef struct {
    char *text;
    size_t length, room;
} driver_text;

/* One run of the script. */
typedef struct {
    const unit *unit;
    const char *script;
    size_t instances;
    driver_conditions conditions;
    driver_text output; /* what the first instance did; the caller frees text */
    int failed;         /* the instances or the floating-point settings differ, or a command is not known */
} driver_run;

/* A driver_work. */
void driver_run_script(void *run);

#endif
