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
 *   sin 0.78, cos 0.78, tan 0.80, exp 0.61, log 0.51, pow 0.52, asin 0.58, acos 0.56, atan 0.57, atan2 0.61,
 *   sinh 0.58, cosh 0.52, tanh 0.52, asinh 1.0, acosh 0.51, atanh 0.51, erf 1.0
 */
#include "elementary.h"

#include <stdint.h>
#include <string.h>

#include "elementary_coefficients.h"

/* --- doubles as bits, and pairs of doubles ------------------------------------------------------------------------- */

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

/* --- several doubles at once ---------------------------------------------------------------------------------------
 *
 * Sines and cosines are evaluated for all lanes of a vector register side by side, with bits that do not depend on how
 * many there are. Compilers without vector types have one lane. */

#if defined(__GNUC__) && defined(__AVX2__)
#define MB2FMU_LANES 4
#elif defined(__GNUC__)
#define MB2FMU_LANES 2
#else
#define MB2FMU_LANES 1
#endif

#if MB2FMU_LANES > 1
typedef double mb2fmu_reals __attribute__((vector_size(8 * MB2FMU_LANES)));
typedef uint64_t mb2fmu_words __attribute__((vector_size(8 * MB2FMU_LANES)));
#else
typedef double mb2fmu_reals;
typedef uint64_t mb2fmu_words;
#endif

static inline mb2fmu_words mb2fmu_words_of(mb2fmu_reals x)
{
    mb2fmu_words words;
    memcpy(&words, &x, sizeof words);
    return words;
}

static inline mb2fmu_reals mb2fmu_reals_of(mb2fmu_words words)
{
    mb2fmu_reals x;
    memcpy(&x, &words, sizeof x);
    return x;
}

/* n <= MB2FMU_LANES doubles; the other lanes are zero, or left out. */
static inline mb2fmu_reals mb2fmu_load(int n, const double *x)
{
    double lanes[MB2FMU_LANES] = {0.0};
    mb2fmu_reals result;
    for (int i = 0; i < n; i++) {
        lanes[i] = x[i];
    }
    memcpy(&result, lanes, sizeof result);
    return result;
}

static inline void mb2fmu_store(int n, double *x, mb2fmu_reals values)
{
    double lanes[MB2FMU_LANES];
    memcpy(lanes, &values, sizeof lanes);
    for (int i = 0; i < n; i++) {
        x[i] = lanes[i];
    }
}

/* --- reduction of angles ------------------------------------------------------------------------------------------- */

/* An angle less a multiple of pi/2: x = quadrant pi/2 + hi + lo, |hi| <= pi/4 and a little, |lo| <= |hi| / 2. lo is
 * negated, so that zeros keep their sign; of the quadrant the two lowest bits count. */
typedef struct {
    mb2fmu_reals hi, minus_lo;
    mb2fmu_words quadrant;
} mb2fmu_angles;

/* Cody and Waite's reduction for |x| <= MB2FMU_ANGLE_LIMIT, without branches: pi/2 in three parts, of which the first
 * two have so few bits that their products are exact. */
static inline mb2fmu_angles mb2fmu_reduce_small(mb2fmu_reals x)
{
    const double shifter = 6755399441055744.0; /* 1.5 2^52: adding it rounds to an integer in the lowest bits */
    const mb2fmu_reals shifted = x * MB2FMU_TWO_OVER_PI + shifter;
    const mb2fmu_reals k = shifted - shifter;
    const mb2fmu_reals first = x - k * MB2FMU_HALF_PI_1;
    const mb2fmu_reals second = k * MB2FMU_HALF_PI_2;
    const mb2fmu_reals sum = first - second;
    const mb2fmu_reals from_second = sum - first;
    const mb2fmu_reals error = (first - (sum - from_second)) - (second + from_second);
    const mb2fmu_angles angles = {sum, k * MB2FMU_HALF_PI_3 - error, mb2fmu_words_of(shifted)};
    return angles;
}

/* a b as 128 bits */
static void mb2fmu_multiply_words(uint64_t a, uint64_t b, uint64_t *high, uint64_t *low)
{
    const uint64_t mask = 0xffffffffu;
    const uint64_t low_low = (a & mask) * (b & mask);
    const uint64_t low_high = (a & mask) * (b >> 32);
    const uint64_t high_low = (a >> 32) * (b & mask);
    const uint64_t middle = (low_low >> 32) + (low_high & mask) + (high_low & mask);
    *high = (a >> 32) * (b >> 32) + (low_high >> 32) + (high_low >> 32) + (middle >> 32);
    *low = (middle << 32) | (low_low & mask);
}

