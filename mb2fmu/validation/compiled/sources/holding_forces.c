#include "holding_forces.h"

#include "dense.h"

#include <math.h>
#include <string.h>

#define LEAST_PIVOT 1e-6
#define NEGLIGIBLE_EFFECT 1e-9 /* of the largest change that any friction makes to a slip */
#define ALREADY_HELD 1e-9      /* of the change that a friction makes to its own slip without what holds rigidly */
#define SURELY_HELD 1e-10      /* of the same */
#define SURELY_FREE 1e-6       /* of the same: what is left of less has lost digits */

/* What is left to frictions beside what holds rigidly. */
struct eliminated {
    int64_t rigid;
    int64_t columns;
    double *responses; /* rates over the effects of what holds rigidly: of each sign, then of what drives them */
    double *effects;   /* of signs, shape (signs, signs) */
    double *numbers;
};

/* right := the solution f of effects f = right, a column each; ``effects`` changes. UNSOLVED: it is not unique. */
static int solve_scaled(int64_t n, int64_t columns, double effects[], double right[], double scales[])
{
    if (n == 1) {
        for (int64_t j = 0; j < columns; j++) {
            right[j] = effects[0] == 0.0 ? 0.0 : right[j] / effects[0];
        }
        return OK;
    }
    for (int64_t i = 0; i < n; i++) {
        scales[i] = sqrt(fabs(effects[i * n + i]));
        if (scales[i] == 0.0) {
            return UNSOLVED;
        }
    }
    for (int64_t i = 0; i < n; i++) {
        for (int64_t j = 0; j < columns; j++) {
            right[i * columns + j] /= scales[i];
        }
        for (int64_t j = 0; j < n; j++) {
            effects[i * n + j] /= scales[i] * scales[j];
        }
    }
    if (solve_square(n, columns, effects, right) != 0) {
        return UNSOLVED;
    }
    for (int64_t i = 0; i < n; i++) {
        if (!(fabs(effects[i * n + i]) > LEAST_PIVOT)) { /* scaled rows are about 1 */
            return UNSOLVED;
        }
        for (int64_t j = 0; j < columns; j++) {
            right[i * columns + j] /= scales[i];
        }
    }
    return OK;
}

/* The part of its own effect that is left to a sign. */
static double effect_left(const struct held_surfaces *h, const struct eliminated *left, int64_t i)
{
    return fabs(left->effects[i * (h->signs + 1)]) / fabs(h->effects[i * (h->n + 1)]);
}

/* Forces by which what holds rigidly stands still under each sign and, with ``right``, under what drives it; and what
   signs change each other by beside it. */
static int eliminate(const struct held_surfaces *h, const double right[], double numbers[], struct eliminated *left)
{
    const int64_t n = h->n;
    const int64_t signs = h->signs;
    const int64_t rigid = n - signs;
    const int64_t columns = signs + (right != NULL);
    double *matrix = numbers;
    double *responses = matrix + rigid * rigid;
    double *effects = responses + rigid * columns;
    for (int64_t i = 0; i < rigid; i++) {
        const double *row = h->effects + (signs + i) * n;
        memcpy(matrix + i * rigid, row + signs, (size_t)rigid * sizeof(double));
        memcpy(responses + i * columns, row, (size_t)signs * sizeof(double));
        if (right) {
            responses[i * columns + signs] = right[signs + i];
        }
    }
    *left = (struct eliminated){rigid, columns, responses, effects, effects + signs * signs};
    if (solve_scaled(rigid, columns, matrix, responses, left->numbers) != OK) {
        return UNSOLVED;
    }
    for (int64_t i = 0; i < signs; i++) {
        for (int64_t j = 0; j < signs; j++) {
            effects[i * signs + j] = h->effects[i * n + j];
            for (int64_t k = 0; k < rigid; k++) {
                effects[i * signs + j] -= h->effects[i * n + signs + k] * responses[k * columns + j];
            }
        }
        if (effect_left(h, left, i) > SURELY_HELD && effect_left(h, left, i) < SURELY_FREE) {
            return UNSOLVED;
        }
    }
    return OK;
}

