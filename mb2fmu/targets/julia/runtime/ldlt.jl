# --- symmetric positive definite systems: L D L^T, Golub and Van Loan, Matrix Computations, 4th ed. 2013, sec. 4.1 ----

# a: the lower triangle row by row; becomes L, whose diagonal of ones is not stored, with D on the diagonal. 0, or 1 if the
# matrix is not positive definite.
function ldlt_factor(n, a)
    for i in 1:n
        row = div(i * (i - 1), 2)
        for j in 1:(i - 1)
            above = div(j * (j - 1), 2)
            value = a[row + j]
            for k in 1:(j - 1)
                value -= a[row + k] * a[above + k]
            end
            a[row + j] = value  # l_ij d_j until the row is done
        end
        pivot = a[row + i]
        for j in 1:(i - 1)
            scaled = a[row + j] / a[div(j * (j + 1), 2)]
            pivot -= scaled * a[row + j]
            a[row + j] = scaled
        end
        if !(pivot > 0.0 && pivot < Inf)
            return 1
        end
        a[row + i] = pivot
    end
    return 0
end

function ldlt_solve(n, a, x)
    for i in 1:n
        row = div(i * (i - 1), 2)
        for j in 1:(i - 1)
            x[i] -= a[row + j] * x[j]
        end
    end
    for i in 1:n
        x[i] /= a[div(i * (i + 1), 2)]
    end
    for i in n:-1:2
        row = div(i * (i - 1), 2)
        for j in 1:(i - 1)
            x[j] -= a[row + j] * x[i]
        end
    end
end