/* 64 bits of 2/pi, from bit number `first` on; bit 0 is 64 bits before the binary point. */
static uint64_t mb2fmu_bits_of_two_over_pi(int first)
{
    const int word = first / 64, shift = first % 64;
    const uint64_t left = mb2fmu_two_over_pi_bits[word] << shift;
    return shift == 0 ? left : left | (mb2fmu_two_over_pi_bits[word + 1] >> (64 - shift));
}

/* (high, low) / 2^128 pi/2 as a pair, high < 2^63 */
static mb2fmu_pair mb2fmu_fraction_of_half_pi(uint64_t high, uint64_t low)
{
    int exponent = -128;
    if (high == 0) {
        high = low;
        low = 0;
        exponent -= 64;
    }
    while (high != 0 && (high >> 63) == 0) {
        high = (high << 1) | (low >> 63);
        low <<= 1;
        exponent -= 1;
    }
    const double scale = mb2fmu_power_of_two(exponent + 64);
    const double upper = (double)(high >> 11) * (2048.0 * scale);
    const double lower = (double)((high & 2047u) << 42 | low >> 22) * (scale * MB2FMU_TWO_TO_MINUS_42);
    const mb2fmu_pair product = mb2fmu_two_product(upper, MB2FMU_HALF_PI_HI);
    const double rest = product.lo + (upper * MB2FMU_HALF_PI_LO + lower * MB2FMU_HALF_PI_HI);
    return mb2fmu_fast_two_sum(product.hi, rest);
}

/* One angle, as above. */
typedef struct {
    double hi, minus_lo;
    uint64_t quadrant;
} mb2fmu_angle;

/* Payne and Hanek's reduction for larger finite x = m 2^e: only 192 bits of 2/pi matter for x 2/pi modulo 4, those
 * before them give multiples of 4, those after them less than 2^-137. */
static mb2fmu_angle mb2fmu_reduce_large(double x)
{
    const uint64_t bits = mb2fmu_bits(x);
    const int exponent = (int)((bits >> 52) & 2047u) - 1075;
    const uint64_t m = (bits & 0xfffffffffffffu) | 0x10000000000000u;
    const int first = exponent - 2 + 64;
    uint64_t high, carry, low, unused;
    /* the product modulo 2^192: words a (highest), b, c */
    uint64_t c_high, c;
    mb2fmu_multiply_words(m, mb2fmu_bits_of_two_over_pi(first + 128), &c_high, &c);
    uint64_t b_high, b;
    mb2fmu_multiply_words(m, mb2fmu_bits_of_two_over_pi(first + 64), &b_high, &b);
    mb2fmu_multiply_words(m, mb2fmu_bits_of_two_over_pi(first), &unused, &high);
    low = b + c_high;
    carry = low < b ? 1u : 0u;
    high += b_high + carry;
    /* two bits of quadrant, then the fraction; one of half and more belongs to the next quadrant */
    uint64_t quadrant = high >> 62;
    high = (high << 2) | (low >> 62);
    low = (low << 2) | (c >> 62);
    const int negative = (int)(high >> 63);
    if (negative) {
        quadrant += 1;
        high = ~high;
        low = ~low; /* minus the fraction, but for one unit of 2^-128 */
    }
    const mb2fmu_pair r = mb2fmu_fraction_of_half_pi(high, low);
    const int flip = negative != (int)(bits >> 63);
    const mb2fmu_angle angle = {flip ? -r.hi : r.hi, flip ? r.lo : -r.lo,
                                bits >> 63 ? (uint64_t)0 - quadrant : quadrant};
    return angle;
}

/* Any angle; NaN for infinity and NaN. */
static mb2fmu_angles mb2fmu_reduce(double x)
{
    mb2fmu_angle angle = {x - x, 0.0, 0};
    if (fabs(x) <= MB2FMU_ANGLE_LIMIT) {
        return mb2fmu_reduce_small(mb2fmu_load(1, &x));
    }
    if (fabs(x) < MB2FMU_INFINITY) {
        angle = mb2fmu_reduce_large(x);
    }
    const double quadrant = mb2fmu_from_bits(angle.quadrant & 3u);
    const mb2fmu_angles angles = {mb2fmu_load(1, &angle.hi), mb2fmu_load(1, &angle.minus_lo),
                                  mb2fmu_words_of(mb2fmu_load(1, &quadrant))};
    return angles;
}

