#include "bodies.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "articulated.h"
#include "mass_matrix.h"
#include "nodes.h"

static double *take(double *memory, int64_t *used, int64_t n)
{
    double *place = memory ? memory + *used : NULL;
    *used += n;
    return place;
}

static int64_t numbers_of(const struct terms *terms)
{
    int64_t n = 0;
    for (int64_t i = 0; i < terms->count; i++) {
        n += 3 * (terms->speeds[i] + 3);
    }
    return n;
}

static int64_t distribute(struct mechanism *s, double *memory)
{
    int64_t used = 0;
    const int64_t frames = 3 * s->n_frames;
    const int64_t points = 3 * s->moving.count;
    s->g = take(memory, &used, s->n_gathered + 1);
    s->R = take(memory, &used, 3 * frames);
    s->omega = take(memory, &used, frames);
    s->alpha = take(memory, &used, frames);
    s->T = take(memory, &used, frames);
    s->position = take(memory, &used, points + 1);
    s->velocity = take(memory, &used, points + 1);
    s->acceleration = take(memory, &used, points + 1);
    s->F = take(memory, &used, points + 1);
    s->Q = take(memory, &used, s->n_all + 1);
    s->frame_numbers = take(memory, &used, numbers_of(&s->frame_terms) + 1);
    s->point_numbers = take(memory, &used, numbers_of(&s->point_terms) + 1);
    s->place_numbers = take(memory, &used, numbers_of(&s->place_terms) + 1);
    s->inertia_N = take(memory, &used, 9 * s->n_bodies + 1);
    s->composite = take(memory, &used, COMPOSITE * s->composites.count + 1);
    s->group_numbers = take(memory, &used, s->particle_groups.numbers_begin[s->particle_groups.count] + 1);
    s->links = take(memory, &used, LINK * s->articulated.count + 1);
    return used;
}

int mechanism_begin(struct mechanism *s)
{
    s->memory = (double *)calloc((size_t)distribute(s, NULL), sizeof(double));
    if (!s->memory) {
        return 1;
    }
    distribute(s, s->memory);
    return 0;
}

void mechanism_end(struct mechanism *s)
{
    free(s->memory);
    s->memory = NULL;
}

static void evaluate(struct mechanism *s, const struct groups *groups)
{
    for (int64_t i = 0; i < groups->count; i++) {
        const struct group *group = groups->groups + i;
        group->function(s->w, group->places, group->count, s->w + group->first);
    }
}

static void set(struct mechanism *s, const double v[])
{
    memcpy(s->w, v, (size_t)s->n_v * sizeof(double));
    evaluate(s, &s->motion);
}

void mechanism_rates(struct mechanism *s, const double v[], double rates[])
{
    set(s, v);
    zero(rates, s->m * s->n_u);
    for (int64_t i = 0; i < s->A.count; i++) {
        rates[s->A.row[i] * s->n_u + s->A.column[i]] = s->w[s->A.place[i]];
    }
    for (int64_t i = 0; i < s->m; i++) {
        rates[s->m * s->n_u + i] = s->w[s->b[i]];
    }
}

/* Numbers of all terms, one after the other, in N's components. */
static void express(const struct mechanism *s, const struct terms *terms, double out[])
{
    for (int64_t i = 0; i < terms->count; i++) {
        const double *R = s->R + 9 * terms->frame[i];
        const double *in = s->g + terms->numbers[i];
        for (int64_t j = 0; j < terms->speeds[i] + 3; j++) {
            rotate(out, R, in);
            in += 3;
            out += 3;
        }
    }
}

static void find_rotations(struct mechanism *s)
{
    for (int64_t i = 0; i < s->n_frames; i++) {
        const double *local = s->g + s->rotation[i];
        double *R = s->R + 9 * i;
        if (s->frame_parent[i] < 0) {
            memcpy(R, local, 9 * sizeof(double));
            continue;
        }
        const double *up = s->R + 9 * s->frame_parent[i];
        for (int j = 0; j < 3; j++) {
            for (int k = 0; k < 3; k++) {
                R[3 * j + k] = up[3 * j] * local[k] + up[3 * j + 1] * local[3 + k] + up[3 * j + 2] * local[6 + k];
            }
        }
    }
}

