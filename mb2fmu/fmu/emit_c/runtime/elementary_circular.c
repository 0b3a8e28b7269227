/* elementary_circular.c: sine, cosine, tangent and their inverses (elementary.c says how, and whose algorithms). */

/* --- several doubles at once ---------------------------------------------------------------------------------------
 *
 * Sines and cosines are evaluated for all lanes of a vector register side by side, with bits that do not depend on how
 * many there are. Compilers without vector types have one lane. Where MB2FMU_REGISTERS is 2, a vector is two registers:
 * the processor goes on with one while the other waits for a quotient or a root. */

#ifndef MB2FMU_REGISTERS
#define MB2FMU_REGISTERS 1
#endif

#if defined(__GNUC__) && defined(__AVX512DQ__)
#define MB2FMU_LANES 8
#elif defined(__GNUC__) && defined(__AVX2__)
#define MB2FMU_LANES (4 * MB2FMU_REGISTERS)
#elif defined(__GNUC__)
#define MB2FMU_LANES (2 * MB2FMU_REGISTERS)
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

/* --- reduction of angles ------------------------------------------------------------------------------------------ */

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
        low = ~low; /* minus the fraction, but for one FMU of 2^-128 */
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

/* --- sine, cosine, tangent ---------------------------------------------------------------------------------------- */

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

/* --- inverse circular functions ----------------------------------------------------------------------------------- */

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
