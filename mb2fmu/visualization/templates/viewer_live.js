"use strict";
/* The FMU itself, run in the page: a module of WebAssembly (web.c), and the places of the scene by its arithmetic. */
const mb2fmuLive = (() => {
  class Unit {
    constructor(record, instance) {
      this.record = record;
      this.web = instance.exports;
      this.tables = new mb2fmuArithmetic.Tables(record.scene);
      this.chosen = new Map(); // "kind index" → value
    }

    static async load(record, unpacked) {
      const module = new WebAssembly.Module(await unpacked(record.module)); // small enough for the page's own thread
      return new Unit(record, new WebAssembly.Instance(module, {}));
    }

    array(name, length) {
      return new Float64Array(this.web.memory.buffer, this.web[name](), length);
    }

    message() {
      const bytes = new Uint8Array(this.web.memory.buffer, this.web.web_message());
      return new TextDecoder().decode(bytes.slice(0, bytes.indexOf(0)));
    }

    value(kind, knob) {
      const key = `${kind} ${knob[5]}`;
      return this.chosen.has(key) ? this.chosen.get(key) : knob[2];
    }

    /** Inputs at a time: those that were set, else the signals of the experiment. */
    inputs(t, into, x, p) {
      const knobs = this.record.inputs;
      const given = this.record.scene.entries.signals;
      if (given && given.length) this.tables.evaluate(["signals"], t, x, into, p, this.record.scene.memory);
      knobs.forEach((knob, k) => {
        if (this.chosen.has(`inputs ${knob[5]}`)) into[k] = this.chosen.get(`inputs ${knob[5]}`);
        else into[k] = given && given.length ? this.tables.values[given[k]] : knob[2];
      });
    }

    /** Steps through times; a row of [states…, outputs…] at each. Throws where the FMU fails. */
    run(times) {
      const { states, parameters, signals, sizes } = this.record;
      const [nx, nr, np] = sizes;
      const p = Float64Array.from(parameters, (knob) => this.value("parameters", knob));
      const x0 = Float64Array.from(states, (knob) => this.value("states", knob));
      const r = new Float64Array(nr);
      const failed = (code, t) => {
        if (code !== 0) throw new Error(`at ${t.toPrecision(4)} s: ${this.message() || "the FMU stops"}`);
      };
      this.array("web_parameters", np).set(p);
      this.array("web_states", nx).set(x0);
      this.inputs(times[0], r, x0, p);
      this.array("web_inputs", nr).set(r);
      failed(this.web.web_start(times[0]), times[0]);
      const rows = [];
      const held = [];
      for (let i = 0; i < times.length; i++) {
        if (i > 0) {
          const before = Float64Array.from(r);
          this.inputs(times[i - 1], r, x0, p);
          if (r.some((value, k) => value !== before[k])) {
            this.array("web_inputs", nr).set(r);
            this.web.web_inputs_changed();
          }
          failed(this.web.web_step(times[i] - times[i - 1]), times[i]);
        }
        failed(this.web.web_evaluate(), times[i]);
        rows.push([...this.array("web_states", nx), ...this.array("web_outputs", signals.length - nx)]);
        held.push(Float64Array.from(r));
      }
      return { rows, held, p };
    }

    /** Seven channels per pose, and three per arrow, as the viewer moves them. */
    poses(times, { rows, held: inputs, p }, scales) {
      const nx = this.record.sizes[0];
      const keys = this.record.keys;
      const entries = ["points", "rotations", "vectors"];
      let memory = this.record.scene.memory;
      const held = {}; // what is not finite keeps the value of the instant before
      const found = (entry) => (held[entry] = this.tables.get(entry).map((v, k) => (Number.isFinite(v) ? v : (held[entry] || [])[k] || 0)));
      const poses = keys.flatMap(() => Array.from({ length: 7 }, () => new Float32Array(times.length)));
      const vectors = scales.flatMap(() => Array.from({ length: 3 }, () => new Float32Array(times.length)));
      const last = keys.map(() => [1, 0, 0, 0]);
      times.forEach((t, i) => {
        this.tables.evaluate([...entries, "remember"], t, rows[i].slice(0, nx), inputs[i], p, memory);
        const [points, rotations, arrows] = entries.map(found);
        const next = this.tables.get("remember");
        if (next.every(Number.isFinite)) memory = next;
        keys.forEach(([point, frame], k) => {
          const q = quaternion(rotations.slice(9 * frame, 9 * frame + 9));
          const turned = q.reduce((sum, part, j) => sum + part * last[k][j], 0) < 0 ? q.map((part) => -part) : q;
          last[k] = turned;
          for (let j = 0; j < 3; j++) poses[7 * k + j][i] = points[3 * point + j];
          for (let j = 0; j < 4; j++) poses[7 * k + 3 + j][i] = turned[j];
        });
        vectors.forEach((channel, k) => (channel[i] = arrows[k] * scales[Math.floor(k / 3)]));
      });
      return { poses, vectors };
    }
  }

  /** (w, x, y, z) of a rotation matrix row by row; by its largest component (Shepperd 1978). */
  function quaternion(m) {
    const sums = [m[0] + m[4] + m[8], m[0] - m[4] - m[8], m[4] - m[0] - m[8], m[8] - m[0] - m[4]];
    const best = sums.indexOf(Math.max(...sums));
    const big = Math.sqrt(Math.max(1 + sums[best], 0)) / 2 || 0.5;
    const f = 1 / (4 * big);
    const [a, b, c] = [m[7] - m[5], m[2] - m[6], m[3] - m[1]].map((v) => v * f);
    const [d, e, g] = [m[1] + m[3], m[2] + m[6], m[5] + m[7]].map((v) => v * f);
    return [[big, a, b, c], [a, big, d, e], [b, d, big, g], [c, e, g, big]][best];
  }

  /** Sliders beside the picture. */
  class Panel {
    constructor(unit, player, part, data) {
      Object.assign(this, { unit, player, part, data });
      this.kept = null;
      const box = part("knobs");
      const groups = [["parameters", "Parameters"], ["states", "Start values"], ["inputs", "Inputs"]];
      groups.forEach(([kind, title]) => {
        const knobs = unit.record[kind];
        if (!knobs.length) return;
        const group = document.createElement("fieldset");
        const legend = document.createElement("legend");
        legend.textContent = title;
        group.append(legend, ...knobs.map((knob) => this.knob(kind, knob)));
        box.append(group);
      });
      part("live-reset").addEventListener("click", () => this.reset());
      part("live").hidden = false;
    }

    knob(kind, knob) {
      const [name, unit, value, low, high, index] = knob;
      const label = document.createElement("label");
      const text = document.createElement("span");
      text.textContent = unit === "1" ? name : `${name} in ${unit}`;
      label.title = text.textContent;
      const slider = Object.assign(document.createElement("input"), { type: "range", min: 0, max: 1000, step: 1 });
      const number = Object.assign(document.createElement("input"), { type: "number", step: "any" });
      const show = (v, all = true) => {
        slider.value = high > low ? (1000 * (v - low)) / (high - low) : 0;
        if (all) number.value = Number(v.toPrecision(5));
      };
      slider.disabled = high <= low;
      slider.setAttribute("aria-label", name);
      number.setAttribute("aria-label", name);
      const take = (v) => {
        if (!Number.isFinite(v)) return;
        this.unit.chosen.set(`${kind} ${index}`, v);
        this.wake();
      };
      slider.addEventListener("input", () => {
        const v = low + (slider.value / 1000) * (high - low);
        number.value = Number(v.toPrecision(5));
        take(Number(number.value));
      });
      number.addEventListener("input", () => {
        const v = number.valueAsNumber;
        if (Number.isFinite(v)) show(v, false);
        take(v);
      });
      show(value);
      (this.shows = this.shows || []).push(() => show(value));
      label.append(text, slider, number);
      return label;
    }

    reset() {
      this.unit.chosen.clear();
      this.shows.forEach((show) => show());
      this.part("live-state").textContent = "";
      if (this.kept) this.player.replace(this.kept.poses, this.kept.vectors, this.kept.values);
    }

    wake() {
      if (this.waiting) return;
      this.waiting = requestAnimationFrame(() => {
        this.waiting = undefined;
        this.run();
      });
    }

    run() {
      const { data, player, unit } = this;
      const state = this.part("live-state");
      if (!this.kept) this.kept = player.kept();
      const begin = performance.now();
      try {
        const result = unit.run(data.time);
        const moved = unit.poses(data.time, result, data.arrowScales);
        const values = data.signals.names.map((name, k) => {
          const column = unit.record.signals.indexOf(name);
          if (column >= 0) return Float32Array.from(result.rows, (row) => row[column]);
          const input = unit.record.inputs.findIndex((knob) => knob[0] === name);
          return input >= 0 ? Float32Array.from(result.held, (row) => row[input]) : this.kept.values[k];
        });
        player.replace(moved.poses, moved.vectors, values);
        state.textContent = `run here in ${(performance.now() - begin).toFixed(0)} ms`;
        state.dataset.bad = "";
      } catch (error) {
        state.textContent = error.message;
        state.dataset.bad = "yes";
      }
    }
  }

  return { Unit, Panel };
})();