/* Adds what accelerations of the speeds give to one term's rate; none: all are 0. */
static void add_accelerations(const struct mechanism *s, const struct terms *terms, const double numbers[], int64_t i,
    const double u_dot[], double to[3])
{
    const int64_t *columns = terms->columns + terms->begin[i];
    for (int64_t j = 0; u_dot && j < terms->speeds[i]; j++) {
        const double size = columns[j] < s->n_u ? u_dot[columns[j]] : 0.0;
        for (int k = 0; k < 3; k++) {
            to[k] += size * numbers[begin_of(terms, i) + 3 * j + k];
        }
    }
}

static void find_turning(struct mechanism *s, const double u_dot[])
{
    const struct path_sums *paths = &s->turning;
    for (int64_t k = 0; k < paths->count; k++) {
        const int64_t node = paths->order[k];
        begin_sum(paths, node, s->omega);
        for (int64_t i = paths->first[node]; i < paths->first[node] + paths->terms[node]; i++) {
            add(s->omega + 3 * node, s->frame_numbers + begin_of(&s->frame_terms, i) + 3 * s->frame_terms.speeds[i]);
        }
    }
    for (int64_t k = 0; k < paths->count; k++) {
        const int64_t node = paths->order[k];
        begin_sum(paths, node, s->alpha);
        for (int64_t i = paths->first[node]; i < paths->first[node] + paths->terms[node]; i++) {
            const double *vector = s->frame_numbers + begin_of(&s->frame_terms, i) + 3 * s->frame_terms.speeds[i];
            add(s->alpha + 3 * node, vector + 3);
            add_cross(s->alpha + 3 * node, s->omega + 3 * s->frame_terms.frame[i], vector);
            add_accelerations(s, &s->frame_terms, s->frame_numbers, i, u_dot, s->alpha + 3 * node);
        }
    }
}

static void find_positions(struct mechanism *s)
{
    const struct path_sums *paths = &s->places_of_points;
    express(s, &s->place_terms, s->place_numbers);
    for (int64_t k = 0; k < paths->count; k++) {
        const int64_t node = paths->order[k];
        begin_sum(paths, node, s->position);
        for (int64_t i = paths->first[node]; i < paths->first[node] + paths->terms[node]; i++) {
            add(s->position + 3 * node, s->place_numbers + begin_of(&s->place_terms, i) + 3 * s->place_terms.speeds[i]);
        }
    }
}

/* Adds what one term of a point's position, or of its given velocity, gives to its velocity and acceleration. */
static void add_motion(struct mechanism *s, int64_t node, int64_t i, const double u_dot[])
{
    const double *vector = s->point_numbers + begin_of(&s->point_terms, i) + 3 * s->point_terms.speeds[i];
    const double *rate = vector + 3;
    const double *omega = s->omega + 3 * s->point_terms.frame[i];
    double *v = s->velocity + 3 * node;
    double *a = s->acceleration + 3 * node;
    add_accelerations(s, &s->point_terms, s->point_numbers, i, u_dot, a);
    if (s->given[node]) {
        add(v, vector);
        add(a, rate);
        add_cross(a, omega, vector);
        return;
    }
    double inner[3] = {2.0 * rate[0], 2.0 * rate[1], 2.0 * rate[2]};
    add(v, rate);
    add_cross(v, omega, vector);
    add_cross(inner, omega, vector);
    add(a, vector + 6);
    add_cross(a, s->alpha + 3 * s->point_terms.frame[i], vector);
    add_cross(a, omega, inner);
}

static void find_moving(struct mechanism *s, const double u_dot[])
{
    const struct path_sums *paths = &s->moving;
    for (int64_t k = 0; k < paths->count; k++) {
        const int64_t node = paths->order[k];
        begin_sum(paths, node, s->velocity);
        begin_sum(paths, node, s->acceleration);
        for (int64_t i = paths->first[node]; i < paths->first[node] + paths->terms[node]; i++) {
            add_motion(s, node, i, u_dot);
        }
    }
}

