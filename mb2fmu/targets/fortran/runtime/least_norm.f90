  ! --- symmetric positive semidefinite systems: the solution of least norm ------------------------------------------------
  !
  ! Eigenvalues by Jacobi's rotations (Golub and Van Loan, sec. 8.5); the `rank` largest count, and fade out below 1e-14 of
  ! the largest one (Hansen, Rank-Deficient and Discrete Ill-Posed Problems, 1998, ch. 5).

  ! a: the lower triangle row by row; becomes n n places to work with, eigenvectors as rows, factors of their eigenvalues.
  pure subroutine least_norm_factor(n, rank, a, failed)
    integer, intent(in) :: n, rank
    real(rk), intent(inout) :: a(2 * n * n + n)
    integer, intent(out) :: failed
    real(rk) :: s(n, n), v(n, n), trace
    integer :: i, j, p, q, sweep
    logical :: rotated
    failed = 1
    trace = 0.0_rk
    v = 0.0_rk
    do i = 1, n
      do j = 1, i
        s(i, j) = a(i * (i - 1) / 2 + j)
        if (.not. abs(s(i, j)) < infinity()) return
        s(j, i) = s(i, j)
      end do
      v(i, i) = 1.0_rk
      trace = trace + s(i, i)
    end do
    do sweep = 1, 30
      rotated = .false.
      do p = 1, n
        do q = p + 1, n
          if (abs(s(p, q)) > 1e-17_rk * trace) then
            rotated = .true.
            call jacobi_rotate(n, p, q, s, v)
          end if
        end do
      end do
      if (.not. rotated) exit
    end do
    do i = 1, n
      do j = 1, n
        a(n * n + (i - 1) * n + j) = v(i, j)
      end do
      a(2 * n * n + i) = least_norm_share(n, rank, s, i)
    end do
    failed = 0
  end subroutine least_norm_factor

  ! Makes entry (p, q) of s zero; v has its eigenvectors as rows when all are.
  pure subroutine jacobi_rotate(n, p, q, s, v)
    integer, intent(in) :: n, p, q
    real(rk), intent(inout) :: s(n, n), v(n, n)
    real(rk) :: entry, theta, t, cosine, sine, first, second
    integer :: k
    entry = s(p, q)
    theta = (s(q, q) - s(p, p)) / (2.0_rk * entry)
    t = 1.0_rk / (abs(theta) + sqrt(theta * theta + 1.0_rk))
    if (theta < 0.0_rk) t = -t
    cosine = 1.0_rk / sqrt(t * t + 1.0_rk)
    sine = t * cosine
    s(p, p) = s(p, p) - t * entry
    s(q, q) = s(q, q) + t * entry
    s(p, q) = 0.0_rk
    s(q, p) = 0.0_rk
    do k = 1, n
      if (k /= p .and. k /= q) then
        first = s(p, k)
        second = s(q, k)
        s(p, k) = cosine * first - sine * second
        s(q, k) = sine * first + cosine * second
        s(k, p) = s(p, k)
        s(k, q) = s(q, k)
      end if
      first = v(p, k)
      second = v(q, k)
      v(p, k) = cosine * first - sine * second
      v(q, k) = sine * first + cosine * second
    end do
  end subroutine jacobi_rotate

  ! What eigenvalue i counts for: nothing if it is none of the `rank` largest.
  pure real(rk) function least_norm_share(n, rank, s, i)
    integer, intent(in) :: n, rank, i
    real(rk), intent(in) :: s(n, n)
    real(rk) :: value, other, greatest, shifted, part
    integer :: j, before
    value = s(i, i)
    greatest = 0.0_rk
    before = 0
    do j = 1, n
      other = s(j, j)
      greatest = max(greatest, other)
      if (other > value .or. (j < i .and. .not. other < value)) before = before + 1
    end do
    least_norm_share = 0.0_rk
    if (before >= rank .or. .not. value > 0.0_rk) return
    shifted = value + 1e-14_rk * greatest
    part = value / shifted
    least_norm_share = part / shifted * (2.0_rk - part * part)
  end function least_norm_share

  pure subroutine least_norm_solve(n, a, x)
    integer, intent(in) :: n
    real(rk), intent(in) :: a(2 * n * n + n)
    real(rk), intent(inout) :: x(n)
    real(rk) :: total(n), along
    integer :: i, j
    total = 0.0_rk
    do i = 1, n
      along = 0.0_rk
      do j = 1, n
        along = along + a(n * n + (i - 1) * n + j) * x(j)
      end do
      along = along * a(2 * n * n + i)
      do j = 1, n
        total(j) = total(j) + a(n * n + (i - 1) * n + j) * along
      end do
    end do
    x = total
  end subroutine least_norm_solve
