/* rodasp.h: the numbers of the Rosenbrock method RODASP, of order 4(3), and what they mean: see solver_rosenbrock.c.
 *
 * Why it exists: one instance (solver_rosenbrock.c) and many (batch_rosenbrock.h) are stepped with the same numbers.
 */
#ifndef MB2FMU_RODASP_H
#define MB2FMU_RODASP_H

#define MB2FMU_RODASP_STAGES 6
#define MB2FMU_RODASP_GAMMA 0.25

static const double mb2fmu_rodasp_alpha[MB2FMU_RODASP_STAGES] = {0.0, 0.75, 0.21, 0.63, 1.0, 1.0};
static const double mb2fmu_rodasp_d[MB2FMU_RODASP_STAGES] = {0.25, -0.5, -0.023504, -0.0362, 0.0, 0.0};
static const double mb2fmu_rodasp_a[MB2FMU_RODASP_STAGES][MB2FMU_RODASP_STAGES - 1] = {
    {0.0, 0.0, 0.0, 0.0, 0.0},
    {3.0, 0.0, 0.0, 0.0, 0.0},
    {1.831036793486759, 0.4955183967433795, 0.0, 0.0, 0.0},
    {2.304376582692669, -0.05249275245743001, -1.176798761832782, 0.0, 0.0},
    {-7.170454962423024, -4.741636671481785, -16.31002631330971, -1.062004044111401, 0.0},
    {-7.170454962423024, -4.741636671481785, -16.31002631330971, -1.062004044111401, 1.0}};
static const double mb2fmu_rodasp_c[MB2FMU_RODASP_STAGES][MB2FMU_RODASP_STAGES - 1] = {
    {0.0, 0.0, 0.0, 0.0, 0.0},
    {-12.0, 0.0, 0.0, 0.0, 0.0},
    {-8.791795173947035, -2.207865586973518, 0.0, 0.0, 0.0},
    {10.81793056857153, 6.780270611428266, 19.53485944642410, 0.0, 0.0},
    {34.19095006749676, 15.49671153725963, 54.74760875964130, 14.16005392148534, 0.0},
    {34.62605830930532, 15.30084976114473, 56.99955578662667, 18.40807009793095, -5.714285714285717}};

#endif