/* --- sine, cosine, tangent ----------------------------------------------------------------------------------------- */

/* hi - sin(hi + lo), to be subtracted from hi: +0 for zeros, so that they keep their sign. */
static inline mb2fmu_reals mb2fmu_sine_deficit(const mb2fmu_angles *angles)
{
    const mb2fmu_reals hi = angles->hi;
    const mb2fmu_reals z = hi * hi, z2 = z * z;
    const mb2fmu_reals low = MB2FMU_SIN_0 + z * MB2FMU_SIN_1;
    const mb2fmu_reals middle = MB2FMU_SIN_2 + z * MB2FMU_SIN_3;
    const mb2fmu_reals high = MB2FMU_SIN_4 + z * MB2FMU_SIN_5;
    const mb2fmu_reals polynomial = (low + z2 * middle) + (z2 * z2) * high;
    return (hi * z) * polynomial + angles->minus_lo * (1.0 - 0.5 * z);
}

/* cos(hi + lo) - head, with 1 - hi^2 / 2 rounded to `head` */
static inline mb2fmu_reals mb2fmu_cosine_rest(const mb2fmu_angles *angles, mb2fmu_reals *head)
{
    const mb2fmu_reals hi = angles->hi;
    const mb2fmu_reals z = hi * hi, z2 = z * z;
    const mb2fmu_reals half = 0.5 * z;
    const mb2fmu_reals low = MB2FMU_COS_0 + z * MB2FMU_COS_1;
    const mb2fmu_reals middle = MB2FMU_COS_2 + z * MB2FMU_COS_3;
    const mb2fmu_reals high = MB2FMU_COS_4 + z * MB2FMU_COS_5;
    const mb2fmu_reals polynomial = (low + z2 * middle) + (z2 * z2) * high;
    *head = 1.0 - half;
    return ((1.0 - *head) - half) + (z2 * polynomial + hi * angles->minus_lo);
}

static inline void mb2fmu_sincos_reduced(const mb2fmu_angles *angles, mb2fmu_reals *sine, mb2fmu_reals *cosine)
{
    mb2fmu_reals head;
    const mb2fmu_reals rest = mb2fmu_cosine_rest(angles, &head);
    const mb2fmu_words s = mb2fmu_words_of(angles->hi - mb2fmu_sine_deficit(angles));
    const mb2fmu_words c = mb2fmu_words_of(head + rest);
    const mb2fmu_words both = (s ^ c) & (0u - (angles->quadrant & 1u)); /* exchanged in odd quadrants */
    const mb2fmu_words sine_sign = (angles->quadrant & 2u) << 62;
    const mb2fmu_words cosine_sign = ((angles->quadrant + 1u) & 2u) << 62;
    *sine = mb2fmu_reals_of((s ^ both) ^ sine_sign);
    *cosine = mb2fmu_reals_of((c ^ both) ^ cosine_sign);
}

static void mb2fmu_sincos(double x, double *sine, double *cosine)
{
    const mb2fmu_angles angles = mb2fmu_reduce(x);
    mb2fmu_reals sines, cosines;
    mb2fmu_sincos_reduced(&angles, &sines, &cosines);
    mb2fmu_store(1, sine, sines);
    mb2fmu_store(1, cosine, cosines);
}

static inline void mb2fmu_sincos_lanes(int n, const double *x, double *sine, double *cosine)
{
    const mb2fmu_angles angles = mb2fmu_reduce_small(mb2fmu_load(n, x));
    mb2fmu_reals sines, cosines;
    mb2fmu_sincos_reduced(&angles, &sines, &cosines);
    mb2fmu_store(n, sine, sines);
    mb2fmu_store(n, cosine, cosines);
}

/* Those again that are not small. */
static MB2FMU_NOINLINE void mb2fmu_sincos_of_large(int n, const double x[], double sine[], double cosine[])
{
    for (int i = 0; i < n; i++) {
        if (!(fabs(x[i]) <= MB2FMU_ANGLE_LIMIT)) {
            mb2fmu_sincos(x[i], &sine[i], &cosine[i]);
        }
    }
}

/* All as if they were small, without branches. */
static inline void mb2fmu_sincos_each(int n, const double x[], double sine[], double cosine[])
{
    int i = 0, large = 0;
    for (; i + MB2FMU_LANES <= n; i += MB2FMU_LANES) {
        mb2fmu_sincos_lanes(MB2FMU_LANES, x + i, sine + i, cosine + i);
    }
    if (i < n) {
        mb2fmu_sincos_lanes(n - i, x + i, sine + i, cosine + i);
    }
    for (i = 0; i < n; i++) {
        large |= !(fabs(x[i]) <= MB2FMU_ANGLE_LIMIT);
    }
    if (large) {
        mb2fmu_sincos_of_large(n, x, sine, cosine);
    }
}

