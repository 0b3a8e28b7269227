# --- Newton's method: y with F(y, theta) = 0 by damped steps along Newton's path --------------------------------------
#
# A step is too long if the next one, or the one half-way, is far from what the path leaves of it: it may have passed a
# singular position; so may one after which the determinant of F's slopes, by differences, has another sign than at the
# guess. Small steps alone do not show that F vanishes, where its rows may contradict each other (has_limits): then the
# last n of the count values of theta say how much of each row may be left over. 0; 1: no solution, 2: the rows contradict each other.
# Deuflhard, Newton Methods for Nonlinear Problems, 2004, sec. 3.1 and 3.3.

function newton(n, body, count, theta, has_limits, y)
    guess = copy(y)
    values = zeros(eltype(y), 2 * n)
    found = zeros(eltype(y), 2 * n)
    way = zeros(eltype(y), n)
    tried = zeros(eltype(y), n)
    side = 2  # of the guess; 2: not looked at yet
    residual = newton_values(n, body, theta, y, values)
    iteration = 0
    accepted = true
    while accepted && iteration < 60 && residual < Inf
        iteration += 1
        length_of_step = largest(view(values, (n + 1):(2 * n)))
        if length_of_step <= 1e-13 || length_of_step * (largest(way) + length_of_step) <= 1e-16
            if has_limits && newton_is_open(n, count, theta, values, length_of_step)
                return 2
            end
            for i in 1:n
                y[i] += values[n + i]
            end
            return 0
        end
        part = 1.0
        halving = 0
        accepted = false
        while !accepted && halving < 12
            halving += 1
            for i in 1:n
                tried[i] = y[i] + part * values[n + i]
            end
            left = newton_values(n, body, theta, tried, found)
            accepted = left <= max(0.9, 1.0 - 0.5 * part) * residual
            if accepted && residual > 1e-10
                accepted, side = newton_stays(n, body, theta, guess, y, values, residual, part, tried, found, side)
            end
            if accepted
                residual = left
                for i in 1:n
                    way[i] += tried[i] - y[i]
                    y[i] = tried[i]
                end
                for i in 1:(2 * n)
                    values[i] = found[i]
                end
            end
            part *= 0.5
        end
    end
    if has_limits
        return residual < Inf && !newton_is_open(n, count, theta, values, 0.0) ? 0 : 1
    end
    return residual <= 1e-10 ? 0 : 1
end

# F and the step at y; returns the largest residual, infinity where there is none.
function newton_values(n, body, theta, y, values)
    if body(y, theta, values) != 0
        return oftype(values[1], Inf)
    end
    return largest(view(values, 1:n))
end

# Whether more of a row is left over than may be, before a last step of some length.
function newton_is_open(n, count, theta, values, length_of_step)
    for i in 1:n
        if abs(values[i]) > theta[count - n + i] + 2.0 * n * length_of_step
            return true
        end
    end
    return false
end

# How far the step after a part of one is from what Newton's path leaves of it.
function newton_bend(n, part, values, after)
    bend = zeros(eltype(values), n)
    for i in 1:n
        bend[i] = after[n + i] - (1.0 - part) * values[n + i]
    end
    return largest(bend)
end

# Whether a part of a step stays on the path, as the steps after it and half-way tell, and the determinant; and the side of
# the guess.
function newton_stays(n, body, theta, guess, y, values, residual, part, tried, found, side)
    length_of_step = largest(view(values, (n + 1):(2 * n)))
    is_far = part * length_of_step > 0.2
    bend = newton_bend(n, part, values, found)
    if bend > 0.03125 * length_of_step || is_far
        middle = copy(y)
        for i in 1:n
            middle[i] = y[i] + 0.5 * part * values[n + i]
        end
        between = zeros(eltype(y), 2 * n)
        if !(newton_values(n, body, theta, middle, between) < Inf)
            return (false, side)
        end
        bend = max(bend, newton_bend(n, 0.5 * part, values, between))
    end
    if !(bend <= (is_far ? 0.03125 : 0.55) * length_of_step)
        return (false, side)
    end
    if residual > 0.05 || bend > 0.1 * length_of_step
        if side == 2
            side = newton_side(n, body, theta, guess, 1e-6 * length_of_step)
        end
        return (side * newton_side(n, body, theta, tried, 1e-6 * length_of_step) >= 0, side)
    end
    return (true, side)
end

# On which side of singular positions a point is: the sign of the determinant of F's slopes; 0 where round-off decides it.
function newton_side(n, body, theta, point, nudge)
    at = copy(point)
    first_values = zeros(eltype(point), 2 * n)
    moved = zeros(eltype(point), 2 * n)
    slopes = zeros(eltype(point), n, n)
    if !(newton_values(n, body, theta, at, first_values) < Inf)
        return 0
    end
    for j in 1:n
        at[j] = point[j] + nudge
        if !(newton_values(n, body, theta, at, moved) < Inf)
            return 0
        end
        at[j] = point[j]
        for i in 1:n
            slopes[j, i] = moved[i] - first_values[i]
        end
    end
    return orientation(n, slopes)
end

# The sign of the determinant of a matrix, by Givens' rotations in place; 0 where round-off decides it.
function orientation(n, a)
    sign_of_determinant = 1
    for k in 1:n
        column = zero(eltype(a))
        for i in 1:n
            x = a[k, k]
            y = a[i, k]
            r = sqrt(x * x + y * y)
            column += y * y
            if i > k && r > 0.0
                for j in k:n
                    above = a[k, j]
                    below = a[i, j]
                    a[k, j] = x / r * above + y / r * below
                    a[i, j] = x / r * below - y / r * above
                end
            end
        end
        if !(abs(a[k, k]) > 1e-4 * sqrt(column))
            return 0
        end
        if a[k, k] < 0.0
            sign_of_determinant = -sign_of_determinant
        end
    end
    return sign_of_determinant
end
