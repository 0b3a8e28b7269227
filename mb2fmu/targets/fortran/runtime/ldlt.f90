  ! --- symmetric positive definite systems: L D L^T, Golub and Van Loan, Matrix Computations, 4th ed. 2013, sec. 4.1 ------

  ! a: the lower triangle row by row; becomes L, whose diagonal of ones is not stored, with D on the diagonal.
  pure subroutine ldlt_factor(n, a, failed)
    integer, intent(in) :: n
    real(rk), intent(inout) :: a(n * (n + 1) / 2)
    integer, intent(out) :: failed
    integer :: i, j, k, row, above
    real(rk) :: value, pivot, scaled
    failed = 1
    do i = 1, n
      row = i * (i - 1) / 2
      do j = 1, i - 1
        above = j * (j - 1) / 2
        value = a(row + j)
        do k = 1, j - 1
          value = value - a(row + k) * a(above + k)
        end do
        a(row + j) = value  ! l_ij d_j until the row is done
      end do
      pivot = a(row + i)
      do j = 1, i - 1
        scaled = a(row + j) / a(j * (j + 1) / 2)
        pivot = pivot - scaled * a(row + j)
        a(row + j) = scaled
      end do
      if (.not. (pivot > 0.0_rk .and. pivot < infinity())) return
      a(row + i) = pivot
    end do
    failed = 0
  end subroutine ldlt_factor

  pure subroutine ldlt_solve(n, a, x)
    integer, intent(in) :: n
    real(rk), intent(in) :: a(n * (n + 1) / 2)
    real(rk), intent(inout) :: x(n)
    integer :: i, j, row
    do i = 1, n
      row = i * (i - 1) / 2
      do j = 1, i - 1
        x(i) = x(i) - a(row + j) * x(j)
      end do
    end do
    do i = 1, n
      x(i) = x(i) / a(i * (i + 1) / 2)
    end do
    do i = n, 2, -1
      row = i * (i - 1) / 2
      do j = 1, i - 1
        x(j) = x(j) - a(row + j) * x(i)
      end do
    end do
  end subroutine ldlt_solve
