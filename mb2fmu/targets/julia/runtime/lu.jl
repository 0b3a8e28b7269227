# --- square systems: P A = L U with row pivoting, Golub and Van Loan, sec. 3.4 ----------------------------------------

# a: the matrix row by row, then n places for the row with which each was exchanged; becomes L and U. 0, or 1 if the matrix
# is singular.
function lu_factor(n, a)
    for k in 1:n
        best = k
        for i in (k + 1):n
            if abs(a[(i - 1) * n + k]) > abs(a[(best - 1) * n + k])
                best = i
            end
        end
        a[n * n + k] = best
        if best != k
            for j in 1:n
                kept = a[(k - 1) * n + j]
                a[(k - 1) * n + j] = a[(best - 1) * n + j]
                a[(best - 1) * n + j] = kept
            end
        end
        pivot = a[(k - 1) * n + k]
        if !(abs(pivot) > 0.0 && abs(pivot) < Inf)
            return 1
        end
        for i in (k + 1):n
            factor = a[(i - 1) * n + k] / pivot
            a[(i - 1) * n + k] = factor
            for j in (k + 1):n
                a[(i - 1) * n + j] -= factor * a[(k - 1) * n + j]
            end
        end
    end
    return 0
end

function lu_solve(n, a, x)
    for i in 1:n
        other = i
        for k in i:n  # a comparison: elements may be dual numbers, which are no indices
            if a[n * n + i] == k
                other = k
            end
        end
        kept = x[i]
        x[i] = x[other]
        x[other] = kept
    end
    for i in 2:n
        for j in 1:(i - 1)
            x[i] -= a[(i - 1) * n + j] * x[j]
        end
    end
    for i in n:-1:1
        for j in (i + 1):n
            x[i] -= a[(i - 1) * n + j] * x[j]
        end
        x[i] /= a[(i - 1) * n + i]
    end
end