static double mb2fmu_sin(double x)
{
    double sine, cosine;
    mb2fmu_sincos(x, &sine, &cosine);
    return sine;
}

static double mb2fmu_cos(double x)
{
    double sine, cosine;
    mb2fmu_sincos(x, &sine, &cosine);
    return cosine;
}

/* sin(hi + lo) and cos(hi + lo) as pairs; returns the quadrant. */
static uint64_t mb2fmu_pair_sincos(double x, mb2fmu_pair *sine, mb2fmu_pair *cosine)
{
    const mb2fmu_angles angles = mb2fmu_reduce(x);
    mb2fmu_reals head;
    const mb2fmu_reals rest = mb2fmu_cosine_rest(&angles, &head), deficit = mb2fmu_sine_deficit(&angles);
    double first[4], quadrant;
    mb2fmu_store(1, &first[0], angles.hi);
    mb2fmu_store(1, &first[1], deficit);
    mb2fmu_store(1, &first[2], head);
    mb2fmu_store(1, &first[3], rest);
    mb2fmu_store(1, &quadrant, mb2fmu_reals_of(angles.quadrant));
    *sine = mb2fmu_fast_two_sum(first[0], -first[1]);
    *cosine = mb2fmu_fast_two_sum(first[2], first[3]);
    return mb2fmu_bits(quadrant) & 3u;
}

/* The quotient of sine and cosine; for odd quadrants minus that of cosine and sine. */
static double mb2fmu_tan(double x)
{
    mb2fmu_pair sine, cosine;
    const uint64_t quadrant = mb2fmu_pair_sincos(x, &sine, &cosine);
    if ((quadrant & 1u) == 0) {
        if (fabs(sine.hi) < MB2FMU_TINY) {
            return sine.hi;
        }
        const mb2fmu_pair quotient = mb2fmu_pair_divide(sine, cosine);
        return quotient.hi + quotient.lo;
    }
    const mb2fmu_pair quotient = mb2fmu_pair_divide(cosine, sine);
    return -(quotient.hi + quotient.lo);
}

/* --- exponential and hyperbolic functions -------------------------------------------------------------------------- */

/* e^(hi + lo) = 2^k (1 + p), |p| < 0.42; returns k. |hi| < 800. */
static int mb2fmu_exp_parts(double hi, double lo, mb2fmu_pair *p)
{
    const double shifter = 6755399441055744.0; /* 1.5 2^52 */
    const double k = (hi * MB2FMU_ONE_OVER_LN2 + shifter) - shifter;
    const mb2fmu_pair r = mb2fmu_two_sum(hi - k * MB2FMU_LN2_HI, lo - k * MB2FMU_LN2_LO);
    const mb2fmu_pair square = mb2fmu_two_product(r.hi, r.hi);
    const double rest = square.hi * r.hi * mb2fmu_polynomial(mb2fmu_exp_coefficients, MB2FMU_EXP_TERMS, r.hi);
    const mb2fmu_pair sum = mb2fmu_fast_two_sum(r.hi, 0.5 * square.hi);
    *p = mb2fmu_fast_two_sum(sum.hi, sum.lo + (rest + (0.5 * square.lo + (r.lo + r.hi * r.lo))));
    return (int)k;
}

/* y 2^k, rounded once; -1100 < k < 1100 */
static double mb2fmu_scaled(double y, int k)
{
    const int first = k / 2;
    return y * mb2fmu_power_of_two(first) * mb2fmu_power_of_two(k - first);
}

/* 2^more e^(hi + lo) */
static double mb2fmu_exp_of_pair(double hi, double lo, int more)
{
    if (hi > 720.0) {
        return MB2FMU_INFINITY;
    }
    if (hi < -750.0) {
        return 0.0;
    }
    mb2fmu_pair p;
    const int k = mb2fmu_exp_parts(hi, lo, &p);
    const mb2fmu_pair sum = mb2fmu_fast_two_sum(1.0, p.hi);
    return mb2fmu_scaled(sum.hi + (sum.lo + p.lo), k + more);
}

static double mb2fmu_exp(double x)
{
    return x != x ? x : mb2fmu_exp_of_pair(x, 0.0, 0);
}

