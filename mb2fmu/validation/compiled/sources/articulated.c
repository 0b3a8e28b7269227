#include "articulated.h"

#include <string.h>

#include "nodes.h"

/* R. Featherstone, Rigid Body Dynamics Algorithms, Springer 2008, ch. 7. Vectors are in N's components, motions and
   wrenches of a link about its point P: torque J alpha + H a, force H' alpha + M a, with a the acceleration of P. Forces
   are what acts less what accelerates the bodies at u' = 0, so nothing else depends on velocities. */

/* Sum of the vectors of some terms of points. */
static void along(const struct mechanism *s, const int64_t *path, int64_t begin, int64_t end, double sum[3])
{
    zero(sum, 3);
    for (int64_t i = begin; i < end; i++) {
        const int64_t term = path[i];
        add(sum, s->point_numbers + begin_of(&s->point_terms, term) + 3 * s->point_terms.speeds[term]);
    }
}

static void path_to(const struct mechanism *s, const struct places *places, int64_t i, double d[3])
{
    along(s, places->path, places->path_begin[i], places->path_begin[i + 1], d);
}

/* to := [d]x a, by columns: d × each column of a. */
static void cross_columns(double to[9], const double d[3], const double a[9])
{
    for (int j = 0; j < 3; j++) {
        to[j] = d[1] * a[6 + j] - d[2] * a[3 + j];
        to[3 + j] = d[2] * a[j] - d[0] * a[6 + j];
        to[6 + j] = d[0] * a[3 + j] - d[1] * a[j];
    }
}

/* Adds an inertia (J, H, M) about one point to that about another, which it is at d from:
   H + [d]M, J - H[d] + [d]H' - [d]M[d] = J + (([d]H')' + [d](H + [d]M)'), for [d]' = -[d]. */
static void add_inertia(double to[27], const double in[27], const double d[3])
{
    double moved[9];
    double turned[9];
    double shifted[9];
    double one[9];
    double other[9];
    cross_columns(moved, d, in + 18);
    for (int i = 0; i < 9; i++) {
        moved[i] += in[9 + i];
    }
    for (int i = 0; i < 3; i++) {
        for (int j = 0; j < 3; j++) {
            turned[3 * i + j] = in[9 + 3 * j + i];
            shifted[3 * i + j] = moved[3 * j + i];
        }
    }
    cross_columns(one, d, turned);
    cross_columns(other, d, shifted);
    for (int i = 0; i < 3; i++) {
        for (int j = 0; j < 3; j++) {
            to[3 * i + j] += in[3 * i + j] + one[3 * j + i] + other[3 * i + j];
            to[9 + 3 * i + j] += moved[3 * i + j];
            to[18 + 3 * i + j] += in[18 + 3 * i + j];
        }
    }
}

/* to := (J alpha + H a, H' alpha + M a) */
static void resist(double to[6], const double inertia[27], const double motion[6])
{
    for (int i = 0; i < 3; i++) {
        to[i] = dot(inertia + 3 * i, motion) + dot(inertia + 9 + 3 * i, motion + 3);
        to[3 + i] = dot(inertia + 18 + 3 * i, motion + 3);
        for (int j = 0; j < 3; j++) {
            to[3 + i] += inertia[9 + 3 * j + i] * motion[j];
        }
    }
}

static double work(const double wrench[6], const double motion[6])
{
    return dot(wrench, motion) + dot(wrench + 3, motion + 3);
}

/* Unit motion of each speed, and the way from the link before. */
static void find_units(struct mechanism *s)
{
    const struct articulated *tree = &s->articulated;
    const struct rigid *r = &s->rigid;
    for (int64_t speed = 0; speed < tree->count; speed++) {
        double *link = s->links + LINK * speed;
        const struct path_sums *paths = r->turns[speed] ? &s->turning : &s->moving;
        const struct terms *terms = r->turns[speed] ? &s->frame_terms : &s->point_terms;
        const double *numbers = r->turns[speed] ? s->frame_numbers : s->point_numbers;
        const int64_t node = r->node[speed];
        zero(link, LINK);
        for (int64_t i = paths->first[node]; i < paths->first[node] + paths->terms[node]; i++) {
            for (int64_t j = 0; j < terms->speeds[i]; j++) {
                if (terms->columns[terms->begin[i] + j] == speed) {
                    add(link + UNIT + (r->turns[speed] ? 0 : 3), numbers + begin_of(terms, i) + 3 * j);
                }
            }
        }
        along(s, tree->path, tree->path_begin[speed], tree->path_begin[speed + 1], link + ARM);
        for (int j = 0; j < 3; j++) {
            link[ARM + j] *= (double)tree->sign[speed];
        }
    }
}

