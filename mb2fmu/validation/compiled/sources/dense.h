/* Dense linear algebra of the reference: small matrices, written apart from the FMU's own. */
#ifndef MB2FMU_DENSE_H
#define MB2FMU_DENSE_H

#include <stdint.h>

/* Complete orthogonal decomposition B P = Q [T 0; 0 0] Z' of a rows × columns matrix, by Householder's reflections.

   G. H. Golub and C. F. Van Loan, Matrix Computations, 4th ed., sections 5.4.2 and 5.4.7. Q = H_0 H_1 ..., its first
   ``rank`` columns span the columns of B; Z = K_(rank-1) ... K_0. Memory is the caller's. */
struct orthogonal {
    int64_t rows;
    int64_t columns;
    int64_t rank;
    double *a;      /* rows × columns, column by column: B, later T and the tails of all reflections */
    double *left;   /* factors of H, shape (min(rows, columns),) */
    double *right;  /* factors of K, shape (min(rows, columns),) */
    int64_t *pivot; /* the column of B that each column of B P is, shape (columns,) */
    double *spare;  /* shape (max(rows, columns),) */
};

/* 1 if all numbers are finite. */
int all_finite(int64_t n, const double a[]);

/* b := the solution of a x = b by LU decomposition with row pivoting; both matrices row by row, both overwritten.

   a has shape (n, n), b has shape (n, k). Returns 1 if a pivot is zero. Where numbers are NaN the result is NaN. */
int solve_square(int64_t n, int64_t k, double a[], double b[]);

/* The same for a symmetric positive definite matrix, of which only the upper triangle is read: a = U' D U.

   Returns 1, with a and b spoilt, if it is not positive definite. */
int solve_symmetric(int64_t n, double a[], double b[]);

/* Decomposes what is in d->a; pivots below ``smallest`` times the largest one count as zero. */
void decompose(struct orthogonal *d, double smallest);

/* y := Q' y (transposed) or Q y, shape (rows,). */
void turn(const struct orthogonal *d, int transposed, double y[]);

/* Y := Y Q, shape (count, rows), row by row. */
void turn_each(const struct orthogonal *d, int64_t count, double y[]);

/* x := the shortest solution of B' x = c in the sense of least squares; c has shape (columns,), x (rows,). */
void solve_transposed(const struct orthogonal *d, const double c[], double x[]);

/* x := the shortest solution of B x = c in the sense of least squares; c has shape (rows,), x (columns,). */
void solve_least_squares(const struct orthogonal *d, const double c[], double x[]);

#endif