/* Lengths of the pathways and their rates into w. */
static void find_pathways(struct mechanism *s)
{
    for (int64_t k = 0; k < s->pathways.count; k++) {
        double *length = s->w + s->pathways.length[k];
        length[0] = 0.0;
        length[1] = 0.0;
        for (int64_t i = s->pathways.first[k]; i + 1 < s->pathways.first[k + 1]; i++) {
            const int64_t a = 3 * s->pathways.points[i];
            const int64_t b = 3 * s->pathways.points[i + 1];
            double d[3];
            double moving = 0.0;
            for (int j = 0; j < 3; j++) {
                d[j] = s->position[b + j] - s->position[a + j];
                moving += d[j] * (s->velocity[b + j] - s->velocity[a + j]);
            }
            const double size = sqrt(dot(d, d));
            length[0] += size;
            length[1] += moving / size;
        }
    }
}

/* Vectors that expressions name into w. */
static void find_sensed(struct mechanism *s)
{
    const double *vectors[] = {s->position, s->velocity, s->omega};
    for (int64_t k = 0; k < s->sensed.count; k++) {
        memcpy(s->w + s->sensed.place[k], vectors[s->sensed.kind[k]] + 3 * s->sensed.node[k], 3 * sizeof(double));
    }
}

/* Forces along the pathways: each segment pushes its ends apart. */
static void push_pathways(struct mechanism *s)
{
    for (int64_t k = 0; k < s->pathways.count; k++) {
        const double force = s->w[s->pathways.force[k]];
        for (int64_t i = s->pathways.first[k]; i + 1 < s->pathways.first[k + 1]; i++) {
            const int64_t a = 3 * s->pathways.points[i];
            const int64_t b = 3 * s->pathways.points[i + 1];
            double d[3];
            for (int j = 0; j < 3; j++) {
                d[j] = s->position[b + j] - s->position[a + j];
            }
            const double size = sqrt(dot(d, d));
            for (int j = 0; j < 3; j++) {
                s->F[a + j] -= force * d[j] / size;
                s->F[b + j] += force * d[j] / size;
            }
        }
    }
}

static void act(const struct mechanism *s, const struct pieces *pieces, double on[])
{
    for (int64_t i = 0; i < pieces->count; i++) {
        const double factor = pieces->sign[i] * (pieces->factor[i] < 0 ? 1.0 : s->w[pieces->factor[i]]);
        double vector[3];
        double local[3];
        for (int j = 0; j < 3; j++) {
            local[j] = factor * s->w[pieces->vector[3 * i + j]];
        }
        rotate(vector, s->R + 9 * pieces->frame[i], local);
        add(on + 3 * pieces->node[i], vector);
    }
}

static void find_inertias(struct mechanism *s)
{
    for (int64_t k = 0; k < s->n_bodies; k++) {
        if (s->body_frame[k] < 0) {
            continue;
        }
        const double *R = s->R + 9 * s->body_frame[k];
        double half[9];
        for (int i = 0; i < 3; i++) {
            for (int j = 0; j < 3; j++) {
                half[3 * i + j] = 0.0;
                for (int l = 0; l < 3; l++) {
                    half[3 * i + j] += R[3 * i + l] * s->w[s->inertia[9 * k + 3 * l + j]];
                }
            }
        }
        for (int i = 0; i < 3; i++) {
            for (int j = 0; j < 3; j++) {
                s->inertia_N[9 * k + 3 * i + j] = dot(half + 3 * i, R + 3 * j);
            }
        }
    }
}