/* Inertia of the bodies of each link, and what acts on it. */
static void find_own(struct mechanism *s)
{
    const struct articulated *tree = &s->articulated;
    for (int64_t i = 0; i < tree->bodies.count; i++) {
        const int64_t body = tree->bodies.node[i];
        double own[27] = {0.0};
        double d[3];
        if (s->body_frame[body] >= 0) {
            memcpy(own, s->inertia_N + 9 * body, 9 * sizeof(double));
        }
        own[18] = own[22] = own[26] = s->w[s->mass[body]];
        path_to(s, &tree->bodies, i, d);
        add_inertia(s->links + LINK * tree->bodies.link[i] + INERTIA, own, d);
    }
    for (int64_t i = 0; i < tree->points.count; i++) {
        double *wrench = s->links + LINK * tree->points.link[i] + WRENCH;
        const double *force = s->F + 3 * tree->points.node[i];
        double d[3];
        path_to(s, &tree->points, i, d);
        add(wrench + 3, force);
        add_cross(wrench, d, force);
    }
    for (int64_t i = 0; i < tree->frames.count; i++) {
        add(s->links + LINK * tree->frames.link[i] + WRENCH, s->T + 3 * tree->frames.node[i]);
    }
}

/* Gives a link's inertia and wrench, as far as its own speed does not give way, to the link before. */
static void pass_on(const double link[LINK], double before[LINK])
{
    const double *d = link + ARM;
    double left[27];
    double wrench[6];
    for (int i = 0; i < 3; i++) {
        for (int j = 0; j < 3; j++) {
            const double *U = link + RESISTANCE;
            left[3 * i + j] = link[INERTIA + 3 * i + j] - U[i] * U[j] / link[MASS];
            left[9 + 3 * i + j] = link[INERTIA + 9 + 3 * i + j] - U[i] * U[3 + j] / link[MASS];
            left[18 + 3 * i + j] = link[INERTIA + 18 + 3 * i + j] - U[3 + i] * U[3 + j] / link[MASS];
        }
    }
    for (int i = 0; i < 6; i++) {
        wrench[i] = link[WRENCH + i] - link[RESISTANCE + i] * (link[EFFORT] / link[MASS]);
    }
    add_inertia(before + INERTIA, left, d);
    add(before + WRENCH, wrench);
    add(before + WRENCH + 3, wrench + 3);
    add_cross(before + WRENCH, d, wrench + 3);
}

int link_after_link(struct mechanism *s, double u_dot[])
{
    const struct articulated *tree = &s->articulated;
    find_units(s);
    find_own(s);
    for (int64_t k = tree->count - 1; k >= 0; k--) {
        const int64_t speed = tree->order[k];
        double *link = s->links + LINK * speed;
        resist(link + RESISTANCE, link + INERTIA, link + UNIT);
        link[MASS] = work(link + RESISTANCE, link + UNIT);
        if (!(link[MASS] > 0.0)) {
            return 1;
        }
        link[EFFORT] = work(link + WRENCH, link + UNIT) + (s->n_potential ? s->w[s->potential[speed]] : 0.0);
        if (tree->parent[speed] >= 0) {
            pass_on(link, s->links + LINK * tree->parent[speed]);
        }
    }
    for (int64_t k = 0; k < tree->count; k++) {
        const int64_t speed = tree->order[k];
        double *link = s->links + LINK * speed;
        double *motion = link + SPEEDING;
        if (tree->parent[speed] >= 0) {
            const double *before = s->links + LINK * tree->parent[speed] + SPEEDING;
            memcpy(motion, before, 6 * sizeof(double));
            add_cross(motion + 3, before, link + ARM);
        }
        u_dot[speed] = (link[EFFORT] - work(link + RESISTANCE, motion)) / link[MASS];
        for (int i = 0; i < 6; i++) {
            motion[i] += u_dot[speed] * link[UNIT + i];
        }
    }
    return 0;
}
