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

/* --- reduction of angles ------------------------------------------------------------------------------------------- */

/* An angle less a multiple of pi/2: x = quadrant pi/2 + hi + lo, |hi| <= pi/4 and a little; lo is negated, so that
 * zeros keep their sign. */
typedef struct {
    double hi, minus_lo;
    uint64_t quadrant; /* its two lowest bits count */
} mb2fmu_angle;

/* Cody and Waite's reduction for |x| <= MB2FMU_ANGLE_LIMIT, without branches: pi/2 in three parts, of which the first
 * two have so few bits that their products are exact. */
static inline mb2fmu_angle mb2fmu_reduce_small(double x)
{
    const double shifter = 6755399441055744.0; /* 1.5 2^52: adding it rounds to an integer in the lowest bits */
    const double shifted = x * MB2FMU_TWO_OVER_PI + shifter;
    const double k = shifted - shifter;
    const double first = x - k * MB2FMU_HALF_PI_1;
    const double second = k * MB2FMU_HALF_PI_2;
    const double sum = first - second;
    const double from_second = sum - first;
    const double error = (first - (sum - from_second)) - (second + from_second);
    const double third = k * MB2FMU_HALF_PI_3 - error;
    const double hi = sum - third;
    const mb2fmu_angle angle = {hi, (hi - sum) + third, mb2fmu_bits(shifted)};
    return angle;
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

/* NaN for infinity and NaN. */
static mb2fmu_angle mb2fmu_reduce(double x)
{
    if (fabs(x) <= MB2FMU_ANGLE_LIMIT) {
        return mb2fmu_reduce_small(x);
    }
    if (fabs(x) < MB2FMU_INFINITY) {
        return mb2fmu_reduce_large(x);
    }
    const mb2fmu_angle none = {x - x, 0.0, 0};
    return none;
}

/* --- sine, cosine, tangent ----------------------------------------------------------------------------------------- */

/* hi - sin(hi + lo), to be subtracted from hi: +0 for zeros, so that they keep their sign. */
static inline double mb2fmu_sine_deficit(double hi, double minus_lo)
{
    const double z = hi * hi, z2 = z * z;
    const double low = MB2FMU_SIN_0 + z * MB2FMU_SIN_1;
    const double middle = MB2FMU_SIN_2 + z * MB2FMU_SIN_3;
    const double high = MB2FMU_SIN_4 + z * MB2FMU_SIN_5;
    const double polynomial = low + z2 * (middle + z2 * high);
    return hi * (z * polynomial) + minus_lo * (1.0 - 0.5 * z);
}

/* cos(hi + lo) - hi, with 1 - z/2 rounded to `head` */
static inline double mb2fmu_cosine_rest(double hi, double minus_lo, double *head)
{
    const double z = hi * hi, z2 = z * z;
    const double half = 0.5 * z;
    const double low = MB2FMU_COS_0 + z * MB2FMU_COS_1;
    const double middle = MB2FMU_COS_2 + z * MB2FMU_COS_3;
    const double high = MB2FMU_COS_4 + z * MB2FMU_COS_5;
    const double polynomial = low + z2 * (middle + z2 * high);
    *head = 1.0 - half;
    return ((1.0 - *head) - half) + (z2 * polynomial + hi * minus_lo);
}

static inline void mb2fmu_sincos_reduced(mb2fmu_angle angle, double *sine, double *cosine)
{
    double head;
    const double rest = mb2fmu_cosine_rest(angle.hi, angle.minus_lo, &head);
    const double s = angle.hi - mb2fmu_sine_deficit(angle.hi, angle.minus_lo);
    const double c = head + rest;
    const uint64_t odd = angle.quadrant & 1u;
    const uint64_t sine_sign = (angle.quadrant & 2u) << 62;
    const uint64_t cosine_sign = ((angle.quadrant + 1u) & 2u) << 62;
    *sine = mb2fmu_from_bits(mb2fmu_bits(odd ? c : s) ^ sine_sign);
    *cosine = mb2fmu_from_bits(mb2fmu_bits(odd ? s : c) ^ cosine_sign);
}

static void mb2fmu_sincos(double x, double *sine, double *cosine)
{
    mb2fmu_sincos_reduced(mb2fmu_reduce(x), sine, cosine);
}

/* The first loop has no branches and calls nothing, so that compilers can make vectors of it; the second one does again
 * what is out of its range. */
static void mb2fmu_sincos_each(int n, const double x[], double sine[], double cosine[])
{
    for (int i = 0; i < n; i++) {
        mb2fmu_sincos_reduced(mb2fmu_reduce_small(x[i]), &sine[i], &cosine[i]);
    }
    for (int i = 0; i < n; i++) {
        if (!(fabs(x[i]) <= MB2FMU_ANGLE_LIMIT)) {
            mb2fmu_sincos(x[i], &sine[i], &cosine[i]);
        }
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
/*TEMP*/
static double mb2fmu_tan(double x){return tan(x);}
static double mb2fmu_asin(double x){return asin(x);}
static double mb2fmu_acos(double x){return acos(x);}
static double mb2fmu_atan(double x){return atan(x);}
static double mb2fmu_atan2(double x,double y){return atan2(x,y);}
static double mb2fmu_exp(double x){return exp(x);}
static double mb2fmu_log(double x){return log(x);}
static double mb2fmu_pow(double x,double y){return pow(x,y);}
static double mb2fmu_sinh(double x){return sinh(x);}
static double mb2fmu_cosh(double x){return cosh(x);}
static double mb2fmu_tanh(double x){return tanh(x);}
static double mb2fmu_asinh(double x){return asinh(x);}
static double mb2fmu_acosh(double x){return acosh(x);}
static double mb2fmu_atanh(double x){return atanh(x);}
static double mb2fmu_erf(double x){return erf(x);}
/*END TEMP*/

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
