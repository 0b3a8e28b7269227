    // --- Newton's method: y with F(y, theta) = 0 by damped steps along Newton's path ---------------------------------
    //
    // A step is too long if the next one, or the one half-way, is far from what the path leaves of it: it may have passed
    // a singular position; so may one after which the determinant of F's slopes, by differences, has another sign than at
    // the guess. Small steps alone do not show that F vanishes, where its rows may contradict each other (hasLimits): then
    // the last n values of theta say how much of each row may be left over. Deuflhard, Newton Methods for Nonlinear
    // Problems, 2004, sec. 3.1 and 3.3.

    // F, then the step, at x; 0, or another number where there are none.
    private delegate int NewtonBody(double[] x, double[] p, double[] y);

    // y: from its element `start` the guess; becomes the solution. 0; 1: no solution, 2: the rows contradict each other.
    private static int Newton(
        int n, NewtonBody body, int thetaCount, double[] thetas, int thetaFirst, bool hasLimits, double[] y, int start)
    {
        var theta = new double[thetaCount];
        Array.Copy(thetas, thetaFirst, theta, 0, thetaCount);
        var run = new NewtonRun(n, body, theta, hasLimits);
        var found = new double[n];
        Array.Copy(y, start, found, 0, n);
        int failed = run.Iterate(found);
        Array.Copy(found, 0, y, start, n);
        return failed;
    }

    private sealed class NewtonRun
    {
        private readonly int n;
        private readonly NewtonBody body;
        private readonly double[] theta, guess;
        private readonly bool hasLimits;
        private double[] values, found;  // F, then the step
        private double residual;
        private int side = 2;  // of the guess; 2: not looked at yet

        public NewtonRun(int n, NewtonBody body, double[] theta, bool hasLimits)
        {
            this.n = n;
            this.body = body;
            this.theta = theta;
            this.hasLimits = hasLimits;
            guess = new double[n];
            values = new double[2 * n];
            found = new double[2 * n];
        }

        public int Iterate(double[] y)
        {
            Array.Copy(y, guess, n);
            double[] way = new double[n], tried = new double[n];
            residual = Evaluate(y, values);
            for (int iteration = 0; iteration < 60 && residual < double.PositiveInfinity; iteration++)
            {
                double length = Largest(n, values, n);
                if (length <= 1e-13 || length * (Largest(n, way, 0) + length) <= 1e-16)
                {
                    if (hasLimits && IsOpen(length))
                    {
                        return 2;
                    }
                    for (int i = 0; i < n; i++)
                    {
                        y[i] += values[n + i];
                    }
                    return 0;
                }
                if (!Step(y, tried))
                {
                    break;
                }
                for (int i = 0; i < n; i++)
                {
                    way[i] += tried[i] - y[i];
                    y[i] = tried[i];
                }
                double[] before = values;
                values = found;
                found = before;
            }
            bool isClosed = hasLimits ? residual < double.PositiveInfinity && !IsOpen(0.0) : residual <= 1e-10;
            return isClosed ? 0 : 1;
        }

        // F and the step at a point; the largest residual, infinity where there is none.
        private double Evaluate(double[] at, double[] into)
        {
            return body(at, theta, into) == 0 ? Largest(n, into, 0) : double.PositiveInfinity;
        }

        // Whether more of a row is left over than may be, before a last step of some length.
        private bool IsOpen(double length)
        {
            for (int i = 0; i < n; i++)
            {
                if (Math.Abs(values[i]) > theta[theta.Length - n + i] + 2.0 * n * length)
                {
                    return true;
                }
            }
            return false;
        }

        // A part of the step after which less is left over, stored in `tried` and `found`; whether there is one.
        private bool Step(double[] y, double[] tried)
        {
            double part = 1.0;
            for (int halving = 0; halving < 12; halving++)
            {
                Advance(y, part, tried);
                double left = Evaluate(tried, found);
                if (left <= Math.Max(0.9, 1.0 - 0.5 * part) * residual
                    && (residual <= 1e-10 || Stays(y, part, tried)))
                {
                    residual = left;
                    return true;
                }
                part *= 0.5;
            }
            return false;
        }

        private void Advance(double[] y, double part, double[] to)
        {
            for (int i = 0; i < n; i++)
            {
                to[i] = y[i] + part * values[n + i];
            }
        }

        // How far the step after a part of one is from what Newton's path leaves of it.
        private double Bend(double part, double[] after)
        {
            var bend = new double[n];
            for (int i = 0; i < n; i++)
            {
                bend[i] = after[n + i] - (1.0 - part) * values[n + i];
            }
            return Largest(n, bend, 0);
        }

        // Whether a part of a step stays on the path, as the steps after it and half-way tell, and the determinant.
        private bool Stays(double[] y, double part, double[] tried)
        {
            double length = Largest(n, values, n);
            bool isFar = part * length > 0.2;
            double bend = Bend(part, found);
            if (bend > 0.03125 * length || isFar)
            {
                double[] middle = new double[n], between = new double[2 * n];
                Advance(y, 0.5 * part, middle);
                if (!(Evaluate(middle, between) < double.PositiveInfinity))
                {
                    return false;
                }
                bend = Math.Max(bend, Bend(0.5 * part, between));
            }
            if (!(bend <= (isFar ? 0.03125 : 0.55) * length))
            {
                return false;
            }
            return !(residual > 0.05 || bend > 0.1 * length) || !IsBeyond(tried, 1e-6 * length);
        }

        // Whether a singular position lies between the guess and a point.
        private bool IsBeyond(double[] tried, double nudge)
        {
            if (side == 2)
            {
                side = Side(guess, nudge);
            }
            return side * Side(tried, nudge) < 0;
        }

        // On which side of singular positions a point is: the sign of the determinant of F's slopes; 0 where round-off
        // decides it.
        private int Side(double[] point, double nudge)
        {
            double[] at = (double[])point.Clone(), first = new double[2 * n], moved = new double[2 * n];
            var slopes = new double[n, n];
            if (!(Evaluate(at, first) < double.PositiveInfinity))
            {
                return 0;
            }
            for (int j = 0; j < n; j++)
            {
                at[j] = point[j] + nudge;
                if (!(Evaluate(at, moved) < double.PositiveInfinity))
                {
                    return 0;
                }
                at[j] = point[j];
                for (int i = 0; i < n; i++)
                {
                    slopes[j, i] = moved[i] - first[i];
                }
            }
            return Orientation(n, slopes);
        }

        // The sign of the determinant of a matrix, by Givens' rotations in place; 0 where round-off decides it.
        private static int Orientation(int n, double[,] a)
        {
            int sign = 1;
            for (int k = 0; k < n; k++)
            {
                double column = 0.0;
                for (int i = 0; i < n; i++)
                {
                    double x = a[k, k], y = a[i, k], r = Math.Sqrt(x * x + y * y);
                    column += y * y;
                    for (int j = k; i > k && r > 0.0 && j < n; j++)
                    {
                        double above = a[k, j], below = a[i, j];
                        a[k, j] = x / r * above + y / r * below;
                        a[i, j] = x / r * below - y / r * above;
                    }
                }
                if (!(Math.Abs(a[k, k]) > 1e-4 * Math.Sqrt(column)))
                {
                    return 0;
                }
                sign = a[k, k] < 0.0 ? -sign : sign;
            }
            return sign;
        }
    }
