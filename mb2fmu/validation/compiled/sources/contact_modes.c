#include "contact_modes.h"

#include "dense.h"
#include "equations.h"

#include <math.h>
#include <string.h>

#define RANK_TOLERANCE 1e-11
#define LAW_TOLERANCE 1e-9       /* of the largest rate or acceleration */
#define DISTINCT_SOLUTION 1e-6   /* of the same */
#define MOST_WAYS 20000

/* The friction of a contact; -1: it has none. */
static int64_t friction_of(const struct contact_problem *c, int64_t contact)
{
    for (int64_t j = 0; j < c->frictions; j++) {
        if (c->rough[j] == contact) {
            return j;
        }
    }
    return -1;
}

/* What a unit of the unknown force i gives to all forces: its own, and the friction of what slides under it. */
static double response(const struct contact_problem *c, const struct contact_modes *modes, const double W[], int64_t i)
{
    double sum = W[i];
    for (int64_t j = 0; j < c->frictions && i < c->contacts; j++) {
        sum -= c->rough[j] == i ? c->mu[j] * modes->senses[j] * W[c->contacts + j] : 0.0;
    }
    return sum;
}

static double length_of(const struct contact_problem *c, int64_t i)
{
    const double own = c->W[i * (c->contacts + c->frictions) + i];
    return own > 0.0 ? sqrt(own) : 1.0;
}

/* Forces that are not unknown: the smallest normal ones of what opens, and their friction. */
static void set_known_forces(const struct contact_problem *c, const struct contact_modes *modes, double forces[])
{
    for (int64_t i = 0; i < c->contacts; i++) {
        forces[i] = modes->pressed[i] ? 0.0 : c->minimum[i];
    }
    for (int64_t j = 0; j < c->frictions; j++) {
        forces[c->contacts + j] = -c->mu[j] * modes->senses[j] * forces[c->rough[j]];
    }
}

static void find_rates(const struct contact_problem *c, const double forces[], double y[])
{
    const int64_t n = c->contacts + c->frictions;
    for (int64_t i = 0; i < n; i++) {
        y[i] = c->q[i];
        for (int64_t j = 0; j < n; j++) {
            y[i] += c->W[i * n + j] * forces[j];
        }
    }
}

void solve_in_modes(const struct contact_problem *c, const struct contact_modes *modes, double forces[], double y[],
    double numbers[], int64_t integers[])
{
    const int64_t n = c->contacts + c->frictions;
    double *right = numbers + n * n;
    double *z = right + n;
    int64_t *unknown = integers;
    struct orthogonal d = {
        .a = numbers, .left = z + n, .right = z + 2 * n, .spare = z + 3 * n, .pivot = integers + n};
    int64_t count = 0;
    for (int64_t i = 0; i < n; i++) {
        if (i < c->contacts ? modes->pressed[i] : modes->stuck[i - c->contacts]) {
            unknown[count++] = i;
        }
    }
    set_known_forces(c, modes, forces);
    find_rates(c, forces, y);
    if (count == 0) {
        return;
    }
    d.rows = d.columns = count;
    for (int64_t row = 0; row < count; row++) {
        const double length = length_of(c, unknown[row]);
        right[row] = -y[unknown[row]] / length;
        for (int64_t column = 0; column < count; column++) {
            d.a[column * count + row] = response(c, modes, c->W + unknown[row] * n, unknown[column]) /
                (length * length_of(c, unknown[column]));
        }
    }
    decompose(&d, RANK_TOLERANCE);
    solve_least_squares(&d, right, z);
    for (int64_t column = 0; column < count; column++) {
        const int64_t i = unknown[column];
        const double force = z[column] / length_of(c, i);
        forces[i] += force;
        for (int64_t j = 0; j < c->frictions && i < c->contacts; j++) {
            forces[c->contacts + j] -= c->rough[j] == i ? c->mu[j] * modes->senses[j] * force : 0.0;
        }
    }
    find_rates(c, forces, y);
}

