  ! --- Newton's method: y with F(y, theta) = 0 by damped steps along Newton's path ----------------------------------------
  !
  ! A step is too long if the next one, or the one half-way, is far from what the path leaves of it: it may have passed a
  ! singular position; so may one after which the determinant of F's slopes, by differences, has another sign than at the
  ! guess. Small steps alone do not show that F vanishes, where its rows may contradict each other (has_limits): then the
  ! last n values of theta say how much of each row may be left over. failed: 0, 1 no solution, 2 rows contradict.
  ! Deuflhard, Newton Methods for Nonlinear Problems, 2004, sec. 3.1 and 3.3.

  pure subroutine newton(n, body, n_theta, theta, has_limits, y, failed)
    integer, intent(in) :: n, n_theta
    procedure(newton_body) :: body
    real(rk), intent(in) :: theta(n_theta)
    logical, intent(in) :: has_limits
    real(rk), intent(inout) :: y(n)
    integer, intent(out) :: failed
    real(rk) :: guess(n), values(2 * n), found(2 * n), tried(n), way(n), residual, left, length, part
    integer :: iteration, halving, side
    logical :: accepted
    failed = 1
    guess = y
    way = 0.0_rk
    side = 2  ! of the guess; 2: not looked at yet
    call newton_values(n, body, n_theta, theta, y, values, residual)
    do iteration = 1, 60
      if (.not. residual < infinity()) return
      length = largest(values(n + 1:))
      if (length <= 1e-13_rk .or. length * (largest(way) + length) <= 1e-16_rk) then
        if (has_limits) then
          if (newton_is_open(n, n_theta, theta, values, length)) then
            failed = 2
            return
          end if
        end if
        y = y + values(n + 1:)
        failed = 0
        return
      end if
      part = 1.0_rk
      accepted = .false.
      do halving = 1, 12
        tried = y + part * values(n + 1:)
        call newton_values(n, body, n_theta, theta, tried, found, left)
        accepted = left <= max(0.9_rk, 1.0_rk - 0.5_rk * part) * residual
        if (accepted .and. residual > 1e-10_rk) then
          call newton_stays(n, body, n_theta, theta, guess, y, values, residual, part, tried, found, side, accepted)
        end if
        if (accepted) exit
        part = 0.5_rk * part
      end do
      if (.not. accepted) exit
      way = way + (tried - y)
      y = tried
      values = found
      residual = left
    end do
    if (has_limits) then
      if (residual < infinity() .and. .not. newton_is_open(n, n_theta, theta, values, 0.0_rk)) failed = 0
    else if (residual <= 1e-10_rk) then
      failed = 0
    end if
  end subroutine newton

  ! F and the step at y; the largest residual, infinity where there is none.
  pure subroutine newton_values(n, body, n_theta, theta, y, values, residual)
    integer, intent(in) :: n, n_theta
    procedure(newton_body) :: body
    real(rk), intent(in) :: theta(n_theta), y(n)
    real(rk), intent(out) :: values(2 * n), residual
    integer :: status
    call body(y, theta, values, status)
    residual = infinity()
    if (status == 0) residual = largest(values(:n))
  end subroutine newton_values

  ! Whether more of a row is left over than may be, before a last step of some length.
  pure logical function newton_is_open(n, n_theta, theta, values, length)
    integer, intent(in) :: n, n_theta
    real(rk), intent(in) :: theta(n_theta), values(2 * n), length
    newton_is_open = any(abs(values(:n)) > theta(n_theta - n + 1:) + 2.0_rk * real(n, rk) * length)
  end function newton_is_open

  ! How far the step after a part of one is from what Newton's path leaves of it.
  pure real(rk) function newton_bend(n, part, step, after)
    integer, intent(in) :: n
    real(rk), intent(in) :: part, step(n), after(n)
    newton_bend = largest(after - (1.0_rk - part) * step)
  end function newton_bend

  ! Whether a part of a step stays on the path, as the steps after it and half-way tell, and the determinant.
  pure subroutine newton_stays(n, body, n_theta, theta, guess, y, values, residual, part, tried, found, side, stays)
    integer, intent(in) :: n, n_theta
    procedure(newton_body) :: body
    real(rk), intent(in) :: theta(n_theta), guess(n), y(n), values(2 * n), residual, part, tried(n), found(2 * n)
    integer, intent(inout) :: side
    logical, intent(out) :: stays
    real(rk) :: between(2 * n), bend, left, length
    integer :: now
    logical :: is_far
    length = largest(values(n + 1:))
    is_far = part * length > 0.2_rk
    bend = newton_bend(n, part, values(n + 1:), found(n + 1:))
    stays = .false.
    if (bend > 0.03125_rk * length .or. is_far) then
      call newton_values(n, body, n_theta, theta, y + 0.5_rk * part * values(n + 1:), between, left)
      if (.not. left < infinity()) return
      bend = max(bend, newton_bend(n, 0.5_rk * part, values(n + 1:), between(n + 1:)))
    end if
    if (.not. bend <= merge(0.03125_rk, 0.55_rk, is_far) * length) return
    stays = .true.
    if (residual > 0.05_rk .or. bend > 0.1_rk * length) then
      if (side == 2) call newton_side(n, body, n_theta, theta, guess, 1e-6_rk * length, side)
      call newton_side(n, body, n_theta, theta, tried, 1e-6_rk * length, now)
      stays = side * now >= 0
    end if
  end subroutine newton_stays

  ! On which side of singular positions a point is: the sign of the determinant of F's slopes; 0 where round-off decides it.
  pure subroutine newton_side(n, body, n_theta, theta, point, nudge, side)
    integer, intent(in) :: n, n_theta
    procedure(newton_body) :: body
    real(rk), intent(in) :: theta(n_theta), point(n), nudge
    integer, intent(out) :: side
    real(rk) :: at(n), first(2 * n), values(2 * n), slopes(n, n), left
    integer :: j
    side = 0
    call newton_values(n, body, n_theta, theta, point, first, left)
    if (.not. left < infinity()) return
    do j = 1, n
      at = point
      at(j) = at(j) + nudge
      call newton_values(n, body, n_theta, theta, at, values, left)
      if (.not. left < infinity()) return
      slopes(j, :) = values(:n) - first(:n)
    end do
    side = orientation(n, slopes)
  end subroutine newton_side

  ! The sign of the determinant of a matrix, by Givens' rotations; 0 where round-off decides it.
  pure integer function orientation(n, matrix)
    integer, intent(in) :: n
    real(rk), intent(in) :: matrix(n, n)
    real(rk) :: a(n, n), column, x, y, r, above, below
    integer :: i, j, k
    a = matrix
    orientation = 1
    do k = 1, n
      column = 0.0_rk
      do i = 1, n
        x = a(k, k)
        y = a(i, k)
        r = sqrt(x * x + y * y)
        column = column + y * y
        if (i > k .and. r > 0.0_rk) then
          do j = k, n
            above = a(k, j)
            below = a(i, j)
            a(k, j) = x / r * above + y / r * below
            a(i, j) = x / r * below - y / r * above
          end do
        end if
      end do
      if (.not. abs(a(k, k)) > 1e-4_rk * sqrt(column)) then
        orientation = 0
        return
      end if
      if (a(k, k) < 0.0_rk) orientation = -orientation
    end do
  end function orientation
