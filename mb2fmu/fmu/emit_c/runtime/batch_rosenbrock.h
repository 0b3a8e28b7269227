/* batch_rosenbrock.h: one step of RODASP in every lane, with the bits that solver_rosenbrock.c gives one instance: exact
 * Jacobian, pivots of each lane's own. Included by batch_step_loop.h.
 *
 * States behind the judged ones are blocks of derivatives S = dx/dp. The Jacobian of all is [J 0; H J] with J once for
 * each block and H = d(S')/dx, so that one factorization serves all: S is the exact derivative of the steps.
 */
#ifndef MB2FMU_BATCH_ROSENBROCK_H
#define MB2FMU_BATCH_ROSENBROCK_H

/* x', Jacobian and f_t at the start of a step; where nothing has moved since, they are what they were. */
static void mb2fmu_group_linearize(mb2fmu_group *g, mb2fmu_reals t)
{
    if (g->linearized) {
        return;
    }
    const int n = MB2FMU_BATCH_JUDGED, all = MB2FMU_BATCH_STATES;
    mb2fmu_group_slope(g, t, g->x, g->k[0]);
    for (int i = 0; i < all; i++) {
        g->slope[i] = g->k[0][i];
    }
    for (int i = 0; i < all * n + all; i++) {
        g->jacobian[i] = mb2fmu_all(0.0);
    }
    mb2fmu_words lost = g->unprepared;
    (void)batch_jacobian(t, g->x, g->r, g->p, g->w, &lost, g->work, g->jacobian);
    g->linear = ~lost;
    for (int i = 0; i < n * n + n; i++) { /* rows of x, and f_t of x */
        g->linear &= mb2fmu_finite(g->jacobian[i < n * n ? i : all * n + i - n * n]);
    }
    g->linearized = 1;
}

/* Factors 1/(gamma h) - J; the lanes in which that could be done. */
static mb2fmu_words mb2fmu_group_factorize(mb2fmu_group *g, mb2fmu_reals h)
{
    const int n = MB2FMU_BATCH_JUDGED;
    for (int k = 0; k < n * n; k++) {
        g->matrix[k] = 0.0 - g->jacobian[k]; /* no zero is negative */
    }
    for (int i = 0; i < n; i++) {
        g->matrix[i * n + i] += 1.0 / (MB2FMU_RODASP_GAMMA * h);
    }
    mb2fmu_words lost = mb2fmu_nowhere();
    mb2fmu_each_lu_factor(n, g->matrix, &lost);
    return ~lost;
}

/* Solves for a stage: x, then each block of derivatives with what x adds to it. */
static void mb2fmu_group_solve(const mb2fmu_group *g, mb2fmu_reals right[])
{
    const int n = MB2FMU_BATCH_JUDGED;
    mb2fmu_each_lu_solve(n, g->matrix, right);
    for (int block = n; block < MB2FMU_BATCH_STATES; block += n) {
        for (int i = block; i < block + n; i++) {
            mb2fmu_reals sum = right[i];
            for (int j = 0; j < n; j++) {
                sum += g->jacobian[i * n + j] * right[j];
            }
            right[i] = sum;
        }
        mb2fmu_each_lu_solve(n, g->matrix, right + block);
    }
}

/* All stages; g->point is the result. The lanes in which it could be computed. */
static mb2fmu_words mb2fmu_group_stages(mb2fmu_group *g, mb2fmu_reals t, mb2fmu_reals h)
{
    const int n = MB2FMU_BATCH_JUDGED, all = MB2FMU_BATCH_STATES;
    mb2fmu_group_linearize(g, t);
    mb2fmu_words sound = mb2fmu_group_factorize(g, h) & g->linear;
    const mb2fmu_reals *const drift = g->jacobian + all * n;
    for (int stage = 0; stage < MB2FMU_STAGES; stage++) {
        mb2fmu_reals *const right = g->k[stage];
        for (int i = 0; i < all; i++) {
            mb2fmu_reals sum = g->x[i];
            for (int j = 0; j < stage; j++) {
                sum += mb2fmu_rodasp_a[stage][j] * g->k[j][i];
            }
            g->point[i] = sum;
        }
        if (stage > 0) {
            mb2fmu_group_slope(g, t + mb2fmu_rodasp_alpha[stage] * h, g->point, right);
        }
        for (int i = 0; i < all; i++) {
            const mb2fmu_reals value = stage > 0 ? right[i] : g->slope[i];
            mb2fmu_reals sum = mb2fmu_all(0.0);
            for (int j = 0; j < stage; j++) {
                sum += mb2fmu_rodasp_c[stage][j] * g->k[j][i];
            }
            sound &= i < n ? mb2fmu_finite(value) : ~mb2fmu_nowhere();
            right[i] = value + sum / h + h * mb2fmu_rodasp_d[stage] * drift[i];
        }
        mb2fmu_group_solve(g, right);
    }
    for (int i = 0; i < all; i++) {
        g->error[i] = g->k[MB2FMU_STAGES - 1][i];
        g->point[i] = g->point[i] + g->error[i];
        sound &= i < n ? mb2fmu_finite(g->point[i]) : ~mb2fmu_nowhere();
    }
    return sound;
}

/* Ratio of the next step size to h after a good step, by predictive control. */
static mb2fmu_reals mb2fmu_group_factor(const mb2fmu_group *g, mb2fmu_reals h, mb2fmu_reals error, mb2fmu_reals plain,
                                        const mb2fmu_roots *roots)
{
    (void)roots;
    const mb2fmu_reals zero = mb2fmu_all(0.0);
    const mb2fmu_roots change = mb2fmu_roots_of(g->last_error / error);
    const mb2fmu_reals predicted = plain * (h / g->last_step) * mb2fmu_power(&change, MB2FMU_EXPONENT);
    const mb2fmu_words history = MB2FMU_WHERE(g->last_error > zero) & MB2FMU_WHERE(g->last_step > zero);
    return mb2fmu_choose(history & MB2FMU_WHERE(predicted < plain), predicted, plain);
}

static void mb2fmu_group_remember(mb2fmu_group *g, mb2fmu_reals error, const mb2fmu_roots *roots, mb2fmu_words marked)
{
    (void)g;
    (void)error;
    (void)roots;
    (void)marked;
}

/* Called whenever lanes get other instances. */
static void mb2fmu_group_begin(mb2fmu_group *g)
{
    g->linearized = 0;
}

/* After a good step everything is formed anew at its end. */
static void mb2fmu_group_hand_on(mb2fmu_group *g, mb2fmu_words good)
{
    if (mb2fmu_anywhere(good)) {
        g->linearized = 0;
    }
}

#endif
