/* Vectors of three numbers; sums down the frames and points, and forces back up them. */
#ifndef MB2FMU_NODES_H
#define MB2FMU_NODES_H

#include <stdint.h>
#include <string.h>

#include "bodies.h"

static inline void zero(double to[], int64_t n)
{
    if (n > 0) {
        memset(to, 0, (size_t)n * sizeof(double));
    }
}

static inline void add(double to[3], const double a[3])
{
    to[0] += a[0];
    to[1] += a[1];
    to[2] += a[2];
}

static inline double dot(const double a[3], const double b[3]) { return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]; }

/* to += a × b */
static inline void add_cross(double to[3], const double a[3], const double b[3])
{
    to[0] += a[1] * b[2] - a[2] * b[1];
    to[1] += a[2] * b[0] - a[0] * b[2];
    to[2] += a[0] * b[1] - a[1] * b[0];
}

/* to := R a, R row by row */
static inline void rotate(double to[3], const double R[9], const double a[3])
{
    to[0] = dot(R, a);
    to[1] = dot(R + 3, a);
    to[2] = dot(R + 6, a);
}

/* Where the numbers of a term begin: three for each speed of those before it, and nine more. */
static inline int64_t begin_of(const struct terms *terms, int64_t i) { return 3 * (terms->begin[i] + 3 * i); }

/* Begins a node's sum with that of the node above it. */
static inline void begin_sum(const struct path_sums *paths, int64_t node, double sums[])
{
    const int64_t up = paths->above[node];
    if (up < 0) {
        zero(sums + 3 * node, 3);
    } else {
        memcpy(sums + 3 * node, sums + 3 * up, 3 * sizeof(double));
    }
}

/* Takes the force on a point back to the one above it; its power at a unit of each speed of its terms goes to Q. */
static inline void point_back(struct mechanism *s, int64_t node)
{
    const struct path_sums *paths = &s->moving;
    const double *F = s->F + 3 * node;
    for (int64_t i = paths->first[node]; i < paths->first[node] + paths->terms[node]; i++) {
        const double *numbers = s->point_numbers + begin_of(&s->point_terms, i);
        const int64_t *columns = s->point_terms.columns + s->point_terms.begin[i];
        for (int64_t j = 0; j < s->point_terms.speeds[i]; j++) {
            s->Q[columns[j]] += dot(F, numbers + 3 * j);
        }
        if (!s->given[node]) {
            add_cross(s->T + 3 * s->point_terms.frame[i], numbers + 3 * s->point_terms.speeds[i], F);
        }
    }
    if (paths->above[node] >= 0) {
        add(s->F + 3 * paths->above[node], F);
    }
}

static inline void frame_back(struct mechanism *s, int64_t node)
{
    const struct path_sums *paths = &s->turning;
    const double *T = s->T + 3 * node;
    for (int64_t i = paths->first[node]; i < paths->first[node] + paths->terms[node]; i++) {
        const double *numbers = s->frame_numbers + begin_of(&s->frame_terms, i);
        const int64_t *columns = s->frame_terms.columns + s->frame_terms.begin[i];
        for (int64_t j = 0; j < s->frame_terms.speeds[i]; j++) {
            s->Q[columns[j]] += dot(T, numbers + 3 * j);
        }
    }
    if (paths->above[node] >= 0) {
        add(s->T + 3 * paths->above[node], T);
    }
}

#endif
