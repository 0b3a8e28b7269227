  ! --- lookup tables ------------------------------------------------------------------------------------------------------

  ! A piecewise polynomial: of each piece the coefficients, the highest power first; outside the outermost pieces go on.
  pure real(rk) function lookup(breaks, coefficients, x)
    real(rk), intent(in) :: breaks(:), coefficients(:), x
    integer :: low, high, middle, terms, k
    real(rk) :: h
    low = 1
    high = size(breaks) - 1
    terms = size(coefficients) / high
    do while (low < high)
      middle = (low + high + 1) / 2
      if (breaks(middle) <= x) then
        low = middle
      else
        high = middle - 1
      end if
    end do
    h = x - breaks(low)
    lookup = 0.0_rk
    do k = 1, terms
      lookup = lookup * h + coefficients((low - 1) * terms + k)
    end do
  end function lookup
