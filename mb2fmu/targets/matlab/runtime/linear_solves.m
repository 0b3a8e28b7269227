% --- linear solves -----------------------------------------------------------------------------------------------------

function check_pivots(name, pivots)
  if ~all(isfinite(pivots)) || any(pivots == 0)
    error('mb2fmu:singular', 'the matrix of %s is singular', name);
  end
end

% Symmetric positive definite matrix by its lower triangle, row by row.
function A = symmetric(n, entries)
  A = zeros(n);
  A(triu(true(n))) = entries;
  A = A + triu(A, 1)';
end

function factor = ldlt_factor(n, name, entries)
  A = symmetric(n, entries);
  factor.L = eye(n);
  factor.d = zeros(n, 1);
  for i = 1:n
    for j = 1:i - 1
      A(i, j) = A(i, j) - A(i, 1:j - 1) * factor.L(j, 1:j - 1)';
    end
    scaled = A(i, 1:i - 1) ./ factor.d(1:i - 1)';
    factor.L(i, 1:i - 1) = scaled;
    factor.d(i) = A(i, i) - scaled * A(i, 1:i - 1)';
    if ~(factor.d(i) > 0), factor.d(i) = NaN; end
    check_pivots(name, factor.d(i));
  end
end

function x = ldlt_solve(factor, right)
  x = factor.L' \ ((factor.L \ right) ./ factor.d);
end

% Any square matrix, row by row; rows are exchanged.
function factor = lu_factor(n, name, entries)
  [factor.L, factor.U, factor.P] = lu(reshape(entries, n, n)');
  check_pivots(name, diag(factor.U));
end

function x = lu_solve(factor, right)
  x = factor.U \ (factor.L \ (factor.P * right));
end

% Symmetric positive semidefinite matrix: the solution of least norm; the rank largest eigenvalues count, and fade out
% below 1e-14 of the largest one (Hansen, Rank-Deficient and Discrete Ill-Posed Problems, 1998, ch. 5).
function factor = least_norm_factor(n, name, entries, rank)
  A = symmetric(n, entries);
  if ~all(isfinite(A(:))), error('mb2fmu:singular', 'the matrix of %s is not finite', name); end
  [factor.V, D] = eig(A);
  values = diag(D);
  [~, order] = sort(values, 'descend');
  shifted = values + 1e-14 * max([values; 0]);
  share = values ./ shifted;
  factor.g = share ./ shifted .* (2 - share .^ 2);
  factor.g(values <= 0) = 0;
  factor.g(order(rank + 1:end)) = 0;
end

function x = least_norm_solve(factor, right)
  x = factor.V * (factor.g .* (factor.V' * right));
end
