# --- scalar functions: not a number outside of their domain, where Julia's own throw --------------------------------

function not_a_number(a)
    return oftype(a, NaN)
end

function real_sqrt(a)
    return a >= 0.0 ? sqrt(a) : not_a_number(a)
end

function real_log(a)
    return a >= 0.0 ? log(a) : not_a_number(a)
end

function real_sin(a)
    return isfinite(a) ? sin(a) : not_a_number(a)
end

function real_cos(a)
    return isfinite(a) ? cos(a) : not_a_number(a)
end

function real_tan(a)
    return isfinite(a) ? tan(a) : not_a_number(a)
end

function real_asin(a)
    return abs(a) <= 1.0 ? asin(a) : not_a_number(a)
end

function real_acos(a)
    return abs(a) <= 1.0 ? acos(a) : not_a_number(a)
end

function real_acosh(a)
    return a >= 1.0 ? acosh(a) : not_a_number(a)
end

function real_atanh(a)
    return abs(a) <= 1.0 ? atanh(a) : not_a_number(a)
end

function power(a, b)
    return a >= 0.0 || floor(b) == b ? a^b : not_a_number(a)
end

function smaller(a, b)
    return a < b || isnan(a) ? a : b
end

function larger(a, b)
    return a > b || isnan(a) ? a : b
end

# -1, 1, or the argument itself if that is zero or not a number.
function signum(a)
    return a > 0.0 ? one(a) : (a < 0.0 ? -one(a) : a)
end

function is_less(a, b)
    return a < b ? 1.0 : 0.0
end

function is_less_equal(a, b)
    return a <= b ? 1.0 : 0.0
end

function is_equal(a, b)
    return a == b ? 1.0 : 0.0
end

function logical_not(a)
    return 1.0 - a
end

function logical_and(a, b)
    return a * b
end

function choose(condition, a, b)
    return condition != 0.0 ? a : b
end

# The largest magnitude; infinity if one is not finite.
function largest(a)
    size = zero(eltype(a))
    for i in 1:length(a)
        if !(abs(a[i]) < Inf)
            return oftype(size, Inf)
        end
        size = max(size, abs(a[i]))
    end
    return size
end
