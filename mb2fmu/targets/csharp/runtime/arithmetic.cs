    // --- scalar functions --------------------------------------------------------------------------------------------

    private static double Minimum(double a, double b) => a < b || double.IsNaN(a) ? a : b;

    private static double Maximum(double a, double b) => a > b || double.IsNaN(a) ? a : b;

    // -1, 1, or the argument itself if that is zero or not a number.
    private static double Sign(double a) => a > 0.0 ? 1.0 : (a < 0.0 ? -1.0 : a);

    private static double Less(double a, double b) => a < b ? 1.0 : 0.0;

    private static double LessEqual(double a, double b) => a <= b ? 1.0 : 0.0;

    private static double Equal(double a, double b) => a == b ? 1.0 : 0.0;

    private static double LogicalNot(double a) => 1.0 - a;

    private static double LogicalAnd(double a, double b) => a * b;

    private static double LogicalOr(double a, double b) => Maximum(a, b);

    private static double Select(double condition, double a, double b) => condition != 0.0 ? a : b;

    // The length of the vector (x, y); over- and underflow only where the length itself does.
    private static double Hypot(double x, double y)
    {
        double a = Math.Abs(x), b = Math.Abs(y);
        if (double.IsInfinity(a) || double.IsInfinity(b))
        {
            return double.PositiveInfinity;
        }
        double scale = a > 1e150 || b > 1e150 ? 1.3407807929942597e154 : (a < 1e-140 && b < 1e-140 ? 1.0 / 1.3407807929942597e154 : 1.0);
        a /= scale;  // powers of two: exact
        b /= scale;
        return Math.Sqrt(a * a + b * b) * scale;
    }

    // The largest magnitude of n numbers; infinity if one is not finite.
    private static double Largest(int n, double[] a, int first)
    {
        double largest = 0.0;
        for (int i = first; i < first + n; i++)
        {
            double size = Math.Abs(a[i]);
            if (!(size < double.PositiveInfinity))
            {
                return double.PositiveInfinity;
            }
            largest = Math.Max(largest, size);
        }
        return largest;
    }
