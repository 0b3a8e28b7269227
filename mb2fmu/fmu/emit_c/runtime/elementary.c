/* elementary.c: elementary functions with the same bits everywhere (elementary.h).
 *
 * Where one double is not enough a value is the unevaluated sum of two, `hi + lo`, |lo| <= ulp(hi) / 2. No fused
 * multiply-add is assumed: products are made exact by Dekker's splitting, sums by Knuth's two-sum.
 *
 * Sources: Dekker: A floating-point technique for extending the available precision, Numer. Math. 18 (1971) 224;
 * Cody, Waite: Software Manual for the Elementary Functions, 1980; Payne, Hanek: Radian reduction for trigonometric
 * functions, SIGNUM Newsl. 18 (1983) 19; Muller: Elementary Functions, 3rd ed. 2016; Schonfelder: Chebyshev expansions
 * for the error and related functions, Math. Comp. 32 (1978) 1232. Polynomials and constants are made by
 * scripts/elementary_coefficients.py of mb2fmu.
 *
 * Largest errors found, in units of the last place, against 60 digits and more on random and hard arguments (tests of
 * mb2fmu hold them to 1 for sin, cos and tan and to 2 for the others):
 *   sin 0.76, cos 0.76, tan 0.95, exp 0.61, log 0.51, pow 0.60, asin 0.61, acos 0.56, atan 0.70, atan2 0.65,
 *   sinh 0.55, cosh 0.52, tanh 0.55, asinh 0.92, acosh 0.51, atanh 0.51, erf 1.15
 */
#include "elementary.h"

#include <stdint.h>
#include <string.h>

#include "elementary_coefficients.h"

/* --- doubles as bits, and pairs of doubles ------------------------------------------------------------------------ */

typedef struct {
    double hi, lo;
} mb2fmu_pair;

static inline uint64_t mb2fmu_bits(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static inline double mb2fmu_from_bits(uint64_t bits)
{
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* 2^n, -1022 <= n <= 1023 */
static inline double mb2fmu_power_of_two(int n)
{
    return mb2fmu_from_bits((uint64_t)(n + 1023) << 52);
}

/* a + b, exactly */
static inline mb2fmu_pair mb2fmu_two_sum(double a, double b)
{
    const double hi = a + b;
    const double from_b = hi - a;
    const mb2fmu_pair sum = {hi, (a - (hi - from_b)) + (b - from_b)};
    return sum;
}

/* a + b, exactly, if |a| >= |b| or a = 0 */
static inline mb2fmu_pair mb2fmu_fast_two_sum(double a, double b)
{
    const double hi = a + b;
    const mb2fmu_pair sum = {hi, b - (hi - a)};
    return sum;
}

/* a b, exactly where nothing over- or underflows */
static inline mb2fmu_pair mb2fmu_two_product(double a, double b)
{
    const double split = 134217729.0; /* 2^27 + 1 */
    const double a_scaled = split * a, b_scaled = split * b;
    const double a_hi = a_scaled - (a_scaled - a), b_hi = b_scaled - (b_scaled - b);
    const double a_lo = a - a_hi, b_lo = b - b_hi;
    const double hi = a * b;
    const mb2fmu_pair product = {hi, ((a_hi * b_hi - hi) + a_hi * b_lo + a_lo * b_hi) + a_lo * b_lo};
    return product;
}

/* a + c for a number c */
static inline mb2fmu_pair mb2fmu_pair_add(mb2fmu_pair a, double c)
{
    const mb2fmu_pair sum = mb2fmu_two_sum(a.hi, c);
    return mb2fmu_fast_two_sum(sum.hi, sum.lo + a.lo);
}

/* a / b, with a relative error of about 2^-100 */
static inline mb2fmu_pair mb2fmu_pair_divide(mb2fmu_pair a, mb2fmu_pair b)
{
    const double quotient = a.hi / b.hi;
    const mb2fmu_pair product = mb2fmu_two_product(quotient, b.hi);
    const double rest = ((a.hi - product.hi) - product.lo) + (a.lo - quotient * b.lo);
    const mb2fmu_pair result = {quotient, rest / b.hi};
    return result;
}

/* The square root of a number that is not negative. */
static inline mb2fmu_pair mb2fmu_pair_root(mb2fmu_pair a)
{
    const double root = sqrt(a.hi);
    const mb2fmu_pair square = mb2fmu_two_product(root, root);
    const double rest = ((a.hi - square.hi) - square.lo) + a.lo;
    const mb2fmu_pair result = {root, root > 0.0 ? rest / (2.0 * root) : 0.0};
    return result;
}

/* |size| with the sign of x */
static inline double mb2fmu_with_sign(double size, double x)
{
    const uint64_t sign = (uint64_t)1 << 63;
    return mb2fmu_from_bits((mb2fmu_bits(size) & ~sign) | (mb2fmu_bits(x) & sign));
}

/* sum of coefficient[k] x^k by Horner's scheme */
static inline double mb2fmu_polynomial(const double coefficient[], int terms, double x)
{
    double sum = coefficient[terms - 1];
    for (int k = terms - 2; k >= 0; k--) {
        sum = sum * x + coefficient[k];
    }
    return sum;
}

/* --- functions that are exact ------------------------------------------------------------------------------------- */

static double mb2fmu_floor(double x)
{
    return floor(x);
}

static double mb2fmu_ceil(double x)
{
    return ceil(x);
}

static double mb2fmu_min(double a, double b)
{
    return (a < b || a != a) ? a : b;
}

static double mb2fmu_max(double a, double b)
{
    return (a > b || a != a) ? a : b;
}

static double mb2fmu_sign(double x)
{
    return x > 0.0 ? 1.0 : (x < 0.0 ? -1.0 : x);
}

#include "elementary_circular.c"
#include "elementary_exponential.c"
