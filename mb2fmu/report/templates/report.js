// Lets tables be sorted, filtered and folded, and charts be read off, zoomed and saved. The page says everything without it.
"use strict";
(() => {
  const FOLDED = 12; // rows that a long table shows at first
  const LEFT = 50, COLUMNS = 382; // of mb2fmu.report.chart, in units of the drawing
  const SVG = "http://www.w3.org/2000/svg";

  const make = (tag, properties, ...children) => {
    const element = Object.assign(document.createElement(tag), properties);
    element.append(...children);
    return element;
  };
  const draw = (tag, attributes, text = "") => {
    const element = document.createElementNS(SVG, tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    element.textContent = text;
    return element;
  };

  // ── Tables ──────────────────────────────────────────────────────────────────────────────────────────────────────

  const keyOf = (row, column) => {
    const cell = row.cells[column], data = cell && cell.querySelector("data");
    const text = data ? data.getAttribute("value") : cell ? cell.textContent.trim() : "";
    const number = Number(text);
    return text !== "" && !Number.isNaN(number) ? number : text;
  };
  const compare = (a, b) => {
    if (typeof a === typeof b) return typeof a === "number" ? a - b : a.localeCompare(b, "en", { numeric: true });
    return typeof a === "number" ? -1 : 1; // numbers before words
  };

  function sortable(table, refresh) {
    const body = table.tBodies[0], headers = [...table.tHead.rows[0].cells];
    headers.forEach((header, column) => {
      if (header.querySelector(".hidden")) return;
      const button = make("button", { type: "button", className: "sort" }, ...header.childNodes);
      header.append(button);
      button.addEventListener("click", () => {
        const falling = header.getAttribute("aria-sort") === "ascending";
        headers.forEach((other) => other.removeAttribute("aria-sort"));
        header.setAttribute("aria-sort", falling ? "descending" : "ascending");
        const rows = [...body.rows].map((row) => [keyOf(row, column), row]);
        rows.sort((a, b) => (falling ? compare(b[0], a[0]) : compare(a[0], b[0])));
        body.append(...rows.map(([, row]) => row));
        refresh();
      });
    });
  }

  function tools(table) {
    const body = table.tBodies[0], total = body.rows.length;
    let folded = total > FOLDED, words = [];
    const refresh = () => {
      let shown = 0;
      for (const row of body.rows) {
        const text = row.textContent.toLowerCase(), fits = words.every((word) => text.includes(word));
        row.classList.toggle("away", !fits || (folded && ++shown > FOLDED && !row.classList.contains("bad")));
      }
    };
    sortable(table, refresh);
    if (!folded) return;
    const filter = make("input", { type: "search", placeholder: `filter ${total} rows` });
    filter.setAttribute("aria-label", "Show only rows with these words");
    const fold = make("button", { type: "button" });
    const label = () => { fold.textContent = folded ? `Show all ${total} rows` : `Show the first ${FOLDED} rows`; };
    filter.addEventListener("input", () => {
      words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
      refresh();
    });
    fold.addEventListener("click", () => { folded = !folded; label(); refresh(); });
    label();
    table.parentNode.before(make("div", { className: "tools" }, filter, fold));
    refresh();
  }

  // ── Charts ──────────────────────────────────────────────────────────────────────────────────────────────────────

  // A line's points, [x, y] in tenths of a unit from the lower left corner of its panel; one list for each unbroken run.
  function runsOf(path) {
    return path.getAttribute("d").split("M").slice(1).map((run) => {
      const numbers = run.match(/-?\d+/g).map(Number), points = [];
      let x = 0, y = 0;
      for (let k = 0; k + 1 < numbers.length; k += 2) points.push([x += numbers[k], y += numbers[k + 1]]);
      return points;
    });
  }

  function heightAt(runs, x) {
    for (const points of runs) {
      if (!points.length || x < points[0][0] || x > points[points.length - 1][0]) continue;
      let low = 0, high = points.length - 1;
      while (high - low > 1) {
        const middle = (low + high) >> 1;
        if (points[middle][0] <= x) low = middle; else high = middle;
      }
      const [a, b] = [points[low], points[high]];
      return b[0] === a[0] ? b[1] : a[1] + ((x - a[0]) / (b[0] - a[0])) * (b[1] - a[1]);
    }
    return NaN;
  }

  const format = (value) => {
    if (!Number.isFinite(value)) return "–";
    const size = Math.abs(value);
    return (size !== 0 && (size < 1e-3 || size >= 1e5) ? value.toExponential(2) : String(+value.toPrecision(4))).replace("-", "−");
  };

  class Chart {
    constructor(figure) {
      this.figure = figure;
      this.svg = figure.querySelector("svg.chart");
      this.first = Number(this.svg.dataset.from);
      this.last = Number(this.svg.dataset.to);
      [this.from, this.to] = [this.first, this.last];
      const names = Object.fromEntries([...figure.querySelectorAll(".legend li")].map((li) => [li.className, li.textContent]));
      this.panels = [...this.svg.querySelectorAll("g.panel")].map((group) => ({
        group, ...group.dataset, low: Number(group.dataset.low), high: Number(group.dataset.high),
        upper: Number(group.dataset.upper), lower: Number(group.dataset.lower),
        lines: [...group.querySelectorAll("path.line")].map((path) => ({
          path, name: names[path.classList[1]] || group.dataset.quantity,
          get runs() { return (this.read ??= runsOf(path)); }, // long signals: read when they are needed
        })),
      }));
      this.said = make("output", { className: "said" });
      this.whole = make("button", { type: "button", hidden: true }, "Whole time");
      this.whole.addEventListener("click", () => this.zoom(this.first, this.last));
      const save = make("button", { type: "button" }, "CSV");
      save.title = "Saves what is drawn; mb2fmu simulate --csv gives all digits";
      save.addEventListener("click", () => this.save());
      figure.append(make("div", { className: "tools" }, this.whole, save, this.said));
      this.watch();
    }

    timeAt(event) {
      const box = this.svg.getBoundingClientRect(), width = this.svg.viewBox.baseVal.width;
      const x = ((event.clientX - box.left) / box.width) * width - LEFT;
      return this.from + Math.min(Math.max(x / COLUMNS, 0), 1) * (this.to - this.from);
    }

    across(time) { return LEFT + (COLUMNS * (time - this.from)) / (this.to - this.from); }

    valueAt(panel, line, time) {
      const up = heightAt(line.runs, (10 * COLUMNS * (time - this.first)) / (this.last - this.first));
      const part = -up / (10 * (panel.lower - panel.upper));
      return panel.scale === "log" ? panel.low * (panel.high / panel.low) ** part : panel.low + part * (panel.high - panel.low);
    }

    watch() {
      const ends = this.panels.map((panel) => [panel.upper, panel.lower]).flat();
      const rule = draw("path", { class: "rule" }), chosen = draw("rect", { class: "chosen" });
      let start = null;
      this.svg.append(chosen, rule);
      const area = (time) => {
        const [a, b] = [this.across(Math.min(start, time)), this.across(Math.max(start, time))];
        for (const [name, value] of Object.entries({ x: a, y: ends[0], width: b - a, height: ends[ends.length - 1] - ends[0] })) chosen.setAttribute(name, value);
      };
      this.svg.addEventListener("pointerdown", (event) => { start = this.timeAt(event); this.svg.setPointerCapture(event.pointerId); });
      this.svg.addEventListener("pointermove", (event) => {
        const time = this.timeAt(event);
        rule.setAttribute("d", `M${this.across(time)} ${ends[0]}V${ends[ends.length - 1]}`);
        this.say(time);
        if (start !== null) area(time);
      });
      this.svg.addEventListener("pointerup", (event) => {
        const time = this.timeAt(event), from = start;
        start = null;
        chosen.setAttribute("width", 0);
        if (from !== null && Math.abs(time - from) > (this.to - this.from) / 50) this.zoom(Math.min(from, time), Math.max(from, time));
      });
      this.svg.addEventListener("pointercancel", () => { start = null; chosen.setAttribute("width", 0); });
      this.svg.addEventListener("pointerleave", () => { rule.setAttribute("d", ""); this.said.textContent = ""; });
      this.svg.addEventListener("dblclick", () => this.zoom(this.first, this.last));
    }

    say(time) {
      const parts = this.panels.flatMap((panel) => panel.lines.map((line) =>
        `${line.name} ${format(this.valueAt(panel, line, time))}${panel.unit === "1" ? "" : ` ${panel.unit}`}`));
      this.said.textContent = [`at ${format(time)} s`, ...parts].join(" · ");
    }

    zoom(from, to) {
      [this.from, this.to] = [from, to];
      const whole = from === this.first && to === this.last, k = (this.last - this.first) / (to - from);
      const shift = (COLUMNS * (from - this.first)) / (to - from);
      this.whole.hidden = whole;
      this.panels.forEach((panel, number) => {
        const identity = `${this.figure.id}-clip-${number}`, lines = panel.group.querySelector("g.lines");
        if (!document.getElementById(identity)) {
          const clip = draw("clipPath", { id: identity });
          clip.append(draw("rect", { x: LEFT, y: panel.upper - 2, width: COLUMNS, height: panel.lower - panel.upper + 4 }));
          panel.group.append(clip);
          lines.setAttribute("clip-path", `url(#${identity})`);
        }
        for (const line of panel.lines) line.path.setAttribute("transform", `translate(${LEFT - shift} ${panel.lower})scale(${0.1 * k} .1)`);
        const beyond = panel.group.querySelector(".beyond");
        if (beyond) {
          beyond.dataset.time ??= this.first + ((beyond.x.baseVal.value - LEFT) / COLUMNS) * (this.last - this.first);
          const x = Math.min(Math.max(this.across(Number(beyond.dataset.time)), LEFT), LEFT + COLUMNS);
          beyond.setAttribute("x", x);
          beyond.setAttribute("width", LEFT + COLUMNS - x);
        }
      });
      this.ticks();
    }

    ticks() {
      this.svg.querySelectorAll(".time").forEach((element) => element.remove());
      const rough = (this.to - this.from) / 5, power = 10 ** Math.floor(Math.log10(rough));
      const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= rough * (1 - 1e-9));
      const bottom = this.panels[this.panels.length - 1].lower, decimals = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
      for (let n = Math.ceil(this.from / step - 1e-9); n * step <= this.to + 1e-9 * step; n++) {
        const x = this.across(n * step);
        for (const panel of this.panels) panel.group.prepend(draw("path", { class: "grid time", d: `M${x} ${panel.upper}V${panel.lower}` }));
        this.svg.append(draw("text", { class: `tick time ${x > LEFT + COLUMNS - 8 ? "end" : "middle"}`, x, y: bottom + 13 }, (n * step).toFixed(decimals)));
      }
      const label = this.svg.querySelector(".seconds");
      if (label) label.textContent = "time in s";
    }

    save() {
      const lines = this.panels.flatMap((panel) => panel.lines.map((line) => ({ panel, line })));
      const places = [...new Set(lines.flatMap(({ line }) => line.runs.flat().map(([x]) => x)))].sort((a, b) => a - b);
      const times = places.map((x) => this.first + (x / (10 * COLUMNS)) * (this.last - this.first)).filter((t) => t >= this.from && t <= this.to);
      const quoted = (text) => `"${text.replaceAll('"', '""')}"`;
      const head = ["time", ...lines.map(({ panel, line }) => quoted(`${[...new Set([panel.quantity, line.name])].join(" ")}${panel.unit === "1" ? "" : ` [${panel.unit}]`}`))];
      const rows = times.map((t) => [t.toPrecision(6), ...lines.map(({ panel, line }) => this.valueAt(panel, line, t).toPrecision(5))].join(","));
      const address = URL.createObjectURL(new Blob([[head.join(","), ...rows, ""].join("\n")], { type: "text/csv" }));
      make("a", { href: address, download: `${this.figure.querySelector("figcaption strong").textContent}.csv` }).click();
      setTimeout(() => URL.revokeObjectURL(address), 1000);
    }
  }

  document.querySelectorAll(".scroll > table").forEach(tools);
  document.querySelectorAll("figure.card:has(svg.chart)").forEach((figure) => new Chart(figure));
})();
