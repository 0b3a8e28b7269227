    // --- error function: polynomials of the FMU's C code -------------------------------------------------------------

    private static readonly double[] ErfCoefficients =
    {
        0.1283791670955126, -0.37612638903183754, 0.11283791670955119, -0.026866170645129733, 0.005223977625422086,
        -0.0008548327021853204, 0.00012055332899358123, -1.4925647465122388e-05, 1.6462043407868645e-06,
        -1.6364614422318199e-07, 1.4792145759315133e-08, -1.2163041953483107e-09, 8.70378996786844e-11,
        -4.222896391151973e-12,
    };

    // erfc(x) exp(x^2) x in (x - 3) / (x + 3), 1 <= x <= 6
    private static readonly double[] ErfcCoefficients =
    {
        0.5370034535441699, 0.09530622695922802, -0.14658304803289104, 0.13988054760176993, -0.095469750306626,
        0.0463502633312951, -0.014019825626262665, 0.0009108226889851839, 0.0012428761617204877,
        -0.00041254378879762815, -8.460825214501514e-05, 6.897994121569905e-05, 6.464341458809584e-06,
        -1.1110191818037925e-05, -9.949914373802246e-07, 1.880655896512829e-06, 3.0637400052333276e-07,
        -3.048325876397116e-07, -1.0663121472597952e-07, 5.240955552551746e-09,
    };

    private static double Erf(double x)
    {
        double a = Math.Abs(x);
        if (!(a >= 1.0))
        {
            return x + x * Polynomial(ErfCoefficients, x * x);
        }
        if (a >= 6.0)
        {
            return Sign(x);
        }
        return Sign(x) * (1.0 - Math.Exp(-a * a) * Polynomial(ErfcCoefficients, (a - 3.0) / (a + 3.0)) / a);
    }

    private static double Polynomial(double[] coefficients, double x)
    {
        double sum = 0.0;
        for (int k = coefficients.Length - 1; k >= 0; k--)
        {
            sum = sum * x + coefficients[k];
        }
        return sum;
    }
