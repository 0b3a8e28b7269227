/* dopri5.h: the coefficients of Dormand and Prince's Runge-Kutta pair of order 5(4), as sums over component i of the
 * stages k[0] to k[6]; for one instance (solver_dopri5.c) and for lanes (batch_dopri5.h). Both have the same bits, since
 * both have these terms in this order.
 *
 *     0   |
 *    1/5  |    1/5
 *    3/10 |    3/40        9/40
 *    4/5  |   44/45      -56/15       32/9
 *    8/9  | 19372/6561 -25360/2187 64448/6561 -212/729
 *     1   |  9017/3168   -355/33   46732/5247   49/176  -5103/18656
 *     1   |   35/384        0        500/1113  125/192  -2187/6784   11/84
 *
 * Sources: Dormand, Prince: A family of embedded Runge-Kutta formulae, J. Comp. Appl. Math. 6 (1980) 19-26; Hairer,
 * Norsett, Wanner: Solving Ordinary Differential Equations I, 2nd ed. 1993, table II.5.2.
 */
#ifndef MB2FMU_DOPRI5_H
#define MB2FMU_DOPRI5_H

#define MB2FMU_DOPRI5_NODES {0.0, 1.0 / 5.0, 3.0 / 10.0, 4.0 / 5.0, 8.0 / 9.0, 1.0, 1.0}

/* The increments of stages 2 to 6 per h. */
#define MB2FMU_DOPRI5_2(k, i) ((k)[0][i] * (1.0 / 5.0))
#define MB2FMU_DOPRI5_3(k, i) ((k)[0][i] * (3.0 / 40.0) + (k)[1][i] * (9.0 / 40.0))
#define MB2FMU_DOPRI5_4(k, i) ((k)[0][i] * (44.0 / 45.0) - (k)[1][i] * (56.0 / 15.0) + (k)[2][i] * (32.0 / 9.0))
#define MB2FMU_DOPRI5_5(k, i)                                                                                          \
    ((k)[0][i] * (19372.0 / 6561.0) - (k)[1][i] * (25360.0 / 2187.0) + (k)[2][i] * (64448.0 / 6561.0) -                \
     (k)[3][i] * (212.0 / 729.0))
#define MB2FMU_DOPRI5_6(k, i)                                                                                          \
    ((k)[0][i] * (9017.0 / 3168.0) - (k)[1][i] * (355.0 / 33.0) + (k)[2][i] * (46732.0 / 5247.0) +                     \
     (k)[3][i] * (49.0 / 176.0) - (k)[4][i] * (5103.0 / 18656.0))

/* The increment of the result per h; stage 7 is evaluated there. */
#define MB2FMU_DOPRI5_RESULT(k, i)                                                                                     \
    ((k)[0][i] * (35.0 / 384.0) + (k)[2][i] * (500.0 / 1113.0) + (k)[3][i] * (125.0 / 192.0) -                         \
     (k)[4][i] * (2187.0 / 6784.0) + (k)[5][i] * (11.0 / 84.0))

/* The result of order 5 minus that of order 4, per h. */
#define MB2FMU_DOPRI5_ERROR(k, i)                                                                                      \
    ((k)[0][i] * (71.0 / 57600.0) - (k)[2][i] * (71.0 / 16695.0) + (k)[3][i] * (71.0 / 1920.0) -                       \
     (k)[4][i] * (17253.0 / 339200.0) + (k)[5][i] * (22.0 / 525.0) - (k)[6][i] * (1.0 / 40.0))

#endif