/* e^x + c, c = 0 or -1, for 0 <= x < 50 */
static mb2fmu_pair mb2fmu_exp_and(double x, double c)
{
    mb2fmu_pair p;
    const int k = mb2fmu_exp_parts(x, 0.0, &p);
    const double scale = mb2fmu_power_of_two(k);
    const mb2fmu_pair whole = mb2fmu_two_sum(scale, c);
    const mb2fmu_pair sum = mb2fmu_two_sum(whole.hi, scale * p.hi);
    return mb2fmu_fast_two_sum(sum.hi, sum.lo + (whole.lo + scale * p.lo));
}

static double mb2fmu_sinh(double x)
{
    const double a = fabs(x);
    if (!(a >= MB2FMU_TINY)) {
        return x;
    }
    if (a >= 40.0) {
        return mb2fmu_with_sign(mb2fmu_exp_of_pair(a, 0.0, -1), x);
    }
    const mb2fmu_pair e = mb2fmu_exp_and(a, -1.0); /* sinh = (e + e / (1 + e)) / 2 with e = exp(a) - 1 */
    const mb2fmu_pair more = mb2fmu_pair_divide(e, mb2fmu_pair_add(e, 1.0));
    const mb2fmu_pair sum = mb2fmu_two_sum(e.hi, more.hi);
    return mb2fmu_with_sign(0.5 * (sum.hi + (sum.lo + (e.lo + more.lo))), x);
}

static double mb2fmu_cosh(double x)
{
    const double a = fabs(x);
    const mb2fmu_pair one = {1.0, 0.0};
    if (!(a < 40.0)) {
        return x != x ? x : mb2fmu_exp_of_pair(a, 0.0, -1);
    }
    const mb2fmu_pair e = mb2fmu_exp_and(a, 0.0);
    const mb2fmu_pair inverse = mb2fmu_pair_divide(one, e);
    const mb2fmu_pair sum = mb2fmu_two_sum(e.hi, inverse.hi);
    return 0.5 * (sum.hi + (sum.lo + (e.lo + inverse.lo)));
}

static double mb2fmu_tanh(double x)
{
    const double a = fabs(x);
    if (!(a >= MB2FMU_TINY)) {
        return x;
    }
    if (a >= 20.0) {
        return mb2fmu_with_sign(1.0, x);
    }
    const mb2fmu_pair e = mb2fmu_exp_and(2.0 * a, -1.0); /* tanh = e / (e + 2) with e = exp(2 a) - 1 */
    const mb2fmu_pair quotient = mb2fmu_pair_divide(e, mb2fmu_pair_add(e, 2.0));
    return mb2fmu_with_sign(quotient.hi + quotient.lo, x);
}

/* --- logarithms and what is made of them --------------------------------------------------------------------------- */

/* artanh(s) for |s| <= 0.172 */
static mb2fmu_pair mb2fmu_atanh_series(mb2fmu_pair s)
{
    mb2fmu_pair z = mb2fmu_two_product(s.hi, s.hi);
    z.lo += 2.0 * s.hi * s.lo;
    mb2fmu_pair cube = mb2fmu_two_product(s.hi, z.hi);
    cube.lo += s.hi * z.lo + s.lo * z.hi;
    mb2fmu_pair third = mb2fmu_two_product(cube.hi, MB2FMU_THIRD_HI);
    third.lo += cube.hi * MB2FMU_THIRD_LO + cube.lo * MB2FMU_THIRD_HI;
    const double rest = cube.hi * z.hi * mb2fmu_polynomial(mb2fmu_log_coefficients, MB2FMU_LOG_TERMS, z.hi);
    const mb2fmu_pair sum = mb2fmu_fast_two_sum(s.hi, third.hi);
    return mb2fmu_fast_two_sum(sum.hi, sum.lo + (s.lo + (third.lo + rest)));
}

/* log(x.hi + x.lo) + more log 2, for x.hi positive and finite, exact to about 2^-64: x = 2^k m and
 * log m = 2 artanh((m - 1) / (m + 1)). */
