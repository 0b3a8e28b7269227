    // --- symmetric positive semidefinite systems: the solution of least norm -----------------------------------------
    //
    // Eigenvalues by Jacobi's rotations (Golub and Van Loan, sec. 8.5); the `rank` largest count, and fade out below 1e-14
    // of the largest one (Hansen, Rank-Deficient and Discrete Ill-Posed Problems, 1998, ch. 5).

    // a: from its element `first` the lower triangle row by row; becomes n n places to work with, eigenvectors as rows,
    // factors of their eigenvalues. 0, or 1 if an entry is not finite.
    private static int LeastNormFactor(int n, int rank, double[] a, int first)
    {
        var s = new double[n, n];
        var v = new double[n, n];
        double trace = 0.0;
        for (int i = 0; i < n; i++)
        {
            for (int j = 0; j <= i; j++)
            {
                double entry = a[first + i * (i + 1) / 2 + j];
                if (!(Math.Abs(entry) < double.PositiveInfinity))
                {
                    return 1;
                }
                s[i, j] = entry;
                s[j, i] = entry;
            }
            v[i, i] = 1.0;
            trace += s[i, i];
        }
        bool rotated = true;
        for (int sweep = 0; rotated && sweep < 30; sweep++)
        {
            rotated = false;
            for (int p = 0; p < n; p++)
            {
                for (int q = p + 1; q < n; q++)
                {
                    if (Math.Abs(s[p, q]) > 1e-17 * trace)
                    {
                        rotated = true;
                        JacobiRotate(n, p, q, s, v);
                    }
                }
            }
        }
        for (int i = 0; i < n; i++)
        {
            for (int j = 0; j < n; j++)
            {
                a[first + n * n + i * n + j] = v[i, j];
            }
            a[first + 2 * n * n + i] = LeastNormShare(n, rank, s, i);
        }
        return 0;
    }

    // Makes entry (p, q) of s zero; v has its eigenvectors as rows when all are.
    private static void JacobiRotate(int n, int p, int q, double[,] s, double[,] v)
    {
        double entry = s[p, q];
        double theta = (s[q, q] - s[p, p]) / (2.0 * entry);
        double t = 1.0 / (Math.Abs(theta) + Math.Sqrt(theta * theta + 1.0));
        if (theta < 0.0)
        {
            t = -t;
        }
        double cosine = 1.0 / Math.Sqrt(t * t + 1.0);
        double sine = t * cosine;
        s[p, p] = s[p, p] - t * entry;
        s[q, q] = s[q, q] + t * entry;
        s[p, q] = 0.0;
        s[q, p] = 0.0;
        for (int k = 0; k < n; k++)
        {
            double one, other;
            if (k != p && k != q)
            {
                one = s[p, k];
                other = s[q, k];
                s[p, k] = cosine * one - sine * other;
                s[q, k] = sine * one + cosine * other;
                s[k, p] = s[p, k];
                s[k, q] = s[q, k];
            }
            one = v[p, k];
            other = v[q, k];
            v[p, k] = cosine * one - sine * other;
            v[q, k] = sine * one + cosine * other;
        }
    }

    // What eigenvalue i counts for: nothing if it is none of the `rank` largest.
    private static double LeastNormShare(int n, int rank, double[,] s, int i)
    {
        double value = s[i, i], greatest = 0.0;
        int before = 0;
        for (int j = 0; j < n; j++)
        {
            double other = s[j, j];
            greatest = Math.Max(greatest, other);
            if (other > value || (other == value && j < i))
            {
                before++;
            }
        }
        if (before >= rank || !(value > 0.0))
        {
            return 0.0;
        }
        double shifted = value + 1e-14 * greatest;
        double part = value / shifted;
        return part / shifted * (2.0 - part * part);
    }

    private static void LeastNormSolve(int n, double[] a, int first, double[] x, int start)
    {
        var total = new double[n];
        for (int i = 0; i < n; i++)
        {
            int vector = first + n * n + i * n;
            double along = 0.0;
            for (int j = 0; j < n; j++)
            {
                along += a[vector + j] * x[start + j];
            }
            along *= a[first + 2 * n * n + i];
            for (int j = 0; j < n; j++)
            {
                total[j] += a[vector + j] * along;
            }
        }
        Array.Copy(total, 0, x, start, n);
    }
