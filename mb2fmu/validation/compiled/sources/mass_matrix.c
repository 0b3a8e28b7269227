#include "mass_matrix.h"

#include <string.h>

#include "nodes.h"

/* Adds the partial velocities by speed j of a node's own terms. */
static void add_partials(const struct terms *terms, const double numbers[], int64_t i, int64_t speed, double to[3])
{
    const int64_t *columns = terms->columns + terms->begin[i];
    for (int64_t j = 0; j < terms->speeds[i]; j++) {
        if (columns[j] == speed) {
            add(to, numbers + begin_of(terms, i) + 3 * j);
        }
    }
}

/* Partial velocities by one speed into omega's and velocity's places of acceleration: alpha, acceleration. */
static void move_alone(struct mechanism *s, int64_t speed)
{
    for (int64_t k = s->frames_begin[speed]; k < s->frames_begin[speed + 1]; k++) {
        const int64_t node = s->frames_of[k];
        const struct path_sums *paths = &s->turning;
        begin_sum(paths, node, s->alpha);
        for (int64_t i = paths->first[node]; i < paths->first[node] + paths->terms[node]; i++) {
            add_partials(&s->frame_terms, s->frame_numbers, i, speed, s->alpha + 3 * node);
        }
    }
    for (int64_t k = s->points_begin[speed]; k < s->points_begin[speed + 1]; k++) {
        const int64_t node = s->points_of[k];
        const struct path_sums *paths = &s->moving;
        begin_sum(paths, node, s->acceleration);
        for (int64_t i = paths->first[node]; i < paths->first[node] + paths->terms[node]; i++) {
            add_partials(&s->point_terms, s->point_numbers, i, speed, s->acceleration + 3 * node);
            if (!s->given[node]) {
                const double *rho = s->point_numbers + begin_of(&s->point_terms, i) + 3 * s->point_terms.speeds[i];
                add_cross(s->acceleration + 3 * node, s->alpha + 3 * s->point_terms.frame[i], rho);
            }
        }
    }
}

/* Forces and moments that accelerate the bodies as move_alone moves them. */
static void accelerate(struct mechanism *s, int64_t speed)
{
    for (int64_t k = s->bodies_begin[speed]; k < s->bodies_begin[speed + 1]; k++) {
        const int64_t body = s->bodies_of[k];
        const double mass = s->w[s->mass[body]];
        const int64_t at = 3 * s->masscenter[body];
        for (int j = 0; j < 3; j++) {
            s->F[at + j] += mass * s->acceleration[at + j];
        }
        if (s->body_frame[body] >= 0) {
            double moment[3];
            rotate(moment, s->inertia_N + 9 * body, s->alpha + 3 * s->body_frame[body]);
            add(s->T + 3 * s->body_frame[body], moment);
        }
    }
}

/* Makes alpha and acceleration 0 again where move_alone has written. */
static void rest(struct mechanism *s, int64_t speed)
{
    for (int64_t k = s->points_begin[speed]; k < s->points_begin[speed + 1]; k++) {
        zero(s->acceleration + 3 * s->points_of[k], 3);
    }
    for (int64_t k = s->frames_begin[speed]; k < s->frames_begin[speed + 1]; k++) {
        zero(s->alpha + 3 * s->frames_of[k], 3);
    }
}

/* Adds a piece of mass m whose first moment and inertia about its own origin are h and J, at d from the composite's. */
static void add_shifted(double to[COMPOSITE], double m, const double h[3], const double J[9], const double d[3])
{
    const double along = m * dot(d, d) + 2.0 * dot(d, h);
    to[0] += m;
    for (int i = 0; i < 3; i++) {
        to[1 + i] += h[i] + m * d[i];
        for (int j = 0; j < 3; j++) {
            to[4 + 3 * i + j] += J[3 * i + j] - (m * d[i] * d[j] + d[i] * h[j] + h[i] * d[j]);
        }
        to[4 + 4 * i] += along;
    }
}

