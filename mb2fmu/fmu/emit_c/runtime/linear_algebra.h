/* linear_algebra.h: small dense linear systems with one fixed order of operations, the same bits everywhere.
 *
 * Factors stand in the caller's memory; nothing is allocated. A factorization returns 0, or the number of the pivot
 * that failed, counted from 1: it is zero, not finite, or (L D L^T) not positive. The factors are then of no use.
 *
 * Sources: Golub, Van Loan: Matrix Computations, 4th ed. 2013, algorithms 4.1.2 (L D L^T, here by rows) and 3.4.1
 * (LU with partial pivoting).
 */
#ifndef MB2FMU_LINEAR_ALGEBRA_H
#define MB2FMU_LINEAR_ALGEBRA_H

#include <stddef.h>

#include "portability.h"

/* Symmetric positive definite: `a` has the lower triangle row by row, n (n + 1) / 2 values; it is replaced by L (FMU
 * diagonal, not stored) with D on the diagonal. */
MB2FMU_UNUSED static int mb2fmu_ldlt_factor(int n, double a[]);

/* x = A^-1 x for one right-hand side. */
MB2FMU_UNUSED static void mb2fmu_ldlt_solve(int n, const double a[], double x[]);

/* General: `a` has the matrix row by row in its first n n values; it is replaced by L (FMU diagonal, not stored) and
 * U of P A = L U. The n values that follow take the row exchanges: small integers, stored as doubles. */
MB2FMU_UNUSED static int mb2fmu_lu_factor(int n, double a[]);

/* x = A^-1 x for one right-hand side. */
MB2FMU_UNUSED static void mb2fmu_lu_solve(int n, const double a[], double x[]);

/* Symmetric positive semidefinite: `a` has the lower triangle row by row in its first n (n + 1) / 2 values and takes
 * n n + n n + n values: eigenvectors as rows from n n on, factors of their eigenvalues from 2 n n on. Of these the
 * `rank` largest count, 1 / lambda but for those that fade out below 1e-14 of the largest. Jacobi's rotations choose no
 * pivots, so nothing jumps. Returns 0, or the number of a row, counted from 1, with an entry that is not finite.
 *
 * Sources: Golub, Van Loan: Matrix Computations, section 8.5 (Jacobi's method); Hansen: Rank-Deficient and Discrete
 * Ill-Posed Problems, 1998, chapter 5 (iterated Tikhonov regularization). */
#define MB2FMU_JACOBI_SWEEPS 30
#define MB2FMU_JACOBI_NOTHING 1e-17 /* of the trace: an entry below it is not rotated away */
#define MB2FMU_LEAST_NORM_FADING 1e-14
MB2FMU_UNUSED static int mb2fmu_least_norm_factor(int n, int rank, double a[]);

/* x becomes the shortest vector for which A x is nearest to it. */
MB2FMU_UNUSED static void mb2fmu_least_norm_solve(int n, double a[], double x[]);

/* Newton's method for n equations in n unknowns.
 *
 * Damped steps until they are so small that one more is the last: the error that it leaves is about its product with
 * the whole way from the guess. Where the equations are singular, and no step makes what is left over smaller, that is
 * accepted if it is small.
 *
 * Newton's path takes the residuals away evenly, so that the steps along it are (1 - part) of the first. A step that
 * ends, or has its middle, where the next one is quite another has jumped off the path, maybe across a singular
 * position: it is too long. So is one after which the equations' determinant has another sign than at the guess; that is
 * looked for, by differences, where much is left over or steps bend. So what is found is on the branch of the guess.
 *
 * `body` stores n residuals and n steps, both scaled so that 1 is large, and returns 0; otherwise this y is none to
 * stay at. `y` is the guess and becomes the solution. `work` has MB2FMU_NEWTON_WORK(n) places, then those of `body`.
 * Returns 0; 1 if there is no solution that these steps find; 2 if the path ends in a singular position, and there is a
 * solution beyond it.
 *
 * Small steps alone do not show that the equations hold where they may contradict each other. Then `closing` has n
 * FMUs, what a unit of each equation counts in its residual, and n limits: how much of each residual may be left over.
 * Where steps become small and residuals do not, 3 is returned, and y has what is left over of those that are open, in
 * FMUs of the equations, and 0 of the others. NULL: small steps show it.
 *
 * Source: Deuflhard: Newton Methods for Nonlinear Problems, 2004, sections 3.1 (path) and 3.3 (damping, by halves). */
typedef int (*mb2fmu_newton_body)(const double y[], const double theta[], double values[], double work[]);
#define MB2FMU_NEWTON_WORK(n) ((11 + 2 * (n)) * (n))
#define MB2FMU_NEWTON_ITERATIONS 60
#define MB2FMU_NEWTON_HALVINGS 12
#define MB2FMU_NEWTON_ERROR 1e-16
#define MB2FMU_NEWTON_STEP 1e-13
#define MB2FMU_NEWTON_RESIDUAL 1e-10
#define MB2FMU_NEWTON_STEPS 2.0 /* times the sum of steps: what they leave over of rows of unit length, if they close */
#define MB2FMU_NEWTON_SCARCELY 0.9 /* less of a decrease is none */
/* Of a step: how far the next one may be from what the path leaves of it, which is 0.5 at a double solution; less than
 * a little shows that the solution is near, and a long step may have no more. */
#define MB2FMU_NEWTON_BEND 0.55
#define MB2FMU_NEWTON_LITTLE 0.03125
#define MB2FMU_NEWTON_FAR 0.2
/* Left over before a step, or of a step: above them the sign of the determinant is looked at. */
#define MB2FMU_NEWTON_OPEN 0.05
#define MB2FMU_NEWTON_TURNING 0.1
#define MB2FMU_NEWTON_NUDGE 1e-6 /* of a step: for differences */
#define MB2FMU_NEWTON_FLAT 1e-4 /* a smaller pivot, as part of its column, has no sign: round-off */
/* Of a part of a step, the most that may be left over. */
#define MB2FMU_NEWTON_LEFT(part) \
    (1.0 - 0.5 * (part) > MB2FMU_NEWTON_SCARCELY ? 1.0 - 0.5 * (part) : MB2FMU_NEWTON_SCARCELY)
MB2FMU_UNUSED static int mb2fmu_newton(int n, mb2fmu_newton_body body,
                                       const double theta[], const double closing[], double y[], double work[]);

/* Sign of the determinant of the matrix that `a` has row by row, by Givens' rotations in place; 0 where round-off may
 * have made it. */
MB2FMU_UNUSED static int mb2fmu_orientation(int n, double a[])
{
    int sign = 1;
    for (int k = 0; k < n && sign != 0; k++) {
        double *const top = a + k * n;
        double column = 0.0; /* length of column k, squared */
        for (int i = 0; i < n; i++) {
            double *const row = a + i * n;
            const double x = top[k], y = row[k], r = sqrt(x * x + y * y);
            column += y * y;
            for (int j = k; i > k && r > 0.0 && j < n; j++) {
                const double above = top[j], below = row[j];
                top[j] = x / r * above + y / r * below;
                row[j] = x / r * below - y / r * above;
            }
        }
        sign = !(fabs(top[k]) > MB2FMU_NEWTON_FLAT * sqrt(column)) ? 0 : top[k] < 0.0 ? -sign : sign;
    }
    return sign;
}

#endif
