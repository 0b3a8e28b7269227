/* batch.h: values as vectors, one lane per instance, for code that evaluates many instances at once
 * (fmu/emit_c/batch_library_printing.py).
 *
 * Why it exists: parameter studies evaluate the same equations for many states and parameters. Side by side in vector
 * registers they cost a fraction of what they cost one after the other, and every lane has the bits it has alone: only
 * operations that IEEE 754 defines, and the same elementary functions. Where lanes differ in what they would branch to,
 * all branches are evaluated and the lanes choose. What gives up for one instance (a singular matrix) marks its lane
 * in `lost` and goes on for the others. To be included after elementary.c and lookup.c.
 */
#ifndef MB2FMU_BATCH_H
#define MB2FMU_BATCH_H

typedef union {
    mb2fmu_reals reals;
    double lane[MB2FMU_LANES];
} mb2fmu_lanes;

typedef union {
    mb2fmu_words words;
    uint64_t lane[MB2FMU_LANES];
} mb2fmu_word_lanes;

MB2FMU_UNUSED static inline mb2fmu_reals mb2fmu_all(double value)
{
    mb2fmu_lanes all;
    for (int i = 0; i < MB2FMU_LANES; i++) {
        all.lane[i] = value;
    }
    return all.reals;
}

/* --- marked lanes: all bits of a word, or none -------------------------------------------------------------------- */

/* The lanes in which a comparison of vectors holds. */
#if MB2FMU_LANES > 1
#define MB2FMU_WHERE(comparison) ((mb2fmu_words)(comparison))
#else
#define MB2FMU_WHERE(comparison) ((comparison) ? ~(uint64_t)0 : (uint64_t)0)
#endif

MB2FMU_UNUSED static inline mb2fmu_words mb2fmu_nowhere(void)
{
    return mb2fmu_words_of(mb2fmu_all(0.0));
}

MB2FMU_UNUSED static inline int mb2fmu_anywhere(mb2fmu_words marked)
{
    mb2fmu_word_lanes all;
    uint64_t any = 0;
    all.words = marked;
    for (int i = 0; i < MB2FMU_LANES; i++) {
        any |= all.lane[i];
    }
    return any != 0;
}

/* a in the lanes that are marked, b in the others */
MB2FMU_UNUSED static inline mb2fmu_reals mb2fmu_choose(mb2fmu_words marked, mb2fmu_reals a, mb2fmu_reals b)
{
    return mb2fmu_reals_of((mb2fmu_words_of(a) & marked) | (mb2fmu_words_of(b) & ~marked));
}

MB2FMU_UNUSED static inline mb2fmu_reals mb2fmu_each_abs(mb2fmu_reals x)
{
    return mb2fmu_reals_of(mb2fmu_words_of(x) & (mb2fmu_words_of(mb2fmu_all(0.0)) + 0x7fffffffffffffffu));
}

MB2FMU_UNUSED static inline mb2fmu_words mb2fmu_finite(mb2fmu_reals x)
{
    return MB2FMU_WHERE(mb2fmu_each_abs(x) < mb2fmu_all(MB2FMU_INFINITY));
}

/* --- operations --------------------------------------------------------------------------------------------------- */

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

#if MB2FMU_LANES > 1 && defined(__has_builtin)
#if __has_builtin(__builtin_elementwise_sqrt)
#define MB2FMU_SQRT_OF_VECTORS
#endif
#endif
#ifdef MB2FMU_SQRT_OF_VECTORS
MB2FMU_UNUSED static inline mb2fmu_reals mb2fmu_each_sqrt(mb2fmu_reals x)
{
    return __builtin_elementwise_sqrt(x);
}
#else
MB2FMU_EACH_1(sqrt, sqrt(x.lane[i]))
#endif
/* All others are defined beside the equations that use them, from the table of operations. */

/* The value itself; marks the lanes in which it may not be divided by: a pivot that is not positive, a divisor that is
 * zero, or either not finite. */
MB2FMU_UNUSED static inline mb2fmu_reals mb2fmu_each_positive(mb2fmu_reals value, mb2fmu_words *lost)
{
    *lost |= ~(MB2FMU_WHERE(value > mb2fmu_all(0.0)) & mb2fmu_finite(value));
    return value;
}

MB2FMU_UNUSED static inline mb2fmu_reals mb2fmu_each_divisor(mb2fmu_reals value, mb2fmu_words *lost)
{
    *lost |= ~(MB2FMU_WHERE(mb2fmu_each_abs(value) > mb2fmu_all(0.0)) & mb2fmu_finite(value));
    return value;
}

MB2FMU_UNUSED static inline mb2fmu_reals mb2fmu_each_select(mb2fmu_reals condition, mb2fmu_reals a, mb2fmu_reals b)
{
    return mb2fmu_choose(MB2FMU_WHERE(condition != mb2fmu_all(0.0)), a, b);
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

/* As if angles were small; lanes in which they are not are evaluated again, each alone. */
MB2FMU_UNUSED static inline void mb2fmu_each_sincos(mb2fmu_reals x, mb2fmu_reals *sine, mb2fmu_reals *cosine)
{
    const mb2fmu_angles angles = mb2fmu_reduce_small(x);
    const mb2fmu_words large = ~MB2FMU_WHERE(mb2fmu_each_abs(x) <= mb2fmu_all(MB2FMU_ANGLE_LIMIT));
    mb2fmu_sincos_reduced(&angles, sine, cosine);
    if (mb2fmu_anywhere(large)) {
        mb2fmu_lanes angle, s, c;
        angle.reals = x;
        s.reals = *sine;
        c.reals = *cosine;
        mb2fmu_sincos_of_large(MB2FMU_LANES, angle.lane, s.lane, c.lane);
        *sine = s.reals;
        *cosine = c.reals;
    }
}

MB2FMU_UNUSED static inline void mb2fmu_each_sincos_of(int n, const mb2fmu_reals x[], mb2fmu_reals sine[],
                                                       mb2fmu_reals cosine[])
{
    for (int i = 0; i < n; i++) {
        mb2fmu_each_sincos(x[i], &sine[i], &cosine[i]);
    }
}

#endif