static int is_ineffective(const struct held_surfaces *h, const struct eliminated *left, int64_t i)
{
    return effect_left(h, left, i) < ALREADY_HELD;
}

/* Whether every friction is pressed, so that its own slip is no round-off of others. */
static int are_pressed(const struct held_surfaces *h)
{
    for (int64_t i = 0; i < h->signs; i++) {
        double largest = 0.0;
        for (int64_t j = 0; j < h->signs; j++) {
            largest = fmax(largest, fabs(h->effects[i * h->n + j]) * h->limits[j]);
        }
        if (!(fabs(h->effects[i * (h->n + 1)]) * h->limits[i] > NEGLIGIBLE_EFFECT * largest)) {
            return 0;
        }
    }
    return 1;
}

/* right := the values of signs beside what holds rigidly; those without effect have none. */
static int solve_signs(const struct held_surfaces *h, const struct eliminated *left, double right[])
{
    const int64_t signs = h->signs;
    double *matrix = left->numbers;
    double *values = matrix + signs * signs;
    int64_t count = 0;
    for (int64_t i = 0; i < signs; i++) {
        count += !is_ineffective(h, left, i);
    }
    for (int64_t i = 0, row = 0; i < signs; i++) {
        if (is_ineffective(h, left, i)) {
            continue;
        }
        values[row] = -right[i];
        for (int64_t k = 0; k < left->rigid; k++) {
            values[row] += h->effects[i * h->n + signs + k] * left->responses[k * left->columns + signs];
        }
        for (int64_t j = 0, column = 0; j < signs; j++) {
            if (!is_ineffective(h, left, j)) {
                matrix[row * count + column++] = left->effects[i * signs + j];
            }
        }
        row++;
    }
    if (count > 0 && solve_scaled(count, 1, matrix, values, values + count) != OK) {
        return UNSOLVED;
    }
    for (int64_t i = 0, row = 0; i < signs; i++) {
        right[i] = is_ineffective(h, left, i) ? 0.0 : values[row++];
    }
    return OK;
}

int solve_for_forces(const struct held_surfaces *h, double right[], double numbers[])
{
    struct eliminated left;
    if (h->signs == 0 || h->signs == h->n) {
        memcpy(numbers, h->effects, (size_t)(h->n * h->n) * sizeof(double));
        for (int64_t i = 0; i < h->n; i++) {
            right[i] = -right[i];
        }
        return solve_scaled(h->n, 1, numbers, right, numbers + h->n * h->n);
    }
    if (!are_pressed(h) || eliminate(h, right, numbers, &left) != OK || solve_signs(h, &left, right) != OK) {
        return UNSOLVED;
    }
    for (int64_t i = 0; i < left.rigid; i++) {
        const double *responses = left.responses + i * left.columns;
        double force = -responses[h->signs];
        for (int64_t j = 0; j < h->signs; j++) {
            force -= responses[j] * right[j];
        }
        right[h->signs + i] = force;
    }
    return OK;
}

int find_ineffective_frictions(const struct held_surfaces *h, double ineffective[], double numbers[])
{
    struct eliminated left;
    const int status = eliminate(h, NULL, numbers, &left);
    for (int64_t i = 0; i < h->signs && status == OK; i++) {
        ineffective[i] = is_ineffective(h, &left, i);
    }
    return status;
}

int find_friction_influence(const struct held_surfaces *h, const double barred[], double effects[],
    double reactions[], double numbers[])
{
    struct eliminated left;
    const int status = eliminate(h, NULL, numbers, &left);
    for (int64_t j = 0; j < h->signs && status == OK; j++) {
        for (int64_t i = 0; i < h->signs; i++) {
            const int64_t place = i * h->signs + j;
            effects[place] = barred[j] > 0.0 ? h->effects[i * h->n + j] : left.effects[place];
        }
        for (int64_t k = 0; k < left.rigid; k++) {
            reactions[k * h->signs + j] = barred[j] > 0.0 ? 0.0 : left.responses[k * h->signs + j];
        }
    }
    return status;
}
