#include "dense.h"

#include <math.h>
#include <string.h>

enum { TOGETHER = 4 };

int all_finite(int64_t n, const double a[])
{
    for (int64_t i = 0; i < n; i++) {
        if (!isfinite(a[i])) {
            return 0;
        }
    }
    return 1;
}

/* Row of the largest number in column k from row k on; -1 if that is zero, -2 if one is no number. */
static int64_t pivot_row(int64_t n, const double a[], int64_t k)
{
    int64_t found = -1;
    double largest = 0.0;
    for (int64_t i = k; i < n; i++) {
        const double size = fabs(a[i * n + k]);
        if (isnan(size)) {
            return -2;
        }
        if (size > largest) {
            largest = size;
            found = i;
        }
    }
    return found;
}

static void swap_rows(int64_t width, double one[], double other[])
{
    for (int64_t j = 0; j < width; j++) {
        const double kept = one[j];
        one[j] = other[j];
        other[j] = kept;
    }
}

int solve_square(int64_t n, int64_t k, double a[], double b[])
{
    for (int64_t i = 0; i < n; i++) {
        const int64_t p = pivot_row(n, a, i);
        if (p == -1) {
            return 1;
        }
        if (p == -2) {
            for (int64_t j = 0; j < n * k; j++) {
                b[j] = NAN;
            }
            return 0;
        }
        if (p != i) {
            swap_rows(n - i, a + i * n + i, a + p * n + i);
            swap_rows(k, b + i * k, b + p * k);
        }
        for (int64_t r = i + 1; r < n; r++) {
            const double factor = a[r * n + i] / a[i * n + i];
            if (factor == 0.0) {
                continue;
            }
            for (int64_t c = i + 1; c < n; c++) {
                a[r * n + c] -= factor * a[i * n + c];
            }
            for (int64_t c = 0; c < k; c++) {
                b[r * k + c] -= factor * b[i * k + c];
            }
        }
    }
    for (int64_t i = n - 1; i >= 0; i--) {
        for (int64_t c = 0; c < k; c++) {
            double sum = b[i * k + c];
            for (int64_t j = i + 1; j < n; j++) {
                sum -= a[i * n + j] * b[j * k + c];
            }
            b[i * k + c] = sum / a[i * n + i];
        }
    }
    return 0;
}

/* Subtracts from row r, from column r on, its parts in the directions of ``count`` rows that are eliminated together. */
static void eliminate(int64_t n, int64_t r, int64_t first, int64_t count, double a[], double b[])
{
    double *restrict other = a + r * n;
    double factor[TOGETHER];
    for (int64_t k = 0; k < count; k++) {
        const double *row = a + (first + k) * n;
        factor[k] = row[r] / row[first + k];
        b[r] -= factor[k] * b[first + k];
    }
    if (count == TOGETHER) {
        const double *restrict row = a + first * n;
        for (int64_t c = r; c < n; c++) {
            double sum = other[c];
            for (int64_t k = 0; k < TOGETHER; k++) {
                sum -= factor[k] * row[k * n + c];
            }
            other[c] = sum;
        }
        return;
    }
    for (int64_t k = 0; k < count; k++) {
        const double *row = a + (first + k) * n;
        for (int64_t c = r; factor[k] != 0.0 && c < n; c++) {
            other[c] -= factor[k] * row[c];
        }
    }
}

int solve_symmetric(int64_t n, double a[], double b[])
{
    /* A row is read and written once for several rows that it is freed of: the order of the terms stays the same. */
    for (int64_t first = 0; first < n; first += TOGETHER) {
        const int64_t count = first + TOGETHER <= n ? TOGETHER : n - first;
        for (int64_t k = 0; k < count; k++) {
            if (k > 0) {
                eliminate(n, first + k, first, k, a, b);
            }
            if (!(a[(first + k) * n + first + k] > 0.0)) {
                return 1;
            }
        }
        for (int64_t r = first + count; r < n; r++) {
            eliminate(n, r, first, count, a, b);
        }
    }
    for (int64_t i = n - 1; i >= 0; i--) {
        double sum = b[i];
        for (int64_t j = i + 1; j < n; j++) {
            sum -= a[i * n + j] * b[j];
        }
        b[i] = sum / a[i * n + i];
    }
    return 0;
}

/* Turns x = (x_0, tail) into (value, 0): x_0 becomes the value, the tail that of v = (1, tail) in 1 - factor v v'. */
static double reflection(int64_t n, double *first, double tail[], int64_t stride)
{
    double square = 0.0;
    for (int64_t i = 0; i < n; i++) {
        square += tail[i * stride] * tail[i * stride];
    }
    if (square == 0.0) {
        return 0.0;
    }
    const double alpha = *first;
    const double value = alpha > 0.0 ? -sqrt(alpha * alpha + square) : sqrt(alpha * alpha + square);
    for (int64_t i = 0; i < n; i++) {
        tail[i * stride] /= alpha - value;
    }
    *first = value;
    return (value - alpha) / value;
}

static double square_of_column(const struct orthogonal *d, int64_t from, int64_t column)
{
    double square = 0.0;
    for (int64_t i = from; i < d->rows; i++) {
        const double x = d->a[column * d->rows + i];
        square += x * x;
    }
    return square;
}

