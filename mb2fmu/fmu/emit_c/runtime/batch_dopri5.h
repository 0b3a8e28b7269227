/* batch_dopri5.h: one step of Dormand and Prince's pair in every lane, with the bits that solver_dopri5.c gives one
 * instance: the coefficients are those of dopri5.h. Included by batch_step_loop.h.
 */
#ifndef MB2FMU_BATCH_DOPRI5_H
#define MB2FMU_BATCH_DOPRI5_H

#include "dopri5.h"

/* The lanes in which all stages and the result are finite. Wherever an error is finite so are the stages that it is a sum
 * of: all but the second. The others are looked at one by one only where something is amiss. */
static mb2fmu_words mb2fmu_group_sound(const mb2fmu_group *g)
{
    mb2fmu_words sound = ~mb2fmu_nowhere();
    for (int i = 0; i < MB2FMU_BATCH_JUDGED; i++) {
        sound &= mb2fmu_finite(g->point[i]) & mb2fmu_finite(g->k[1][i]) & mb2fmu_finite(g->error[i]);
    }
    if (!mb2fmu_anywhere(~sound)) {
        return sound;
    }
    sound = ~mb2fmu_nowhere();
    for (int i = 0; i < MB2FMU_BATCH_JUDGED; i++) {
        sound &= mb2fmu_finite(g->point[i]);
        for (int stage = 0; stage < MB2FMU_STAGES; stage++) {
            sound &= mb2fmu_finite(g->k[stage][i]);
        }
    }
    return sound;
}

/* Stages 2 to 7; g->point is the result, and the last stage x' there. The lanes in which that could be computed. */
static mb2fmu_words mb2fmu_group_stages(mb2fmu_group *g, mb2fmu_reals t, mb2fmu_reals h)
{
    static const double nodes[MB2FMU_STAGES] = MB2FMU_DOPRI5_NODES;
    mb2fmu_reals (*const k)[MB2FMU_ROOM(MB2FMU_BATCH_STATES)] = g->k;
    for (int i = 0; i < MB2FMU_BATCH_STATES; i++) {
        g->point[i] = g->x[i] + h * MB2FMU_DOPRI5_2(k, i);
    }
    mb2fmu_group_slope(g, t + nodes[1] * h, g->point, k[1]);
    for (int i = 0; i < MB2FMU_BATCH_STATES; i++) {
        g->point[i] = g->x[i] + h * MB2FMU_DOPRI5_3(k, i);
    }
    mb2fmu_group_slope(g, t + nodes[2] * h, g->point, k[2]);
    for (int i = 0; i < MB2FMU_BATCH_STATES; i++) {
        g->point[i] = g->x[i] + h * MB2FMU_DOPRI5_4(k, i);
    }
    mb2fmu_group_slope(g, t + nodes[3] * h, g->point, k[3]);
    for (int i = 0; i < MB2FMU_BATCH_STATES; i++) {
        g->point[i] = g->x[i] + h * MB2FMU_DOPRI5_5(k, i);
    }
    mb2fmu_group_slope(g, t + nodes[4] * h, g->point, k[4]);
    for (int i = 0; i < MB2FMU_BATCH_STATES; i++) {
        g->point[i] = g->x[i] + h * MB2FMU_DOPRI5_6(k, i);
    }
    mb2fmu_group_slope(g, t + nodes[5] * h, g->point, k[5]);
    for (int i = 0; i < MB2FMU_BATCH_STATES; i++) {
        g->point[i] = g->x[i] + h * MB2FMU_DOPRI5_RESULT(k, i);
    }
    mb2fmu_group_slope(g, t + nodes[6] * h, g->point, k[6]);
    for (int i = 0; i < MB2FMU_BATCH_JUDGED; i++) {
        g->error[i] = h * MB2FMU_DOPRI5_ERROR(k, i);
    }
    return mb2fmu_group_sound(g);
}

/* Ratio of the next step size to h after a good step, by proportional and integral control. */
static mb2fmu_reals mb2fmu_group_factor(const mb2fmu_group *g, mb2fmu_reals h, mb2fmu_reals error, mb2fmu_reals plain,
                                        const mb2fmu_roots *roots)
{
    const mb2fmu_reals zero = mb2fmu_all(0.0);
    const mb2fmu_reals integral = 0.9 * g->last_root / mb2fmu_power(roots, 11);
    const mb2fmu_words history = MB2FMU_WHERE(g->last_error > zero) & MB2FMU_WHERE(g->last_step > zero);
    (void)h;
    (void)error;
    return mb2fmu_choose(history, integral, plain);
}

/* The power of last_error that the next step needs, from the roots that this one has, in marked lanes. */
static void mb2fmu_group_remember(mb2fmu_group *g, mb2fmu_reals error, const mb2fmu_roots *roots, mb2fmu_words marked)
{
    const mb2fmu_words counts = MB2FMU_WHERE(error > mb2fmu_all(MB2FMU_LEAST_ERROR));
    const mb2fmu_reals root = mb2fmu_choose(counts, mb2fmu_power(roots, 2), g->least_root);
    g->last_root = mb2fmu_choose(marked, root, g->last_root);
}

/* Called whenever lanes get other instances. */
static void mb2fmu_group_begin(mb2fmu_group *g)
{
    const mb2fmu_roots roots = mb2fmu_roots_of(mb2fmu_all(MB2FMU_LEAST_ERROR));
    g->least_root = mb2fmu_power(&roots, 2);
}

/* x' at the start of the next step, in lanes whose step was good: the last stage. */
static void mb2fmu_group_hand_on(mb2fmu_group *g, mb2fmu_words good)
{
    for (int i = 0; i < MB2FMU_BATCH_STATES; i++) {
        g->k[0][i] = mb2fmu_choose(good, g->k[MB2FMU_STAGES - 1][i], g->k[0][i]);
    }
}

#endif
