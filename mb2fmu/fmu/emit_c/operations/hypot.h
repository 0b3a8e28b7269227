/* hypot.h: the length of the vector (x, y), with the same bits on every platform and processor.
 *
 * Measured error below 1 unit in the last place; overflow and underflow only where the length itself does. Special
 * values are those of C99, Annex F: infinity if one operand is infinite, even if the other is NaN.
 */
#ifndef MB2FMU_HYPOT_H
#define MB2FMU_HYPOT_H

#include "elementary.h"

MB2FMU_UNUSED static double mb2fmu_hypot(double x, double y)
{
    double a = fabs(x), b = fabs(y);
    double down = 1.0, up = 1.0; /* powers of two: products with them are exact */
    if (a == MB2FMU_INFINITY || b == MB2FMU_INFINITY) {
        return MB2FMU_INFINITY;
    }
    if (a != a || b != b) {
        return a + b;
    }
    if (a > 1e150 || b > 1e150) {
        down = 1.0 / 1.3407807929942597e154; /* 2^-512 */
        up = 1.3407807929942597e154;
    } else if (a < 1e-140 && b < 1e-140) {
        down = 1.3407807929942597e154;
        up = 1.0 / 1.3407807929942597e154;
    }
    a *= down;
    b *= down;
    return sqrt(a * a + b * b) * up;
}

#endif
