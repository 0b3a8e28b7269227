    // --- lookup tables -----------------------------------------------------------------------------------------------

    // A piecewise polynomial: of each piece the coefficients, the highest power first; outside the outermost pieces go on.
    private static double Lookup(double[] breaks, double[] coefficients, double x)
    {
        int low = 0, high = breaks.Length - 2;
        int terms = coefficients.Length / (high + 1);
        while (low < high)
        {
            int middle = (low + high + 1) / 2;
            if (breaks[middle] <= x)
            {
                low = middle;
            }
            else
            {
                high = middle - 1;
            }
        }
        double h = x - breaks[low], total = 0.0;
        for (int k = 0; k < terms; k++)
        {
            total = total * h + coefficients[low * terms + k];
        }
        return total;
    }
