    // --- square systems: P A = L U with row pivoting, Golub and Van Loan, sec. 3.4 -----------------------------------

    // a: from its element `first` the matrix row by row, then n places for the row with which each was exchanged; becomes
    // L and U. 0, or 1 if the matrix is singular.
    private static int LuFactor(int n, double[] a, int first)
    {
        for (int k = 0; k < n; k++)
        {
            int best = k;
            for (int i = k + 1; i < n; i++)
            {
                if (Math.Abs(a[first + i * n + k]) > Math.Abs(a[first + best * n + k]))
                {
                    best = i;
                }
            }
            a[first + n * n + k] = best;
            for (int j = 0; j < n && best != k; j++)
            {
                double kept = a[first + k * n + j];
                a[first + k * n + j] = a[first + best * n + j];
                a[first + best * n + j] = kept;
            }
            double pivot = a[first + k * n + k];
            if (!(Math.Abs(pivot) > 0.0 && Math.Abs(pivot) < double.PositiveInfinity))
            {
                return 1;
            }
            for (int i = k + 1; i < n; i++)
            {
                double factor = a[first + i * n + k] / pivot;
                a[first + i * n + k] = factor;
                for (int j = k + 1; j < n; j++)
                {
                    a[first + i * n + j] -= factor * a[first + k * n + j];
                }
            }
        }
        return 0;
    }

    private static void LuSolve(int n, double[] a, int first, double[] x, int start)
    {
        for (int i = 0; i < n; i++)
        {
            int other = (int)a[first + n * n + i];
            double kept = x[start + i];
            x[start + i] = x[start + other];
            x[start + other] = kept;
        }
        for (int i = 1; i < n; i++)
        {
            for (int j = 0; j < i; j++)
            {
                x[start + i] -= a[first + i * n + j] * x[start + j];
            }
        }
        for (int i = n - 1; i >= 0; i--)
        {
            for (int j = i + 1; j < n; j++)
            {
                x[start + i] -= a[first + i * n + j] * x[start + j];
            }
            x[start + i] /= a[first + i * n + i];
        }
    }
