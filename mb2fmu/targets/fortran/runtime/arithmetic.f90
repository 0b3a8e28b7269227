  ! --- scalar functions -------------------------------------------------------------------------------------------------

  pure real(rk) function infinity()
    infinity = ieee_value(1.0_rk, ieee_positive_inf)
  end function infinity

  pure real(rk) function not_a_number()
    not_a_number = ieee_value(1.0_rk, ieee_quiet_nan)
  end function not_a_number

  pure real(rk) function power(a, b)
    real(rk), intent(in) :: a, b
    power = a ** b
  end function power

  pure real(rk) function minimum(a, b)
    real(rk), intent(in) :: a, b
    minimum = merge(a, b, a < b .or. ieee_is_nan(a))
  end function minimum

  pure real(rk) function maximum(a, b)
    real(rk), intent(in) :: a, b
    maximum = merge(a, b, a > b .or. ieee_is_nan(a))
  end function maximum

  ! -1, 1, or the argument itself if that is zero or not a number.
  pure real(rk) function signum(a)
    real(rk), intent(in) :: a
    signum = merge(1.0_rk, merge(-1.0_rk, a, a < 0.0_rk), a > 0.0_rk)
  end function signum

  pure real(rk) function floor_real(a)
    real(rk), intent(in) :: a
    floor_real = aint(a)
    if (floor_real > a) floor_real = floor_real - 1.0_rk
  end function floor_real

  pure real(rk) function ceiling_real(a)
    real(rk), intent(in) :: a
    ceiling_real = aint(a)
    if (ceiling_real < a) ceiling_real = ceiling_real + 1.0_rk
  end function ceiling_real

  pure real(rk) function less(a, b)
    real(rk), intent(in) :: a, b
    less = merge(1.0_rk, 0.0_rk, a < b)
  end function less

  pure real(rk) function less_equal(a, b)
    real(rk), intent(in) :: a, b
    less_equal = merge(1.0_rk, 0.0_rk, a <= b)
  end function less_equal

  pure real(rk) function equal(a, b)
    real(rk), intent(in) :: a, b
    equal = merge(1.0_rk, 0.0_rk, a >= b .and. a <= b)
  end function equal

  pure real(rk) function logical_not(a)
    real(rk), intent(in) :: a
    logical_not = 1.0_rk - a
  end function logical_not

  pure real(rk) function logical_and(a, b)
    real(rk), intent(in) :: a, b
    logical_and = a * b
  end function logical_and

  pure real(rk) function logical_or(a, b)
    real(rk), intent(in) :: a, b
    logical_or = maximum(a, b)
  end function logical_or

  pure real(rk) function select(condition, a, b)
    real(rk), intent(in) :: condition, a, b
    select = merge(b, a, abs(condition) <= 0.0_rk)
  end function select

  ! The largest magnitude; infinity if one is not finite.
  pure real(rk) function largest(a)
    real(rk), intent(in) :: a(:)
    integer :: i
    largest = 0.0_rk
    do i = 1, size(a)
      if (.not. abs(a(i)) < infinity()) then
        largest = infinity()
        return
      end if
      largest = max(largest, abs(a(i)))
    end do
  end function largest
