    // --- symmetric positive definite systems: L D L^T, Golub and Van Loan, Matrix Computations, 4th ed. 2013, sec. 4.1 -

    // a: from its element `first` the lower triangle row by row; becomes L, whose diagonal of ones is not stored, with D
    // on the diagonal. 0, or 1 if the matrix is not positive definite.
    private static int LdltFactor(int n, double[] a, int first)
    {
        for (int i = 0; i < n; i++)
        {
            int row = first + i * (i + 1) / 2;
            for (int j = 0; j < i; j++)
            {
                int above = first + j * (j + 1) / 2;
                double value = a[row + j];
                for (int k = 0; k < j; k++)
                {
                    value -= a[row + k] * a[above + k];
                }
                a[row + j] = value;  // l_ij d_j until the row is done
            }
            double pivot = a[row + i];
            for (int j = 0; j < i; j++)
            {
                double scaled = a[row + j] / a[first + j * (j + 3) / 2];
                pivot -= scaled * a[row + j];
                a[row + j] = scaled;
            }
            if (!(pivot > 0.0 && pivot < double.PositiveInfinity))
            {
                return 1;
            }
            a[row + i] = pivot;
        }
        return 0;
    }

    // x: from its element `start` the right-hand side; becomes the solution.
    private static void LdltSolve(int n, double[] a, int first, double[] x, int start)
    {
        for (int i = 0; i < n; i++)
        {
            int row = first + i * (i + 1) / 2;
            for (int j = 0; j < i; j++)
            {
                x[start + i] -= a[row + j] * x[start + j];
            }
        }
        for (int i = 0; i < n; i++)
        {
            x[start + i] /= a[first + i * (i + 3) / 2];
        }
        for (int i = n - 1; i > 0; i--)
        {
            int row = first + i * (i + 1) / 2;
            for (int j = 0; j < i; j++)
            {
                x[start + j] -= a[row + j] * x[start + i];
            }
        }
    }
