# --- lookup tables ----------------------------------------------------------------------------------------------------

# A piecewise polynomial: of each piece the coefficients, the highest power first; outside the outermost pieces go on.
function lookup(breaks, coefficients, x)
    low = 1
    high = length(breaks) - 1
    terms = div(length(coefficients), high)
    while low < high
        middle = div(low + high + 1, 2)
        if breaks[middle] <= x
            low = middle
        else
            high = middle - 1
        end
    end
    h = x - breaks[low]
    total = zero(x)
    for k in 1:terms
        total = total * h + coefficients[(low - 1) * terms + k]
    end
    return total
end
