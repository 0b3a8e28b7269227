% --- Newton's method ---------------------------------------------------------------------------------------------------

% y with F(y) = 0 by damped steps along Newton's path; at(y) gives F, then the steps. A step is too long if the next one,
% or the one half-way, is far from what the path leaves of it: it may have passed a singular position; so may one after
% which the determinant of F's slopes, by differences, has another sign than at the guess. Small steps
% alone do not show that F vanishes, where its rows may contradict each other: limits says what a unit of each row
% counts, then how much of each may be left over.
function y = newton(name, at, guess, rows, limits)
  y = guess;
  n = numel(guess);
  way = zeros(n, 1);
  side = 2;  % of the guess; 2: not looked at yet
  [residual, step, left_over] = newton_at(at, y, n);
  for iteration = 1:60
    if residual == Inf, break; end
    size_of_step = max(abs(step));
    if size_of_step <= 1e-13 || size_of_step * (max(abs(way)) + size_of_step) <= 1e-16
      newton_refuse(name, rows, limits, left_over, size_of_step);
      y = y + step;
      return
    end
    part = 1;
    accepted = false;
    for halving = 1:12
      tried = y + part * step;
      [left, found, now_over] = newton_at(at, tried, n);
      stays = left <= max(0.9, 1 - 0.5 * part) * residual;
      if stays && residual > 1e-10
        size_of_step = max(abs(step));
        [stays, bend] = newton_stays(at, y, part, step, found, n);
        if stays && (residual > 0.05 || bend > 0.1 * size_of_step)
          if side == 2, side = newton_side(at, guess, [], 1e-6 * size_of_step, n); end
          stays = side == 0 || side ~= -newton_side(at, tried, now_over, 1e-6 * size_of_step, n);
        end
      end
      if stays
        accepted = true;
        break
      end
      part = 0.5 * part;
    end
    if ~accepted, break; end
    way = way + (tried - y);
    y = tried;
    step = found;
    residual = left;
    left_over = now_over;
  end
  if isempty(rows), closed = residual <= 1e-10; else, closed = isempty(newton_open(rows, limits, left_over, 0)); end
  if residual == Inf || ~closed
    error('mb2fmu:no_solution', 'no solution is found for %s: %.3g is left over', name, residual);
  end
end

% Numbers of the rows of which too much is left over before a last step of a size.
function open = newton_open(rows, limits, left_over, size_of_step)
  m = numel(rows);
  open = find(abs(left_over(1:m)) > limits(m + 1:2 * m) + 2 * m * size_of_step);
end

function newton_refuse(name, rows, limits, left_over, size_of_step)
  told = '';
  for i = newton_open(rows, limits, left_over, size_of_step)'
    told = [told, sprintf(', %s by %.3g', rows{i}, left_over(i) / limits(i))];  %#ok<AGROW>
  end
  if ~isempty(told)
    error('mb2fmu:contradiction', 'no solution is found for %s: they contradict each other and stay open%s', name, told);
  end
end

function [residual, step, left_over] = newton_at(at, y, n)
  try
    values = at(y);
  catch
    values = Inf(2 * n, 1);
  end
  residual = max(abs(values(1:n)));
  step = values(n + 1:end);
  left_over = values(1:n);
  if ~all(isfinite(values)), residual = Inf; end
end

function [stays, bend] = newton_stays(at, y, part, step, after, n)
  size_of_step = max(abs(step));
  bend = max(abs(after - (1 - part) * step));
  is_far = part * size_of_step > 0.2;
  if bend > 0.03125 * size_of_step || is_far
    half = 0.5 * part;
    [left, between] = newton_at(at, y + half * step, n);
    if left < Inf
      bend = max(bend, max(abs(between - (1 - half) * step)));
    else
      bend = Inf;
    end
  end
  if is_far, allowed = 0.03125; else, allowed = 0.55; end
  stays = bend <= allowed * size_of_step;
end

% On which side of singular positions a point is: the sign of the determinant of F's slopes; 0 where that cannot be told.
function side = newton_side(at, point, left_over, nudge, n)
  side = 0;
  if isempty(left_over)
    [left, ~, left_over] = newton_at(at, point, n);
    if left == Inf, return; end
  end
  slopes = zeros(n, n);
  for j = 1:n
    moved = point;
    moved(j) = moved(j) + nudge;
    [left, ~, values] = newton_at(at, moved, n);
    if left == Inf, return; end
    slopes(:, j) = values - left_over;
  end
  lengths = sqrt(sum(slopes.^2, 1));
  if ~all(lengths > 0 & lengths < Inf), return; end
  [~, upper, rows] = lu(slopes ./ lengths);
  pivots = diag(upper);
  if all(abs(pivots) >= 1e-4), side = round(det(rows)) * prod(sign(pivots)); end
end