static mb2fmu_pair mb2fmu_log_of_pair(mb2fmu_pair x, int more)
{
    int k = more;
    if (x.hi < MB2FMU_SMALLEST_NORMAL) {
        x.hi *= 18014398509481984.0; /* 2^54 */
        x.lo *= 18014398509481984.0;
        k -= 54;
    }
    const int exponent = (int)(mb2fmu_bits(x.hi) >> 52) - 1023;
    const int half = exponent == 1023 ? 1 : 0; /* 2^-1023 is no normal number */
    double scale = mb2fmu_power_of_two(half - exponent) * (half ? 0.5 : 1.0);
    k += exponent;
    if (x.hi * scale > MB2FMU_SQRT_2) {
        scale *= 0.5;
        k += 1;
    }
    const double m = x.hi * scale, m_lo = x.lo * scale;
    const mb2fmu_pair numerator = mb2fmu_two_sum(m - 1.0, m_lo);
    mb2fmu_pair denominator = mb2fmu_two_sum(m, 1.0);
    denominator.lo += m_lo;
    const mb2fmu_pair part = mb2fmu_atanh_series(mb2fmu_pair_divide(numerator, denominator));
    const mb2fmu_pair sum = mb2fmu_two_sum(k * MB2FMU_LN2_HI, 2.0 * part.hi);
    return mb2fmu_fast_two_sum(sum.hi, sum.lo + (2.0 * part.lo + k * MB2FMU_LN2_LO));
}

/* log(1 + f) for f.hi > 0, exact for small f too */
static double mb2fmu_log_of_one_and(mb2fmu_pair f)
{
    if (f.hi < 0.4) {
        const mb2fmu_pair part = mb2fmu_atanh_series(mb2fmu_pair_divide(f, mb2fmu_pair_add(f, 2.0)));
        return 2.0 * part.hi;
    }
    return mb2fmu_log_of_pair(mb2fmu_pair_add(f, 1.0), 0).hi;
}

static double mb2fmu_log(double x)
{
    if (!(x > 0.0 && x < MB2FMU_INFINITY)) {
        return x == 0.0 ? -MB2FMU_INFINITY : (x > 0.0 || x != x ? x : MB2FMU_NAN);
    }
    const mb2fmu_pair number = {x, 0.0};
    return mb2fmu_log_of_pair(number, 0).hi;
}

static double mb2fmu_asinh(double x)
{
    const double a = fabs(x);
    if (!(a >= MB2FMU_TINY && a < MB2FMU_INFINITY)) {
        return x;
    }
    if (a > MB2FMU_LARGE) {
        const mb2fmu_pair number = {a, 0.0};
        return mb2fmu_with_sign(mb2fmu_log_of_pair(number, 1).hi, x);
    }
    const double square = a * a; /* asinh = log(1 + a + a^2 / (1 + sqrt(1 + a^2))) */
    return mb2fmu_with_sign(mb2fmu_log_of_one_and(mb2fmu_two_sum(a, square / (1.0 + sqrt(1.0 + square)))), x);
}

static double mb2fmu_acosh(double x)
{
    if (!(x > 1.0 && x < MB2FMU_INFINITY)) {
        return x == 1.0 ? 0.0 : (x > 1.0 || x != x ? x : MB2FMU_NAN);
    }
    if (x > MB2FMU_LARGE) {
        const mb2fmu_pair number = {x, 0.0};
        return mb2fmu_log_of_pair(number, 1).hi;
    }
    const double t = x - 1.0; /* acosh = log(1 + t + sqrt(t (t + 2))) */
    const mb2fmu_pair more = mb2fmu_two_sum(t, 2.0);
    mb2fmu_pair radicand = mb2fmu_two_product(t, more.hi);
    radicand.lo += t * more.lo;
    const mb2fmu_pair root = mb2fmu_pair_root(radicand);
    mb2fmu_pair sum = mb2fmu_two_sum(t, root.hi);
    sum.lo += root.lo;
    return mb2fmu_log_of_one_and(sum);
}

static double mb2fmu_atanh(double x)
{
    const double a = fabs(x);
    if (!(a >= MB2FMU_TINY && a < 1.0)) {
        return a == 1.0 ? x * MB2FMU_INFINITY : (a > 1.0 ? MB2FMU_NAN : x);
    }
    if (a <= 0.17) {
        const mb2fmu_pair s = {x, 0.0};
        return mb2fmu_atanh_series(s).hi;
    }
    const mb2fmu_pair quotient = mb2fmu_pair_divide(mb2fmu_two_sum(1.0, a), mb2fmu_two_sum(1.0, -a));
    return mb2fmu_with_sign(0.5 * mb2fmu_log_of_pair(quotient, 0).hi, x);
}

/* --- powers -------------------------------------------------------------------------------------------------------- */

/* 0: y is no integer, 1: odd, 2: even */
static int mb2fmu_parity(double y)
{
    if (floor(y) != y) {
        return 0;
    }
    return floor(0.5 * y) != 0.5 * y ? 1 : 2;
}