/* Takes the forces that accelerate the bodies at u' = 0 off what acts. */
static void resist(struct mechanism *s)
{
    for (int64_t k = 0; k < s->n_bodies; k++) {
        const double mass = s->w[s->mass[k]];
        const int64_t at = 3 * s->masscenter[k];
        for (int j = 0; j < 3; j++) {
            s->F[at + j] -= mass * s->acceleration[at + j];
        }
        if (s->body_frame[k] < 0) {
            continue;
        }
        const double *omega = s->omega + 3 * s->body_frame[k];
        const double *inertia = s->inertia_N + 9 * k;
        double momentum[3];
        double moment[3];
        rotate(momentum, inertia, omega);
        rotate(moment, inertia, s->alpha + 3 * s->body_frame[k]);
        add_cross(moment, omega, momentum);
        for (int j = 0; j < 3; j++) {
            s->T[3 * s->body_frame[k] + j] -= moment[j];
        }
    }
}

/* Everything that moves, lengths of pathways, and what expressions name; then what depends on these. */
static void find_motion(struct mechanism *s)
{
    for (int64_t i = 0; i < s->n_gathered; i++) {
        s->g[i] = s->w[s->gathered[i]];
    }
    find_rotations(s);
    express(s, &s->frame_terms, s->frame_numbers);
    express(s, &s->point_terms, s->point_numbers);
    find_turning(s, NULL);
    if (s->pathways.count || s->sensed.count) {
        find_positions(s);
    }
    find_moving(s, NULL);
    find_pathways(s);
    find_sensed(s);
    evaluate(s, &s->acting);
    find_inertias(s);
}

void mechanism_move(struct mechanism *s, const double v[])
{
    set(s, v);
    find_motion(s);
}

/* What acts on points and frames, and its power; then less what accelerates the bodies at u' = 0. */
static void find_loads(struct mechanism *s)
{
    zero(s->F, 3 * s->moving.count);
    zero(s->T, 3 * s->n_frames);
    act(s, &s->forces, s->F);
    act(s, &s->torques, s->T);
    push_pathways(s);
    s->power = 0.0;
    for (int64_t k = 0; k < s->moving.count; k++) {
        s->power += dot(s->F + 3 * k, s->velocity + 3 * k);
    }
    for (int64_t k = 0; k < s->n_frames; k++) {
        s->power += dot(s->T + 3 * k, s->omega + 3 * k);
    }
    for (int64_t i = 0; i < s->n_potential; i++) {
        s->power += s->w[s->potential[i]] * s->w[1 + s->n_q + i];
    }
    resist(s);
}

static void find_forcing(struct mechanism *s, double f[])
{
    find_loads(s);
    zero(s->Q, s->n_all);
    for (int64_t k = s->moving.count - 1; k >= 0; k--) {
        point_back(s, s->moving.order[k]);
    }
    for (int64_t k = s->turning.count - 1; k >= 0; k--) {
        frame_back(s, s->turning.order[k]);
    }
    memcpy(f, s->Q, (size_t)s->n_u * sizeof(double));
    for (int64_t i = 0; i < s->n_potential; i++) {
        f[i] += s->w[s->potential[i]];
    }
}

/* Everything but forces and accelerations; q'. */
static void find_rates(struct mechanism *s, const double v[], int again, double q_dot[])
{
    if (again) {
        set(s, v);
    }
    find_motion(s);
    for (int64_t i = 0; i < s->n_q; i++) {
        q_dot[i] = s->w[s->k0[i]];
    }
    for (int64_t i = 0; i < s->K.count; i++) {
        q_dot[s->K.row[i]] += s->w[s->K.place[i]] * v[1 + s->n_q + s->K.column[i]];
    }
}

int mechanism_accelerations(struct mechanism *s, const double v[], int again, double q_dot[], double u_dot[])
{
    if (!s->articulated.count) {
        return 1;
    }
    find_rates(s, v, again, q_dot);
    find_loads(s);
    return link_after_link(s, u_dot);
}

void mechanism_dynamics(struct mechanism *s, const double v[], int again, double numbers[])
{
    find_rates(s, v, again, numbers);
    double *f = numbers + s->n_q + s->n_u * s->n_u;
    find_forcing(s, f);
    mass_matrix(s, numbers + s->n_q);
    for (int64_t i = 0; i < s->m; i++) {
        f[s->n_u + i] = s->w[s->gamma[i]];
    }
}

