"use strict";
/* The scene's arithmetic: programs as tables (live.py), with what they solve: linear systems, and Newton's method. */
const mb2fmuArithmetic = (() => {
  const erf = (x) => {
    // for pictures alone: Abramowitz and Stegun 7.1.26, to 2e-7
    const t = 1 / (1 + 0.3275911 * Math.abs(x));
    const sum = ((((1.061405429 * t - 1.453152027) * t + 1.421413741) * t - 0.284496736) * t + 0.254829592) * t;
    return Math.sign(x) * (1 - sum * Math.exp(-x * x));
  };
  const OPERATIONS = {
    ADD: (a, b) => a + b, SUB: (a, b) => a - b, MUL: (a, b) => a * b, DIV: (a, b) => a / b, NEG: (a) => -a,
    POW: Math.pow, SQRT: Math.sqrt, EXP: Math.exp, LOG: Math.log, SIN: Math.sin, COS: Math.cos, TAN: Math.tan,
    ASIN: Math.asin, ACOS: Math.acos, ATAN: Math.atan, ATAN2: Math.atan2, SINH: Math.sinh, COSH: Math.cosh,
    TANH: Math.tanh, ASINH: Math.asinh, ACOSH: Math.acosh, ATANH: Math.atanh, ABS: Math.abs, SIGN: Math.sign,
    FLOOR: Math.floor, CEIL: Math.ceil, MIN: (a, b) => Math.min(a, b), MAX: (a, b) => Math.max(a, b), ERF: erf,
    FROZEN: (a) => a, HYPOT: (a, b) => Math.hypot(a, b), // unused operands are given, too
    LT: (a, b) => Number(a < b), LE: (a, b) => Number(a <= b), EQ: (a, b) => Number(a === b), NOT: (a) => 1 - a,
    AND: (a, b) => a * b, OR: (a, b) => Math.max(a, b), SELECT: (a, b, c) => (a !== 0 ? b : c),
  };
  const LEAVES = ["CONSTANT", "TIME", "STATE", "INPUT", "PARAMETER", "MEMORY"];

  const largest = (values) => values.reduce((most, v) => (Number.isFinite(v) ? Math.max(most, Math.abs(v)) : Infinity), 0);

  /** Each solver takes a matrix and a right side; a result that is not finite where there is no solution. */
  const SOLVERS = {
    lu(n, entries, right) {
      const rows = Array.from({ length: n }, (_, i) => [...entries.slice(i * n, i * n + n), right[i]]);
      for (let k = 0; k < n; k++) {
        let best = k;
        for (let i = k + 1; i < n; i++) if (Math.abs(rows[i][k]) > Math.abs(rows[best][k])) best = i;
        [rows[k], rows[best]] = [rows[best], rows[k]];
        for (let i = k + 1; i < n; i++) {
          const factor = rows[i][k] / rows[k][k];
          for (let j = k; j <= n; j++) rows[i][j] -= factor * rows[k][j];
        }
      }
      const x = new Array(n).fill(0);
      for (let i = n - 1; i >= 0; i--) {
        let value = rows[i][n];
        for (let j = i + 1; j < n; j++) value -= rows[i][j] * x[j];
        x[i] = value / rows[i][i];
      }
      return x;
    },
    ldlt(n, entries, right) {
      return SOLVERS.lu(n, full(n, entries).flat(), right);
    },
    /** By Jacobi's rotations; of the eigenvalues the largest ones count, and fade out where they vanish. */
    least_norm(n, entries, right, rank) {
      const S = full(n, entries);
      const V = S.map((_, i) => S.map((_, j) => Number(i === j)));
      const trace = S.reduce((sum, row, i) => sum + row[i], 0);
      if (!Number.isFinite(trace)) return right.map(() => NaN);
      for (let sweep = 0, rotated = true; rotated && sweep < 30; sweep++) {
        rotated = false;
        for (let p = 0; p < n; p++) {
          for (let q = p + 1; q < n; q++) {
            if (!(Math.abs(S[p][q]) > 1e-17 * trace)) continue;
            rotated = true;
            rotate(n, p, q, S, V);
          }
        }
      }
      const values = S.map((row, i) => row[i]);
      const most = Math.max(0, ...values);
      const x = new Array(n).fill(0);
      values.forEach((value, i) => {
        const before = values.filter((other, j) => other > value || (other === value && j < i)).length;
        if (before >= rank || !(value > 0)) return;
        const shifted = value + 1e-14 * most;
        const part = value / shifted;
        const along = V[i].reduce((sum, v, j) => sum + v * right[j], 0) * (part / shifted) * (2 - part * part);
        V[i].forEach((v, j) => (x[j] += v * along));
      });
      return x;
    },
  };

  /** A symmetric matrix from its lower triangle, row by row. */
  function full(n, entries) {
    return Array.from({ length: n }, (_, i) =>
      Array.from({ length: n }, (_, j) => entries[(Math.max(i, j) * (Math.max(i, j) + 1)) / 2 + Math.min(i, j)])
    );
  }

  /** Makes S[p][q] zero. */
  function rotate(n, p, q, S, V) {
    const entry = S[p][q];
    const theta = (S[q][q] - S[p][p]) / (2 * entry);
    const t = (theta < 0 ? -1 : 1) / (Math.abs(theta) + Math.sqrt(theta * theta + 1));
    const c = 1 / Math.sqrt(t * t + 1);
    const s = t * c;
    S[p][p] -= t * entry;
    S[q][q] += t * entry;
    S[p][q] = S[q][p] = 0;
    for (let k = 0; k < n; k++) {
      if (k !== p && k !== q) {
        const [a, b] = [S[p][k], S[q][k]];
        S[p][k] = S[k][p] = c * a - s * b;
        S[q][k] = S[k][q] = s * a + c * b;
      }
      const [a, b] = [V[p][k], V[q][k]];
      V[p][k] = c * a - s * b;
      V[q][k] = s * a + c * b;
    }
  }

  /** Newton's method with steps halved until less is left over; the guess is near: states, or the instant before. */
  function newton(body, theta, guess) {
    const at = (y) => {
      body.evaluate(["residual", "step"], 0, y, [], theta);
      return { y, left: largest(body.get("residual")), step: body.get("step") };
    };
    let now = at(guess);
    for (let k = 0; k < 60 && now.left < Infinity; k++) {
      const size = largest(now.step);
      const way = largest(now.y.map((v, i) => v - guess[i]));
      if (size <= 1e-13 || size * (way + size) <= 1e-16) return now.y.map((v, i) => v + now.step[i]);
      let next = null;
      for (let part = 1; next === null && part > 2e-4; part /= 2) {
        const tried = at(now.y.map((v, i) => v + part * now.step[i]));
        if (tried.left <= Math.max(0.9, 1 - 0.5 * part) * now.left || tried.left <= 1e-10) next = tried;
      }
      if (next === null) break;
      now = next;
    }
    return now.left <= 1e-10 ? now.y : guess.map(() => NaN);
  }

  /** Coefficients of a derivative of a piecewise polynomial: one row per power. */
  function derived(rows, order) {
    let found = rows;
    for (let i = 0; i < order; i++) found = found.slice(1).map((row, k) => row.map((v) => (k + 1) * v));
    return found.length ? found : [rows[0].map(() => 0)];
  }

  /** A program: numbers of nodes, from time, states, inputs, parameters and memory. */
  class Tables {
    constructor(record) {
      this.record = record;
      this.values = new Float64Array(record.op.length);
      this.rows = record.op.map((code) => {
        const leaf = LEAVES.indexOf(record.names[code]);
        return leaf >= 0 ? leaf : OPERATIONS[record.names[code]] || record.names[code];
      });
      this.bodies = (record.bodies || []).map((body) => new Tables(body));
      this.constants = record.constants.map(Number);
      this.orders = new Map();
      this.polynomials = new Map();
    }

    /** The nodes that some entry points need, in order. */
    order(entries) {
      const key = entries.join();
      if (!this.orders.has(key)) {
        const { a, b, c, blocks } = this.record;
        const wanted = new Uint8Array(this.rows.length);
        entries.forEach((entry) => (this.record.entries[entry] || []).forEach((node) => (wanted[node] = 1)));
        for (let i = wanted.length - 1; i >= 0; i--) {
          const row = this.rows[i];
          if (!wanted[i] || typeof row === "number") continue;
          const factor = row === "BLOCK" && blocks[a[i]].factor;
          const read =
            row === "BLOCK" ? [...blocks[a[i]].operands, ...(factor >= 0 ? blocks[factor].operands : [])]
            : row === "TABLE" ? [c[i]] : [a[i], b[i], c[i]];
          read.forEach((node) => node >= 0 && (wanted[node] = 1));
        }
        this.orders.set(key, Array.from(wanted.keys()).filter((i) => wanted[i]));
      }
      return this.orders.get(key);
    }

    evaluate(entries, t, x, r, p, m) {
      const { a, b, c } = this.record;
      const { values, rows } = this;
      const sources = [this.constants, [t], x, r, p, m];
      const solved = new Map();
      for (const i of this.order(entries)) {
        const row = rows[i];
        if (typeof row === "number") values[i] = sources[row][row === 1 ? 0 : a[i]];
        else if (row === "TABLE") values[i] = this.lookup(a[i], b[i], values[c[i]]);
        else if (row === "BLOCK") {
          if (!solved.has(a[i])) solved.set(a[i], this.solve(this.record.blocks[a[i]]));
          values[i] = solved.get(a[i])[b[i]];
        } else values[i] = row(values[a[i]], values[b[i]], values[c[i]]);
      }
    }

    solve(block) {
      const read = (nodes) => nodes.map((node) => this.values[node]);
      const given = read(block.operands);
      const n = block.size;
      if (block.kind === "newton") return newton(this.bodies[block.body], given.slice(0, -n), given.slice(-n));
      const factor = this.record.blocks[block.factor];
      return SOLVERS[factor.kind.replace("_factor", "")](n, read(factor.operands), given, factor.rank);
    }

    lookup(index, order, x) {
      const key = `${index} ${order}`;
      const { breaks, coefficients } = this.record.tables[index];
      if (!this.polynomials.has(key)) this.polynomials.set(key, derived(coefficients, order));
      let piece = 0;
      while (piece < breaks.length - 2 && breaks[piece + 1] <= x) piece++;
      return this.polynomials.get(key).reduceRight((sum, row) => sum * (x - breaks[piece]) + row[piece], 0);
    }

    get(entry) {
      return (this.record.entries[entry] || []).map((node) => this.values[node]);
    }
  }

  return { Tables };
})();