/* Mass, first moment and inertia of everything that goes with a point as one rigid whole, about that point. */
static void find_composites(struct mechanism *s)
{
    static const double none[9] = {0.0};
    const struct composites *c = &s->composites;
    for (int64_t k = 0; k < c->count; k++) {
        double *to = s->composite + COMPOSITE * k;
        zero(to, COMPOSITE);
        for (int64_t i = c->begin[k]; i < c->begin[k + 1]; i++) {
            double d[3] = {0.0, 0.0, 0.0};
            for (int64_t l = c->path_begin[i]; l < c->path_begin[i + 1]; l++) {
                const int64_t term = c->path[l];
                add(d, s->point_numbers + begin_of(&s->point_terms, term) + 3 * s->point_terms.speeds[term]);
            }
            const int64_t body = c->piece[i];
            if (body >= 0) {
                const double *J = s->body_frame[body] < 0 ? none : s->inertia_N + 9 * body;
                add_shifted(to, s->w[s->mass[body]], none, J, d);
            } else {
                const double *other = s->composite + COMPOSITE * (-1 - body);
                add_shifted(to, other[0], other + 1, other + 4, d);
            }
        }
    }
}

/* Of each group: the composite of its particles about its point; of each of its speeds, with the partial velocities phi_k
   of the displacements rho_k, the sums of m_k phi_k and of m_k rho_k x phi_k; of each two, that of m_k phi_k . phi'_k. */
static void find_particle_groups(struct mechanism *s)
{
    static const double none[9] = {0.0};
    const struct particle_groups *g = &s->particle_groups;
    for (int64_t k = 0; k < g->count; k++) {
        const int64_t n = g->speeds_begin[k + 1] - g->speeds_begin[k];
        double *whole = s->group_numbers + g->numbers_begin[k];
        double *momenta = whole + COMPOSITE;
        double *angular = momenta + 3 * n;
        double *products = angular + 3 * n;
        zero(whole, g->numbers_begin[k + 1] - g->numbers_begin[k]);
        for (int64_t i = g->begin[k]; i < g->begin[k + 1]; i++) {
            const int64_t term = g->term[i];
            const int64_t count = s->point_terms.speeds[term];
            const int64_t *local = g->local + s->point_terms.begin[term];
            const double *phi = s->point_numbers + begin_of(&s->point_terms, term);
            const double mass = s->w[s->mass[g->body[i]]];
            add_shifted(whole, mass, none, none, phi + 3 * count);
            for (int64_t a = 0; a < count; a++) {
                const double momentum[3] = {mass * phi[3 * a], mass * phi[3 * a + 1], mass * phi[3 * a + 2]};
                add(momenta + 3 * local[a], momentum);
                add_cross(angular + 3 * local[a], phi + 3 * count, momentum);
                for (int64_t b = 0; b < count; b++) {
                    products[local[a] * n + local[b]] += dot(momentum, phi + 3 * b);
                }
            }
        }
    }
}

/* Forces and moments on the points and frames of groups that accelerate their particles as move_alone moves them; their
   power at a unit of each speed of the displacements goes to Q. */
static void accelerate_particle_groups(struct mechanism *s, int64_t speed)
{
    const struct particle_groups *g = &s->particle_groups;
    for (int64_t i = g->groups_begin[speed]; i < g->groups_begin[speed + 1]; i++) {
        const int64_t k = g->groups_of[i];
        const int64_t n = g->speeds_begin[k + 1] - g->speeds_begin[k];
        const int64_t *speeds = g->speeds + g->speeds_begin[k];
        const double *whole = s->group_numbers + g->numbers_begin[k];
        const double *momenta = whole + COMPOSITE;
        const double *angular = momenta + 3 * n;
        const double *products = angular + 3 * n;
        const double *a = s->acceleration + 3 * g->point[k];
        const double *alpha = s->alpha + 3 * g->frame[k];
        double force[3] = {whole[0] * a[0], whole[0] * a[1], whole[0] * a[2]};
        double moment[3];
        add_cross(force, alpha, whole + 1);
        rotate(moment, whole + 4, alpha);
        add_cross(moment, whole + 1, a);
        for (int64_t c = 0; c < n; c++) {
            s->Q[speeds[c]] += dot(momenta + 3 * c, a) + dot(angular + 3 * c, alpha);
            if (speeds[c] != speed) {
                continue;
            }
            add(force, momenta + 3 * c);
            add(moment, angular + 3 * c);
            for (int64_t d = 0; d < n; d++) {
                s->Q[speeds[d]] += products[c * n + d];
            }
        }
        add(s->F + 3 * g->point[k], force);
        add(s->T + 3 * g->frame[k], moment);
    }
}