/* Applies H_k to y, shape (rows,). */
static void reflect(const struct orthogonal *d, int64_t k, double y[])
{
    const double *tail = d->a + k * d->rows;
    double sum = y[k];
    for (int64_t i = k + 1; i < d->rows; i++) {
        sum += tail[i] * y[i];
    }
    sum *= d->left[k];
    y[k] -= sum;
    for (int64_t i = k + 1; i < d->rows; i++) {
        y[i] -= sum * tail[i];
    }
}

/* Brings the longest remaining column to place k; returns its length. */
static double longest_first(struct orthogonal *d, int64_t k)
{
    int64_t longest = k;
    double most = -1.0;
    for (int64_t j = k; j < d->columns; j++) {
        const double square = square_of_column(d, k, j);
        if (square > most) {
            most = square;
            longest = j;
        }
    }
    if (longest != k) {
        const int64_t kept = d->pivot[k];
        d->pivot[k] = d->pivot[longest];
        d->pivot[longest] = kept;
        swap_rows(d->rows, d->a + k * d->rows, d->a + longest * d->rows);
    }
    return most > 0.0 ? sqrt(most) : 0.0;
}

/* Applies K_k to the row or vector whose element j lies at y[j * stride]. */
static void reflect_right(const struct orthogonal *d, int64_t k, double y[], int64_t stride)
{
    double sum = y[k * stride];
    for (int64_t j = d->rank; j < d->columns; j++) {
        sum += d->a[j * d->rows + k] * y[j * stride];
    }
    sum *= d->right[k];
    y[k * stride] -= sum;
    for (int64_t j = d->rank; j < d->columns; j++) {
        y[j * stride] -= sum * d->a[j * d->rows + k];
    }
}

void decompose(struct orthogonal *d, double smallest)
{
    const int64_t most = d->rows < d->columns ? d->rows : d->columns;
    double largest = 0.0;
    for (int64_t j = 0; j < d->columns; j++) {
        d->pivot[j] = j;
    }
    d->rank = 0;
    for (int64_t k = 0; k < most; k++) {
        const double length = longest_first(d, k);
        if (k == 0) {
            largest = length;
        }
        if (!(length > smallest * largest)) {
            break;
        }
        double *column = d->a + k * d->rows;
        d->left[k] = reflection(d->rows - k - 1, column + k, column + k + 1, 1);
        for (int64_t j = k + 1; j < d->columns; j++) {
            reflect(d, k, d->a + j * d->rows);
        }
        d->rank = k + 1;
    }
    for (int64_t k = d->rank - 1; k >= 0; k--) {
        double *row = d->a + k;
        d->right[k] = reflection(d->columns - d->rank, row + k * d->rows, row + d->rank * d->rows, d->rows);
        for (int64_t i = 0; i < k; i++) {
            reflect_right(d, k, d->a + i, d->rows);
        }
    }
}

void turn(const struct orthogonal *d, int transposed, double y[])
{
    for (int64_t k = 0; k < d->rank; k++) {
        reflect(d, transposed ? k : d->rank - 1 - k, y);
    }
}

void turn_each(const struct orthogonal *d, int64_t count, double y[])
{
    for (int64_t k = 0; k < d->rank; k++) {
        for (int64_t i = 0; i < count; i++) { /* inside: sums of several rows are formed at a time */
            reflect(d, k, y + i * d->rows);
        }
    }
}

void solve_transposed(const struct orthogonal *d, const double c[], double x[])
{
    double *w = d->spare;
    for (int64_t j = 0; j < d->columns; j++) {
        w[j] = c[d->pivot[j]];
    }
    for (int64_t k = d->rank - 1; k >= 0; k--) {
        reflect_right(d, k, w, 1);
    }
    memset(x, 0, (size_t)d->rows * sizeof(double));
    for (int64_t i = 0; i < d->rank; i++) {
        double sum = w[i];
        for (int64_t j = 0; j < i; j++) {
            sum -= d->a[i * d->rows + j] * x[j];
        }
        x[i] = sum / d->a[i * d->rows + i];
    }
    turn(d, 0, x);
}

void solve_least_squares(const struct orthogonal *d, const double c[], double x[])
{
    double *w = d->spare;
    memcpy(w, c, (size_t)d->rows * sizeof(double));
    turn(d, 1, w);
    for (int64_t i = d->rank - 1; i >= 0; i--) {
        for (int64_t j = i + 1; j < d->rank; j++) {
            w[i] -= d->a[j * d->rows + i] * w[j];
        }
        w[i] /= d->a[i * d->rows + i];
    }
    /* Z [w; 0], in the order of B's columns. */
    const int64_t size = d->rows > d->columns ? d->rows : d->columns;
    for (int64_t j = d->rank; j < size; j++) {
        w[j] = 0.0;
    }
    for (int64_t k = 0; k < d->rank; k++) {
        reflect_right(d, k, w, 1);
    }
    for (int64_t j = 0; j < d->columns; j++) {
        x[d->pivot[j]] = w[j];
    }
}