/* x^y where x or y is zero or infinite; parity is that of y. */
static double mb2fmu_pow_at_limits(double x, double y, int parity)
{
    const double a = fabs(x);
    if (fabs(y) == MB2FMU_INFINITY) {
        if (a == 1.0) {
            return 1.0;
        }
        return (a > 1.0) == (y > 0.0) ? MB2FMU_INFINITY : 0.0;
    }
    const double size = (a == 0.0) == (y > 0.0) ? 0.0 : MB2FMU_INFINITY;
    return parity == 1 ? mb2fmu_with_sign(size, x) : size;
}

static double mb2fmu_pow(double x, double y)
{
    if (y == 0.0 || x == 1.0) {
        return 1.0;
    }
    if (x != x || y != y) {
        return x + y;
    }
    const int parity = mb2fmu_parity(y);
    if (x == 0.0 || fabs(x) == MB2FMU_INFINITY || fabs(y) == MB2FMU_INFINITY) {
        return mb2fmu_pow_at_limits(x, y, parity);
    }
    if (x < 0.0 && parity == 0) {
        return MB2FMU_NAN;
    }
    const mb2fmu_pair base = {fabs(x), 0.0};
    const mb2fmu_pair logarithm = mb2fmu_log_of_pair(base, 0);
    const double size = y * logarithm.hi;
    double result;
    if (fabs(size) > 800.0) {
        result = size > 0.0 ? MB2FMU_INFINITY : 0.0;
    } else {
        const mb2fmu_pair product = mb2fmu_two_product(y, logarithm.hi);
        result = mb2fmu_exp_of_pair(product.hi, product.lo + y * logarithm.lo, 0);
    }
    return x < 0.0 && parity == 1 ? -result : result;
}

/* --- inverse circular functions ------------------------------------------------------------------------------------ */

/* base + factor atan(u), |u| <= sqrt(2) - 1 and a little; factor = 1 or -1 */
static double mb2fmu_atan_from(mb2fmu_pair base, double factor, mb2fmu_pair u)
{
    const double z = u.hi * u.hi;
    const double less = u.hi * z * mb2fmu_polynomial(mb2fmu_atan_coefficients, MB2FMU_ATAN_TERMS, z);
    const mb2fmu_pair angle = mb2fmu_fast_two_sum(u.hi, u.lo - less);
    const mb2fmu_pair sum = mb2fmu_two_sum(base.hi, factor * angle.hi);
    return sum.hi + (sum.lo + (base.lo + factor * angle.lo));
}

/* base + factor atan(a / b) for positive a and b whose quotient is neither large nor small */
static double mb2fmu_atan_of_quotient(mb2fmu_pair base, double factor, double a, double b)
{
    const mb2fmu_pair first = {a, 0.0}, second = {b, 0.0}, minus = {-b, 0.0};
    if (a <= 0.41421 * b) {
        return mb2fmu_atan_from(base, factor, mb2fmu_pair_divide(first, second));
    }
    const double eighths = a <= 2.41421 * b ? 0.5 : 1.0;
    const mb2fmu_pair sum = mb2fmu_two_sum(base.hi, factor * eighths * MB2FMU_HALF_PI_HI);
    const mb2fmu_pair turned = {sum.hi, sum.lo + (base.lo + factor * eighths * MB2FMU_HALF_PI_LO)};
    if (eighths < 1.0) { /* pi/4 + atan((a - b) / (a + b)) */
        const mb2fmu_pair u = mb2fmu_pair_divide(mb2fmu_two_sum(a, -b), mb2fmu_two_sum(a, b));
        return mb2fmu_atan_from(turned, factor, u);
    }
    return mb2fmu_atan_from(turned, factor, mb2fmu_pair_divide(minus, first)); /* pi/2 + atan(-b / a) */
}

static double mb2fmu_atan(double x)
{
    const mb2fmu_pair zero = {0.0, 0.0};
    const double a = fabs(x);
    if (!(a >= MB2FMU_TINY)) {
        return x;
    }
    if (a > 1e20) {
        return mb2fmu_with_sign(MB2FMU_HALF_PI_HI, x);
    }
    return mb2fmu_with_sign(mb2fmu_atan_of_quotient(zero, 1.0, a, 1.0), x);
}

