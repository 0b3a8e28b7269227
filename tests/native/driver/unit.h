/* unit.h: a loaded unit, whatever its FMI version.
 *
 * Why it exists: the script's commands are the same for FMI 2 and FMI 3; each version fills in how they are called.
 * Functions return FMI's status (0 OK, 1 Warning, 2 Discard, 3 Error, 4 Fatal), which counts alike in both versions.
 */
#ifndef DRIVER_UNIT_H
#define DRIVER_UNIT_H

#include <stddef.h>

enum { DRIVER_MAXIMUM = 1024 }; /* most values in one call */

typedef struct unit unit;

typedef int driver_plain(const unit *, void *instance);
typedef int driver_set_reals(const unit *, void *instance, const unsigned int *, size_t, const double *);
typedef int driver_get_reals(const unit *, void *instance, const unsigned int *, size_t, double *);
typedef int driver_states(const unit *, void *instance, double *, size_t);

/* What both versions offer. */
typedef struct {
    void *(*instantiate)(const unit *, const char *name);
    int (*enter)(const unit *, void *, double start, const double *stop, const double *tolerance);
    driver_plain *leave, *continuous, *terminate, *reset, *save, *restore;
    driver_set_reals *set_reals;
    driver_get_reals *get_reals;
    int (*set_choice)(const unit *, void *, unsigned int, int);
    int (*step)(const unit *, void *, double t, double h);
    int (*set_time)(const unit *, void *, double t);
    int (*completed)(const unit *, void *);
    driver_states *get_states, *set_states, *get_derivatives;
    int (*directional)(const unit *, void *, unsigned int unknown, unsigned int known, double *);
    int (*serialize)(const unit *, void *, unsigned char **, size_t *);
    int (*deserialize)(const unit *, void *, const unsigned char *, size_t);
    void (*free_instance)(const unit *, void *);
} driver_calls;

struct unit {
    void *library;
    const driver_calls *calls;
    const void *functions; /* of the version */
    const char *token, *resources;
    int model_exchange;
    int verbose;
};

/* Load the functions; 0 if one is missing (told on stderr). */
int driver_load2(unit *);
int driver_load3(unit *);

#endif