/* Column of a speed that moves one rigid whole: what moves the whole acts on its stem, and goes back from there. */
static void rigid_column(struct mechanism *s, int64_t speed)
{
    const struct rigid *r = &s->rigid;
    const struct path_sums *paths = r->turns[speed] ? &s->turning : &s->moving;
    const struct terms *terms = r->turns[speed] ? &s->frame_terms : &s->point_terms;
    const double *numbers = r->turns[speed] ? s->frame_numbers : s->point_numbers;
    const int64_t node = r->node[speed];
    const double *whole = s->composite + COMPOSITE * r->composite[speed];
    double unit[3] = {0.0, 0.0, 0.0};
    double force[3] = {0.0, 0.0, 0.0};
    double moment[3] = {0.0, 0.0, 0.0};
    for (int64_t i = paths->first[node]; i < paths->first[node] + paths->terms[node]; i++) {
        add_partials(terms, numbers, i, speed, unit);
    }
    if (r->turns[speed]) {
        rotate(moment, whole + 4, unit);
        add_cross(force, unit, whole + 1);
    } else {
        for (int j = 0; j < 3; j++) {
            force[j] = whole[0] * unit[j];
        }
        add_cross(moment, whole + 1, unit);
    }
    if (r->point[speed] >= 0) {
        add(s->F + 3 * r->point[speed], force);
    }
    if (r->frame[speed] >= 0) {
        add(s->T + 3 * r->frame[speed], moment);
    }
}

/* Forces and torques from the nodes of column ``speed`` back to the origin; they are 0 afterwards. */
static void back(struct mechanism *s, int64_t speed)
{
    for (int64_t k = s->points_begin[speed + 1] - 1; k >= s->points_begin[speed]; k--) {
        point_back(s, s->points_of[k]);
        zero(s->F + 3 * s->points_of[k], 3);
    }
    for (int64_t k = s->frames_begin[speed + 1] - 1; k >= s->frames_begin[speed]; k--) {
        frame_back(s, s->frames_of[k]);
        zero(s->T + 3 * s->frames_of[k], 3);
    }
}

void mass_matrix(struct mechanism *s, double M[])
{
    const int64_t n = s->n_u;
    zero(s->alpha, 3 * s->n_frames);
    zero(s->acceleration, 3 * s->moving.count);
    zero(s->F, 3 * s->moving.count);
    zero(s->T, 3 * s->n_frames);
    zero(M, n * n);
    find_composites(s);
    find_particle_groups(s);
    for (int64_t j = 0; j < n; j++) {
        const int rigid = s->rigid.node[j] >= 0;
        zero(s->Q, s->n_all);
        if (rigid) {
            rigid_column(s, j);
        } else {
            move_alone(s, j);
            accelerate(s, j);
            accelerate_particle_groups(s, j);
        }
        back(s, j);
        if (!rigid) {
            rest(s, j);
        }
        for (int64_t k = s->rigid.rows_begin[j]; k < s->rigid.rows_begin[j + 1]; k++) {
            const int64_t i = s->rigid.rows[k];
            M[i * n + j] = s->Q[i];
            M[j * n + i] = s->Q[i];
        }
    }
}