static double mb2fmu_atan2(double y, double x)
{
    const int left = (int)(mb2fmu_bits(x) >> 63);
    const mb2fmu_pair right_base = {0.0, 0.0}, left_base = {2.0 * MB2FMU_HALF_PI_HI, 2.0 * MB2FMU_HALF_PI_LO};
    double a = fabs(y), b = fabs(x);
    if (x != x || y != y) {
        return x + y;
    }
    if (a == MB2FMU_INFINITY && b == MB2FMU_INFINITY) {
        a = b = 1.0;
    }
    if (a == 0.0 || b == MB2FMU_INFINITY || (b > 0.0 && a / b < 1e-20)) {
        return mb2fmu_with_sign(left ? left_base.hi : (a == 0.0 ? 0.0 : a / b), y);
    }
    if (b == 0.0 || a == MB2FMU_INFINITY || a / b > 1e20) {
        return mb2fmu_with_sign(MB2FMU_HALF_PI_HI, y);
    }
    const double scale = a > 1e150 ? 1e-150 : (a < 1e-150 ? 1e150 : 1.0);
    const double exact = mb2fmu_from_bits(mb2fmu_bits(scale) & 0xfff0000000000000u); /* a power of two */
    const double angle =
        mb2fmu_atan_of_quotient(left ? left_base : right_base, left ? -1.0 : 1.0, a * exact, b * exact);
    return mb2fmu_with_sign(angle, y);
}

/* (asin(x^(1/2)) / x^(1/2) - 1) for 0 <= z <= 1/4 */
static double mb2fmu_asin_excess(double z)
{
    return z * mb2fmu_polynomial(mb2fmu_asin_coefficients, MB2FMU_ASIN_TERMS, z);
}

/* asin(sqrt((1 - a) / 2)) for 1/2 <= a <= 1 */
static mb2fmu_pair mb2fmu_half_acos(double a)
{
    const mb2fmu_pair z = {0.5 * (1.0 - a), 0.0};
    const mb2fmu_pair root = mb2fmu_pair_root(z);
    return mb2fmu_fast_two_sum(root.hi, root.lo + root.hi * mb2fmu_asin_excess(z.hi));
}

static double mb2fmu_asin(double x)
{
    const double a = fabs(x);
    if (!(a >= MB2FMU_TINY && a <= 1.0)) {
        return a > 1.0 ? MB2FMU_NAN : x;
    }
    if (a <= 0.5) {
        return x + x * mb2fmu_asin_excess(x * x);
    }
    const mb2fmu_pair half = mb2fmu_half_acos(a);
    const mb2fmu_pair sum = mb2fmu_two_sum(MB2FMU_HALF_PI_HI, -2.0 * half.hi);
    return mb2fmu_with_sign(sum.hi + (sum.lo + (MB2FMU_HALF_PI_LO - 2.0 * half.lo)), x);
}

static double mb2fmu_acos(double x)
{
    const double a = fabs(x);
    if (!(a <= 1.0)) {
        return a > 1.0 ? MB2FMU_NAN : x;
    }
    if (a <= 0.5) {
        const mb2fmu_pair sum = mb2fmu_two_sum(MB2FMU_HALF_PI_HI, -x);
        return sum.hi + (sum.lo + (MB2FMU_HALF_PI_LO - x * mb2fmu_asin_excess(x * x)));
    }
    const mb2fmu_pair half = mb2fmu_half_acos(a);
    if (x > 0.0) {
        return 2.0 * (half.hi + half.lo);
    }
    const mb2fmu_pair sum = mb2fmu_two_sum(2.0 * MB2FMU_HALF_PI_HI, -2.0 * half.hi);
    return sum.hi + (sum.lo + (2.0 * MB2FMU_HALF_PI_LO - 2.0 * half.lo));
}

/* --- error function ------------------------------------------------------------------------------------------------ */

static double mb2fmu_erf(double x)
{
    const double a = fabs(x);
    if (!(a >= 1.0)) {
        return x + x * mb2fmu_polynomial(mb2fmu_erf_coefficients, MB2FMU_ERF_TERMS, x * x);
    }
    if (a >= 6.0) {
        return mb2fmu_with_sign(1.0, x);
    }
    const double u = (a - MB2FMU_ERFC_CENTRE) / (a + MB2FMU_ERFC_CENTRE);
    const mb2fmu_pair square = mb2fmu_two_product(a, a);
    const double decay = mb2fmu_exp_of_pair(-square.hi, -square.lo, 0);
    const double rest = decay * mb2fmu_polynomial(mb2fmu_erfc_coefficients, MB2FMU_ERFC_TERMS, u) / a;
    return mb2fmu_with_sign(1.0 - rest, x);
}

/* --- functions that are exact -------------------------------------------------------------------------------------- */

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
