% --- arithmetic: real functions, NaN outside of their domain -----------------------------------------------------------

function y = real_sqrt(x)
  if x >= 0, y = sqrt(x); else, y = NaN; end
end

function y = real_log(x)
  if x >= 0, y = log(x); else, y = NaN; end
end

function y = real_asin(x)
  if abs(x) <= 1, y = asin(x); else, y = NaN; end
end

function y = real_acos(x)
  if abs(x) <= 1, y = acos(x); else, y = NaN; end
end

function y = real_acosh(x)
  if x >= 1, y = acosh(x); else, y = NaN; end
end

function y = real_atanh(x)
  if abs(x) <= 1, y = atanh(x); else, y = NaN; end
end

function y = real_power(a, b)
  y = a ^ b;
  if ~isreal(y), y = NaN; end
end

function y = minimum(a, b)
  if a < b || isnan(a), y = a; else, y = b; end
end

function y = maximum(a, b)
  if a > b || isnan(a), y = a; else, y = b; end
end

function y = less(a, b)
  y = double(a < b);
end

function y = less_equal(a, b)
  y = double(a <= b);
end

function y = equal(a, b)
  y = double(a == b);
end

function y = logical_not(a)
  y = 1 - a;
end

function y = logical_and(a, b)
  y = a * b;
end

function y = select(condition, a, b)
  if condition ~= 0, y = a; else, y = b; end
end

function y = logical_or(a, b)
  y = maximum(a, b);
end

function require_positive(value, clause)
  if ~(value > 0 && value < Inf), error('mb2fmu:outside', '%s', clause); end
end

function require_nonzero(value, clause)
  if ~(abs(value) > 0 && abs(value) < Inf), error('mb2fmu:outside', '%s', clause); end
end

% Piecewise polynomial: coefficients of one power a row, the highest first; a column per piece.
function y = table_value(breaks, coefficients, x)
  piece = find(breaks(1:end - 1) <= x, 1, 'last');
  if isempty(piece), piece = 1; end
  h = x - breaks(piece);
  y = 0;
  for k = 1:size(coefficients, 1)
    y = y * h + coefficients(k, piece);
  end
end
