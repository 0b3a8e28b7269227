/* batch.h: values as vectors, one lane per instance, for code that evaluates many instances at once (emit/c/batch.py).
 *
 * Why it exists: parameter studies evaluate the same equations for many states and parameters. Side by side in vector
 * registers they cost a fraction of what they cost one after the other, and every lane has the bits it has alone: only
 * operations that IEEE 754 defines, and the same elementary functions. Where lanes differ in what they would branch to,
 * all branches are evaluated and the lanes choose. To be included after elementary.c and lookup.c.
 */
#ifndef MB2FMU_BATCH_H
#define MB2FMU_BATCH_H

typedef union {
    mb2fmu_reals reals;
    double lane[MB2FMU_LANES];
} mb2fmu_lanes;

MB2FMU_UNUSED static inline mb2fmu_reals mb2fmu_all(double value)
{
    mb2fmu_lanes all;
    for (int i = 0; i < MB2FMU_LANES; i++) {
        all.lane[i] = value;
    }
    return all.reals;
}

/* result lane by lane from x.lane[i], y.lane[i], z.lane[i] */
#define MB2FMU_EACH_1(name, expression)                                                                                \
    MB2FMU_UNUSED static inline mb2fmu_reals mb2fmu_each_##name(mb2fmu_reals a)                                        \
    {                                                                                                                  \
        mb2fmu_lanes x, result;                                                                                        \
        x.reals = a;                                                                                                   \
        for (int i = 0; i < MB2FMU_LANES; i++) {                                                                       \
            result.lane[i] = (expression);                                                                             \
        }                                                                                                              \
        return result.reals;                                                                                           \
    }
#define MB2FMU_EACH_2(name, expression)                                                                                \
    MB2FMU_UNUSED static inline mb2fmu_reals mb2fmu_each_##name(mb2fmu_reals a, mb2fmu_reals b)                        \
    {                                                                                                                  \
        mb2fmu_lanes x, y, result;                                                                                     \
        x.reals = a;                                                                                                   \
        y.reals = b;                                                                                                   \
        for (int i = 0; i < MB2FMU_LANES; i++) {                                                                       \
            result.lane[i] = (expression);                                                                             \
        }                                                                                                              \
        return result.reals;                                                                                           \
    }

MB2FMU_EACH_1(sqrt, sqrt(x.lane[i]))
MB2FMU_EACH_1(abs, fabs(x.lane[i]))
MB2FMU_EACH_1(exp, mb2fmu_exp(x.lane[i]))
MB2FMU_EACH_1(log, mb2fmu_log(x.lane[i]))
MB2FMU_EACH_1(tan, mb2fmu_tan(x.lane[i]))
MB2FMU_EACH_1(asin, mb2fmu_asin(x.lane[i]))
MB2FMU_EACH_1(acos, mb2fmu_acos(x.lane[i]))
MB2FMU_EACH_1(atan, mb2fmu_atan(x.lane[i]))
MB2FMU_EACH_1(sinh, mb2fmu_sinh(x.lane[i]))
MB2FMU_EACH_1(cosh, mb2fmu_cosh(x.lane[i]))
MB2FMU_EACH_1(tanh, mb2fmu_tanh(x.lane[i]))
MB2FMU_EACH_1(asinh, mb2fmu_asinh(x.lane[i]))
MB2FMU_EACH_1(acosh, mb2fmu_acosh(x.lane[i]))
MB2FMU_EACH_1(atanh, mb2fmu_atanh(x.lane[i]))
MB2FMU_EACH_1(erf, mb2fmu_erf(x.lane[i]))
MB2FMU_EACH_1(sign, mb2fmu_sign(x.lane[i]))
MB2FMU_EACH_1(floor, mb2fmu_floor(x.lane[i]))
MB2FMU_EACH_1(ceil, mb2fmu_ceil(x.lane[i]))
MB2FMU_EACH_1(not, 1.0 - x.lane[i])
MB2FMU_EACH_2(pow, mb2fmu_pow(x.lane[i], y.lane[i]))
MB2FMU_EACH_2(atan2, mb2fmu_atan2(x.lane[i], y.lane[i]))
MB2FMU_EACH_2(min, mb2fmu_min(x.lane[i], y.lane[i]))
MB2FMU_EACH_2(max, mb2fmu_max(x.lane[i], y.lane[i]))
MB2FMU_EACH_2(lt, x.lane[i] < y.lane[i] ? 1.0 : 0.0)
MB2FMU_EACH_2(le, x.lane[i] <= y.lane[i] ? 1.0 : 0.0)
MB2FMU_EACH_2(eq, x.lane[i] == y.lane[i] ? 1.0 : 0.0)
MB2FMU_EACH_2(and, x.lane[i] * y.lane[i])
MB2FMU_EACH_2(or, mb2fmu_max(x.lane[i], y.lane[i]))

/* NaN for what may not be divided by: a pivot that is not positive, a divisor that is zero; or either not finite. */
MB2FMU_EACH_1(positive, x.lane[i] > 0.0 && x.lane[i] < MB2FMU_INFINITY ? x.lane[i] : MB2FMU_NAN)
MB2FMU_EACH_1(divisor, fabs(x.lane[i]) > 0.0 && fabs(x.lane[i]) < MB2FMU_INFINITY ? x.lane[i] : MB2FMU_NAN)

MB2FMU_UNUSED static inline mb2fmu_reals mb2fmu_each_select(mb2fmu_reals condition, mb2fmu_reals a, mb2fmu_reals b)
{
    mb2fmu_lanes c, x, y, result;
    c.reals = condition;
    x.reals = a;
    y.reals = b;
    for (int i = 0; i < MB2FMU_LANES; i++) {
        result.lane[i] = c.lane[i] != 0.0 ? x.lane[i] : y.lane[i];
    }
    return result.reals;
}

MB2FMU_UNUSED static inline mb2fmu_reals mb2fmu_each_lookup(const mb2fmu_table *table, mb2fmu_reals a)
{
    mb2fmu_lanes x, result;
    x.reals = a;
    for (int i = 0; i < MB2FMU_LANES; i++) {
        result.lane[i] = mb2fmu_lookup(table, x.lane[i]);
    }
    return result.reals;
}

MB2FMU_UNUSED static inline void mb2fmu_each_sincos(mb2fmu_reals x, mb2fmu_reals *sine, mb2fmu_reals *cosine)
{
    mb2fmu_lanes angle, s, c;
    angle.reals = x;
    mb2fmu_sincos_each(MB2FMU_LANES, angle.lane, s.lane, c.lane);
    *sine = s.reals;
    *cosine = c.reals;
}

MB2FMU_UNUSED static inline void mb2fmu_each_sincos_of(int n, const mb2fmu_reals x[], mb2fmu_reals sine[],
                                                       mb2fmu_reals cosine[])
{
    for (int i = 0; i < n; i++) {
        mb2fmu_each_sincos(x[i], &sine[i], &cosine[i]);
    }
}

#endif
