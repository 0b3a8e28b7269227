  ! --- square systems: P A = L U with row pivoting, Golub and Van Loan, sec. 3.4 ------------------------------------------

  ! a: the matrix row by row, then n places for the row with which each was exchanged; becomes L and U.
  pure subroutine lu_factor(n, a, failed)
    integer, intent(in) :: n
    real(rk), intent(inout) :: a(n * (n + 1))
    integer, intent(out) :: failed
    integer :: i, j, k, best
    real(rk) :: factor, value
    failed = 1
    do k = 1, n
      best = k
      do i = k + 1, n
        if (abs(a((i - 1) * n + k)) > abs(a((best - 1) * n + k))) best = i
      end do
      a(n * n + k) = real(best, rk)
      if (best /= k) then
        do j = 1, n
          value = a((k - 1) * n + j)
          a((k - 1) * n + j) = a((best - 1) * n + j)
          a((best - 1) * n + j) = value
        end do
      end if
      value = abs(a((k - 1) * n + k))
      if (.not. (value > 0.0_rk .and. value < infinity())) return
      do i = k + 1, n
        factor = a((i - 1) * n + k) / a((k - 1) * n + k)
        a((i - 1) * n + k) = factor
        do j = k + 1, n
          a((i - 1) * n + j) = a((i - 1) * n + j) - factor * a((k - 1) * n + j)
        end do
      end do
    end do
    failed = 0
  end subroutine lu_factor

  pure subroutine lu_solve(n, a, x)
    integer, intent(in) :: n
    real(rk), intent(in) :: a(n * (n + 1))
    real(rk), intent(inout) :: x(n)
    integer :: i, j, other
    real(rk) :: value
    do i = 1, n
      other = nint(a(n * n + i))
      value = x(i)
      x(i) = x(other)
      x(other) = value
    end do
    do i = 2, n
      do j = 1, i - 1
        x(i) = x(i) - a((i - 1) * n + j) * x(j)
      end do
    end do
    do i = n, 1, -1
      do j = i + 1, n
        x(i) = x(i) - a((i - 1) * n + j) * x(j)
      end do
      x(i) = x(i) / a((i - 1) * n + i)
    end do
  end subroutine lu_solve