/* dT/du of all speeds into Q: what the momenta would give by virtual power, were they forces. */
static void find_momenta(struct mechanism *s)
{
    zero(s->F, 3 * s->moving.count);
    zero(s->T, 3 * s->n_frames);
    zero(s->Q, s->n_all);
    for (int64_t k = 0; k < s->n_bodies; k++) {
        const int64_t at = 3 * s->masscenter[k];
        for (int j = 0; j < 3; j++) {
            s->F[at + j] += s->w[s->mass[k]] * s->velocity[at + j];
        }
        if (s->body_frame[k] >= 0) {
            double momentum[3];
            rotate(momentum, s->inertia_N + 9 * k, s->omega + 3 * s->body_frame[k]);
            add(s->T + 3 * s->body_frame[k], momentum);
        }
    }
    for (int64_t k = s->moving.count - 1; k >= 0; k--) {
        point_back(s, s->moving.order[k]);
    }
    for (int64_t k = s->turning.count - 1; k >= 0; k--) {
        frame_back(s, s->turning.order[k]);
    }
}

/* Partial velocities by virtual power: what unit forces on a point, or unit torques on a frame, give along the speeds. */
static void find_partials(struct mechanism *s, enum quantity kind, int64_t node, double to[])
{
    for (int j = 0; j < 3; j++) {
        zero(s->F, 3 * s->moving.count);
        zero(s->T, 3 * s->n_frames);
        zero(s->Q, s->n_all);
        (kind == POINT_PARTIALS ? s->F : s->T)[3 * node + j] = 1.0;
        for (int64_t k = s->moving.count - 1; k >= 0; k--) {
            point_back(s, s->moving.order[k]);
        }
        for (int64_t k = s->turning.count - 1; k >= 0; k--) {
            frame_back(s, s->turning.order[k]);
        }
        memcpy(to + j * s->n_u, s->Q, (size_t)s->n_u * sizeof(double));
    }
}

/* What is over all speeds; accelerations become those at u' = 0, or nothing. */
static void observe_dynamics(struct mechanism *s, double v[])
{
    for (int64_t k = 0; k < s->n_quantities; k++) {
        double *to = v + s->quantity_slot[k];
        if (s->quantity_kind[k] == MASS_MATRIX) {
            mass_matrix(s, to);
        } else if (s->quantity_kind[k] == FORCING) {
            find_turning(s, NULL);
            find_moving(s, NULL);
            find_forcing(s, to);
        } else if (s->quantity_kind[k] == POINT_PARTIALS || s->quantity_kind[k] == FRAME_PARTIALS) {
            find_partials(s, (enum quantity)s->quantity_kind[k], s->quantity_node[k], to);
        }
    }
}

void mechanism_observe(struct mechanism *s, const double u_dot[], double v[])
{
    if (!s->n_quantities) {
        return;
    }
    observe_dynamics(s, v);
    find_turning(s, u_dot);
    find_positions(s);
    find_moving(s, u_dot);
    find_momenta(s);
    const double *vectors[] = {NULL, s->omega, s->alpha, s->position, s->velocity, s->acceleration};
    for (int64_t k = 0; k < s->n_quantities; k++) {
        const int64_t node = s->quantity_node[k];
        double *to = v + s->quantity_slot[k];
        if (s->quantity_kind[k] >= MASS_MATRIX) {
            continue; /* it is there already */
        }
        if (s->quantity_kind[k] == MOMENTUM) {
            *to = s->Q[node];
        } else if (s->quantity_kind[k] == ROTATION) {
            memcpy(to, s->R + 9 * node, 9 * sizeof(double));
        } else {
            memcpy(to, vectors[s->quantity_kind[k]] + 3 * node, 3 * sizeof(double));
        }
    }
}

void mechanism_late(struct mechanism *s, double z_dot[], double *power)
{
    for (int64_t i = 0; i < s->n_z; i++) {
        z_dot[i] = s->w[s->z_dot[i]];
    }
    *power = s->power;
}