/* How far the contacts that take part violate the law, in the unit of y; infinite where a known sense is contradicted. */
static double violation(
    const struct contact_problem *c, const struct contact_modes *modes, const double forces[], const double y[])
{
    const int64_t n = c->contacts + c->frictions;
    double least = INFINITY;
    for (int64_t i = 0; i < c->contacts; i++) {
        if (c->present[i]) {
            least = fmin(least, modes->pressed[i] ? c->W[i * n + i] * (forces[i] - c->minimum[i]) : y[i]);
        }
    }
    for (int64_t j = 0; j < c->frictions; j++) {
        const int64_t i = c->rough[j];
        if (!c->present[i] || !(modes->pressed[i] || forces[i] != 0.0)) {
            continue;
        }
        if (c->known[j] != 0.0 && modes->senses[j] != c->known[j]) {
            return INFINITY;
        }
        if (modes->stuck[j]) {
            least = fmin(least, c->W[i * n + i] * (c->mu[j] * forces[i] - fabs(forces[c->contacts + j])));
        } else if (c->known[j] == 0.0) {
            least = fmin(least, modes->senses[j] * y[c->contacts + j]);
        }
    }
    return -least;
}

static int64_t count_choices(const struct contact_problem *c, int64_t contact)
{
    if (!c->present[contact]) {
        return 1;
    }
    if (friction_of(c, contact) < 0) {
        return 2;
    }
    return c->minimum[contact] > 0.0 ? 6 : 4;
}

/* Modes of one way of choosing: pressed come first, and of these sticks, slides forwards, slides backwards. */
static void choose(const struct contact_problem *c, int64_t way, const struct contact_modes *modes)
{
    static const double senses[3] = {0.0, 1.0, -1.0};
    for (int64_t i = c->contacts - 1; i >= 0; i--) {
        const int64_t choices = count_choices(c, i);
        const int64_t choice = way % choices;
        const int64_t friction = friction_of(c, i);
        way /= choices;
        modes->pressed[i] = choices == 2 ? choice == 0 : choices > 2 && choice < 3;
        if (friction >= 0) {
            const int touches = choices == 6 || modes->pressed[i];
            modes->stuck[friction] = touches && choice % 3 == 0;
            modes->senses[friction] = touches ? senses[choice % 3] : 0.0;
        }
    }
}

static int is_same(const struct contact_problem *c, const struct contact_modes *one, const struct contact_modes *other)
{
    for (int64_t i = 0; i < c->contacts; i++) {
        if (one->pressed[i] != other->pressed[i]) {
            return 0;
        }
    }
    for (int64_t j = 0; j < c->frictions; j++) {
        if (one->senses[j] != other->senses[j]) {
            return 0;
        }
    }
    return 1;
}

static int64_t is_present(const struct contact_problem *c, int64_t i)
{
    return c->present[i < c->contacts ? i : c->rough[i - c->contacts]];
}

static int is_other_motion(const struct contact_problem *c, const double one[], const double other[], double most)
{
    for (int64_t i = 0; i < c->contacts + c->frictions; i++) {
        if (is_present(c, i) && fabs(one[i] - other[i]) > most) {
            return 1;
        }
    }
    return 0;
}

int find_contact_modes(const struct contact_problem *c, const struct contact_modes *excluded,
    struct contact_solution *found, double numbers[], int64_t integers[])
{
    const int64_t n = c->contacts + c->frictions;
    double *forces = numbers;
    double *y = forces + n;
    const struct contact_modes modes = {integers, integers + c->contacts, y + n};
    int64_t ways = 1;
    int64_t best = -1;
    double least = INFINITY;
    double size = 1e-300;
    for (int64_t i = 0; i < c->contacts && ways <= MOST_WAYS; i++) {
        ways *= count_choices(c, i);
    }
    for (int64_t i = 0; i < n; i++) {
        size += is_present(c, i) ? fabs(c->q[i]) : 0.0;
    }
    for (int64_t pass = 0; pass < 2 && ways <= MOST_WAYS; pass++) {
        for (int64_t way = 0; way < ways; way++) {
            choose(c, way, &modes);
            if (excluded && is_same(c, &modes, excluded)) {
                continue;
            }
            solve_in_modes(c, &modes, forces, y, y + 2 * n, integers + n);
            const double wrong = violation(c, &modes, forces, y);
            if (pass == 0 && wrong < least) {
                least = wrong;
                best = way;
            } else if (pass == 1 && -wrong > DISTINCT_SOLUTION * size &&
                is_other_motion(c, y, found->y, DISTINCT_SOLUTION * size)) {
                return UNSOLVED;
            }
        }
        if (best < 0 || !(least <= LAW_TOLERANCE * size)) {
            return UNSOLVED;
        }
        if (pass == 0) {
            choose(c, best, &found->modes);
            solve_in_modes(c, &found->modes, found->forces, found->y, y + 2 * n, integers + n);
        }
    }
    return ways <= MOST_WAYS ? OK : UNSOLVED;
}
