# --- symmetric positive semidefinite systems: the solution of least norm ----------------------------------------------
#
# Eigenvalues by Jacobi's rotations (Golub and Van Loan, sec. 8.5); the `rank` largest count, and fade out below 1e-14 of
# the largest one (Hansen, Rank-Deficient and Discrete Ill-Posed Problems, 1998, ch. 5).

# a: the lower triangle row by row; becomes n n places to work with, eigenvectors as rows, factors of their eigenvalues. 0,
# or 1 if an entry is not finite.
function least_norm_factor(n, rank, a)
    s = zeros(eltype(a), n, n)
    v = zeros(eltype(a), n, n)
    trace = zero(eltype(a))
    for i in 1:n
        for j in 1:i
            entry = a[div(i * (i - 1), 2) + j]
            if !(abs(entry) < Inf)
                return 1
            end
            s[i, j] = entry
            s[j, i] = entry
        end
        v[i, i] = 1.0
        trace += s[i, i]
    end
    rotated = true
    sweep = 0
    while rotated && sweep < 30
        rotated = false
        sweep += 1
        for p in 1:n
            for q in (p + 1):n
                if abs(s[p, q]) > 1e-17 * trace
                    rotated = true
                    jacobi_rotate(n, p, q, s, v)
                end
            end
        end
    end
    for i in 1:n
        for j in 1:n
            a[n * n + (i - 1) * n + j] = v[i, j]
        end
        a[2 * n * n + i] = least_norm_share(n, rank, s, i)
    end
    return 0
end

# Makes entry (p, q) of s zero; v has its eigenvectors as rows when all are.
function jacobi_rotate(n, p, q, s, v)
    entry = s[p, q]
    theta = (s[q, q] - s[p, p]) / (2.0 * entry)
    t = 1.0 / (abs(theta) + sqrt(theta * theta + 1.0))
    if theta < 0.0
        t = -t
    end
    cosine = 1.0 / sqrt(t * t + 1.0)
    sine = t * cosine
    s[p, p] = s[p, p] - t * entry
    s[q, q] = s[q, q] + t * entry
    s[p, q] = 0.0
    s[q, p] = 0.0
    for k in 1:n
        if k != p && k != q
            one_of_them = s[p, k]
            other = s[q, k]
            s[p, k] = cosine * one_of_them - sine * other
            s[q, k] = sine * one_of_them + cosine * other
            s[k, p] = s[p, k]
            s[k, q] = s[q, k]
        end
        one_of_them = v[p, k]
        other = v[q, k]
        v[p, k] = cosine * one_of_them - sine * other
        v[q, k] = sine * one_of_them + cosine * other
    end
end

# What eigenvalue i counts for: nothing if it is none of the `rank` largest.
function least_norm_share(n, rank, s, i)
    value = s[i, i]
    greatest = zero(value)
    before = 0
    for j in 1:n
        other = s[j, j]
        greatest = max(greatest, other)
        if other > value || (other == value && j < i)
            before += 1
        end
    end
    if before >= rank || !(value > 0.0)
        return zero(value)
    end
    shifted = value + 1e-14 * greatest
    part = value / shifted
    return part / shifted * (2.0 - part * part)
end

function least_norm_solve(n, a, x)
    total = zeros(eltype(x), n)
    for i in 1:n
        along = zero(eltype(x))
        for j in 1:n
            along += a[n * n + (i - 1) * n + j] * x[j]
        end
        along *= a[2 * n * n + i]
        for j in 1:n
            total[j] += a[n * n + (i - 1) * n + j] * along
        end
    end
    for j in 1:n
        x[j] = total[j]
    end
end
