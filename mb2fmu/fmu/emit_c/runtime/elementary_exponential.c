/* elementary_exponential.c: exponential, hyperbolic and error functions, logarithms, powers (elementary.c says how). */

/* --- exponential and hyperbolic functions ------------------------------------------------------------------------- */

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

/* --- logarithms and what is made of them -------------------------------------------------------------------------- */

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

/* --- powers ------------------------------------------------------------------------------------------------------- */

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

/* --- error function ----------------------------------------------------------------------------------------------- */

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
