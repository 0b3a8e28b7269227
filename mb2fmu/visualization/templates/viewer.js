"use strict";
/* The animation: reads the data beside it, unpacks three.js, and moves poses in time.
 *
 * Data (see page.py): "poses" holds per pose x, y, z and a quaternion w, x, y, z over "time"; "solids" stand still in
 * their pose; pose -1 is the ground. The address may end in #t=1.5 (open at that time), #play or #pause.
 */
(() => {
  const root = document.querySelector(".animation");
  const data = JSON.parse(root.querySelector(".animation-data").textContent);
  const part = (name) => root.querySelector(`[data-part="${name}"]`);
  const GROUND = -1;
  const STEPS = 65535;
  const RADIUS = Math.hypot(...data.span) / 2;
  const TRAVELS = data.travels && data.bodies.length > 0; // then the eye goes with it

  async function unpacked(text) {
    const packed = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
    return new Uint8Array(await new Response(stream).arrayBuffer());
  }

  /** Channels as arrays over time; one that does not change is a number. See encoding.py. */
  async function channels(record) {
    const bytes = await unpacked(record.data);
    const count = data.count;
    let at = 0;
    return record.ranges.map((range) => {
      if (range.length === 1) return range[0];
      const values = new Float32Array(count);
      let step = 0;
      for (let i = 0; i < count; i++) {
        step = (step + bytes[at + i] + 256 * bytes[at + count + i]) & 0xffff;
        values[i] = range[0] + (step / STEPS) * (range[1] - range[0]);
      }
      at += 2 * count;
      return values;
    });
  }

  const sample = (channel, i) => (typeof channel === "number" ? channel : channel[i]);
  const between = (channel, i, share) =>
    typeof channel === "number" ? channel : channel[i] + share * (channel[i + 1] - channel[i]);

  /** Index of the last frame at or before t, and how far t is on the way to the next. */
  function frame(t) {
    const times = data.time;
    let low = 0;
    let high = Math.max(times.length - 2, 0);
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (times[middle] <= t) low = middle;
      else high = middle - 1;
    }
    if (times.length < 2) return [0, 0];
    return [low, Math.min(Math.max((t - times[low]) / (times[low + 1] - times[low]), 0), 1)];
  }

  function bytesOf(text) {
    return Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0)).buffer;
  }

  class Scene {
    constructor(THREE, moving) {
      this.THREE = THREE;
      this.moving = moving;
      this.scene = new THREE.Scene();
      this.world = new THREE.Group();
      this.scene.add(this.world);
      this.main = this.figure(moving.poses, null);
      this.base = moving.poses; // what the overlay's difference belongs to, whatever is shown later
      this.overlay = moving.apart ? this.figure(this.magnified(1), "#7f8894") : null;
      if (this.overlay) this.overlay.all.visible = part("overlay").checked;
      this.lines = data.lines.map((line) => this.line(line));
      this.traces = data.traces.map((trace) => this.trace(trace));
      this.arrows = data.arrows.map((arrow) => this.arrow(arrow));
      this.touches = moving.touches ? new Touches(THREE, this, moving.touches) : null;
      this.floor = this.grid();
      if (this.floor) this.ground();
      this.scene.add(new THREE.HemisphereLight(0xffffff, 0x8a8f9c, 0.8));
      this.lamp = new THREE.DirectionalLight(0xffffff, 0.5);
      this.scene.add(this.lamp, this.lamp.target);
    }

    geometry(solid) {
      const THREE = this.THREE;
      const [a, b, c] = solid.sizes;
      const fine = data.solids.length > 120 ? 0.5 : 1;
      const round = (n) => Math.max(12, Math.round(n * fine));
      if (solid.kind === "cylinder") return new THREE.CylinderGeometry(b, b, a, round(64));
      if (solid.kind === "box") return new THREE.BoxGeometry(a, b, c);
      if (solid.kind === "sphere") return new THREE.SphereGeometry(a, round(64), round(32));
      if (solid.kind === "ellipsoid") return new THREE.SphereGeometry(1, round(64), round(40)).scale(a, b, c);
      const mesh = data.meshes[solid.mesh];
      const geometry = new THREE.BufferGeometry();
      geometry.setAttribute("position", new THREE.BufferAttribute(new Float32Array(bytesOf(mesh.vertices)), 3));
      geometry.setIndex(new THREE.BufferAttribute(new Uint32Array(bytesOf(mesh.faces)), 1));
      if (mesh.shapes) {
        const all = new Float32Array(bytesOf(mesh.shapes));
        const size = all.length / solid.modes.length;
        geometry.morphAttributes.position = solid.modes.map(
          (_, k) => new THREE.BufferAttribute(all.subarray(k * size, (k + 1) * size), 3),
        );
        geometry.morphTargetsRelative = true;
      }
      const flat = geometry.toNonIndexed().scale(a, a, a);
      flat.computeVertexNormals();
      return flat;
    }

    /** All solids in their poses; an overlay has one pale color. */
    figure(poses, pale) {
      const THREE = this.THREE;
      const all = new THREE.Group();
      const groups = [];
      for (let i = 0; i < poses.length / 7; i++) {
        const group = new THREE.Group();
        const axes = new THREE.AxesHelper(9 * data.unit);
        axes.visible = false;
        if (!pale) group.add(axes);
        groups.push({ group, axes });
        all.add(group);
      }
      const still = new THREE.Group();
      const axes = new THREE.AxesHelper(14 * data.unit);
      axes.visible = false;
      still.add(axes);
      all.add(still);
      const ground = { group: still, axes };
      const bent = [];
      for (const solid of data.solids) {
        if (pale && solid.pose === GROUND) continue;
        const see = pale ? 0.3 * solid.opacity : solid.opacity;
        const material = new THREE.MeshLambertMaterial({ color: pale || solid.color, side: THREE.DoubleSide });
        if (see < 1) Object.assign(material, { transparent: true, opacity: see, depthWrite: false });
        const mesh = new THREE.Mesh(this.geometry(solid), material);
        mesh.castShadow = !pale && see > 0.5;
        mesh.userData.solid = solid;
        if (solid.modes) {
          mesh.frustumCulled = false;
          bent.push(mesh);
        }
        mesh.position.fromArray(solid.local);
        const [w, x, y, z] = solid.turn;
        mesh.quaternion.set(x, y, z, w);
        (solid.pose === GROUND ? ground : groups[solid.pose]).group.add(mesh);
      }
      this.world.add(all);
      return { poses, groups, ground, bent, all };
    }

    /** The overlay's poses, its difference from what was computed with it so many times larger. */
    magnified(factor) {
      return this.base.map((channel, k) => {
        const apart = this.moving.apart[k];
        if (typeof channel === "number" && typeof apart === "number") return channel + factor * apart;
        return Float32Array.from({ length: data.count }, (_, i) => sample(channel, i) + factor * sample(apart, i));
      });
    }

    move(figure, i, share) {
      const q = new this.THREE.Quaternion();
      figure.groups.forEach(({ group }, k) => {
        const c = figure.poses.slice(7 * k, 7 * k + 7);
        group.position.set(between(c[0], i, share), between(c[1], i, share), between(c[2], i, share));
        q.set(between(c[4], i, share), between(c[5], i, share), between(c[6], i, share), between(c[3], i, share));
        group.quaternion.copy(q.normalize());
        group.updateMatrix();
      });
      figure.bent.forEach((mesh) => this.bend(figure, mesh));
    }

    /** A surface by its modal coordinates: how far poses are from its own, along its x axis. */
    bend({ groups }, mesh) {
      const { pose, modes, bend } = mesh.userData.solid;
      const { position, quaternion } = groups[pose].group;
      const axis = new this.THREE.Vector3(1, 0, 0).applyQuaternion(quaternion);
      modes.forEach((k, mode) => {
        mesh.morphTargetInfluences[mode] = bend * groups[k].group.position.clone().sub(position).dot(axis);
      });
    }

    /** Where an anchor is in the current frame. */
    place(anchor) {
      const v = new this.THREE.Vector3().fromArray(anchor.local);
      return anchor.pose === GROUND ? v : v.applyMatrix4(this.main.groups[anchor.pose].group.matrix);
    }

    line(line) {
      const THREE = this.THREE;
      const geometry = new THREE.BufferGeometry();
      const size = line.kind === "pathway" ? 130 * (line.anchors.length - 1) : line.anchors.length;
      geometry.setAttribute("position", new THREE.BufferAttribute(new Float32Array(3 * size), 3));
      const material = new THREE.LineBasicMaterial({ color: line.color });
      const object = new THREE.Line(geometry, material);
      object.frustumCulled = false;
      this.world.add(object);
      return { line, object };
    }

    moveLine({ line, object }) {
      const points = line.anchors.map((anchor) => this.place(anchor));
      const array = object.geometry.attributes.position;
      if (line.kind !== "pathway") points.forEach((p, k) => array.setXYZ(k, p.x, p.y, p.z));
      else for (let k = 0; k + 1 < points.length; k++) this.coil(array, 130 * k, points[k], points[k + 1]);
      array.needsUpdate = true;
    }

    coil(array, first, a, b) {
      const along = b.clone().sub(a);
      const length = along.length() || 1;
      along.divideScalar(length);
      const side = new this.THREE.Vector3(...(Math.abs(along.x) < 0.8 ? [1, 0, 0] : [0, 1, 0])).cross(along).normalize();
      const other = along.clone().cross(side);
      for (let k = 0; k < 130; k++) {
        const s = k / 129;
        const inside = Math.min(Math.max((s - 0.12) / 0.76, 0), 1);
        const radius = inside > 0 && inside < 1 ? 1.6 * data.unit : 0;
        const angle = 2 * Math.PI * 9 * inside;
        const p = a.clone().addScaledVector(along, s * length);
        p.addScaledVector(side, radius * Math.cos(angle)).addScaledVector(other, radius * Math.sin(angle));
        array.setXYZ(first + k, p.x, p.y, p.z);
      }
    }

    /** Where an anchor is at all times. */
    track(anchor, points) {
      for (let i = 0; i < data.count; i++) {
        this.move(this.main, Math.min(i, Math.max(data.count - 2, 0)), i === data.count - 1 && i > 0 ? 1 : 0);
        this.place(anchor).toArray(points, 3 * i);
      }
      return points;
    }

    trace(trace) {
      const THREE = this.THREE;
      const points = this.track(trace, new Float32Array(3 * data.count));
      const geometry = new THREE.BufferGeometry();
      geometry.setAttribute("position", new THREE.BufferAttribute(points, 3));
      geometry.setAttribute("color", new THREE.BufferAttribute(new Float32Array(4 * data.count).fill(1), 4));
      const strong = new THREE.Line(
        geometry,
        new THREE.LineBasicMaterial({ color: trace.color, vertexColors: true, transparent: true }),
      );
      const plain = new THREE.BufferGeometry();
      plain.setAttribute("position", new THREE.BufferAttribute(points.slice(), 3));
      const whole = new THREE.Line(
        plain,
        new THREE.LineBasicMaterial({ color: trace.color, transparent: true, opacity: 0.25 }),
      );
      strong.frustumCulled = whole.frustumCulled = false;
      this.world.add(strong, whole);
      return { strong, whole };
    }

    arrow(arrow) {
      const THREE = this.THREE;
      const material = new THREE.MeshLambertMaterial({ color: arrow.color });
      const group = new THREE.Group();
      const shaft = new THREE.Mesh(new THREE.CylinderGeometry(1, 1, 1, 12), material);
      const heads = (arrow.torque ? [0, 1] : [0]).map(
        () => new THREE.Mesh(new THREE.ConeGeometry(1, 1, 16), material),
      );
      group.add(shaft, ...heads);
      this.world.add(group);
      return { arrow, group, shaft, heads };
    }

    moveArrow(object, i, share) {
      const first = 3 * object.arrow.vector;
      const c = this.moving.vectors.slice(first, first + 3);
      this.point(object, new this.THREE.Vector3(...c.map((channel) => between(channel, i, share))));
    }

    /** An arrow of this length from where it acts. */
    point({ arrow, group, shaft, heads }, v) {
      const length = v.length();
      group.visible = length > 0.05 * data.unit && arrowsWanted();
      if (!group.visible) return;
      group.position.copy(this.place(arrow));
      group.quaternion.setFromUnitVectors(new this.THREE.Vector3(0, 1, 0), v.divideScalar(length));
      const head = Math.min(3 * data.unit, 0.5 * length);
      shaft.scale.set(0.4 * data.unit, length - head, 0.4 * data.unit);
      shaft.position.set(0, (length - head) / 2, 0);
      heads.forEach((cone, k) => {
        cone.scale.set(0.45 * head, head, 0.45 * head);
        cone.position.set(0, length - head / 2 - 0.7 * k * head, 0);
      });
    }

    /** A plane on which what stands above it throws its shadow, from straight above and a little from the side. */
    ground() {
      const THREE = this.THREE;
      const up = new THREE.Vector3(...data.up);
      const plane = new THREE.Mesh(
        new THREE.PlaneGeometry(8 * RADIUS, 8 * RADIUS),
        new THREE.ShadowMaterial({ color: 0x10151d, opacity: 0.22 }),
      );
      plane.receiveShadow = true;
      plane.quaternion.setFromUnitVectors(new THREE.Vector3(0, 0, 1), up);
      plane.position.copy(this.floor.position).addScaledVector(up, -0.02 * data.unit);
      this.world.add(plane);
      this.plane = plane;
      this.sun = new THREE.DirectionalLight(0xffffff, 0.12);
      this.sun.castShadow = true;
      this.sun.shadow.mapSize.set(2048, 2048);
      this.sun.shadow.radius = 3;
      this.sunReach = TRAVELS ? 1.4 * data.near : 1.3 * RADIUS;
      const box = this.sun.shadow.camera;
      [box.left, box.right, box.top, box.bottom] = [-1, 1, 1, -1].map((side) => side * this.sunReach);
      [box.near, box.far] = [0.01 * this.sunReach, 8 * this.sunReach];
      this.scene.add(this.sun, this.sun.target);
    }

    /** Light and shadow go with what is looked at. */
    shine(target) {
      if (!this.sun) return;
      const up = new this.THREE.Vector3(...data.up);
      const side = new this.THREE.Vector3(...data.toward).addScaledVector(up, -this.slant(up)).normalize();
      this.sun.position.copy(target).addScaledVector(up, 4 * this.sunReach).addScaledVector(side, 0.8 * this.sunReach);
      this.sun.target.position.copy(target);
    }

    slant(up) {
      return up.x * data.toward[0] + up.y * data.toward[1] + up.z * data.toward[2];
    }

    /** A grid below everything; none where all happens in one plane. */
    grid() {
      if (data.flat) return null;
      const THREE = this.THREE;
      const wanted = (TRAVELS ? data.near : RADIUS) / 4; // what travels crosses many squares
      const power = 10 ** Math.floor(Math.log10(wanted));
      const step = [1, 2, 5, 10].map((m) => m * power).find((size) => size >= wanted);
      const count = Math.min(2 * Math.ceil((1.3 * RADIUS) / step), 400);
      const grid = new THREE.GridHelper(count * step, count, 0x8a94a3, 0x8a94a3);
      Object.assign(grid.material, { transparent: true, opacity: 0.42, depthWrite: false });
      const up = new THREE.Vector3(...data.up);
      grid.quaternion.setFromUnitVectors(new THREE.Vector3(0, 1, 0), up);
      const centre = new THREE.Vector3(...data.centre);
      grid.position.copy(centre.addScaledVector(up, data.floor - centre.dot(up)));
      this.world.add(grid);
      return grid;
    }

    /** Other poses over the same times: of a run with other values. */
    replace(poses, vectors) {
      this.main.poses = poses;
      this.moving.vectors = vectors;
      this.traces.forEach((trace, k) => {
        const array = trace.strong.geometry.attributes.position;
        const copy = trace.whole.geometry.attributes.position;
        this.track(data.traces[k], array.array);
        copy.array.set(array.array);
        array.needsUpdate = copy.needsUpdate = true;
      });
    }

    /** A path up to a frame: what was passed long ago, a third of the run, is as pale as the whole path. */
    fade(geometry, end) {
      const tail = Math.max(2, Math.round(0.35 * data.count));
      const first = Math.max(0, end - tail);
      const color = geometry.attributes.color;
      for (let k = first; k < end; k++) color.setW(k, (k + 1 - (end - tail)) / tail);
      color.needsUpdate = true;
      geometry.setDrawRange(first, end - first);
    }

    set(t) {
      const [i, share] = frame(t);
      this.move(this.main, i, share);
      if (this.overlay) this.move(this.overlay, i, share);
      this.lines.forEach((line) => this.moveLine(line));
      this.traces.forEach(({ strong }) => this.fade(strong.geometry, i + 1));
      this.arrows.forEach((arrow) => this.moveArrow(arrow, i, share));
      if (this.touches) this.touches.set(t, i);
    }
  }

  /** Contacts, latches and frictions: what they are as words beside the picture; where that is known, arrows of their
   * forces, marks of what is held, and flashes of impacts. Data: see contact_overlay.py. */
  class Touches {
    constructor(THREE, scene, values) {
      this.THREE = THREE;
      this.scene = scene;
      this.values = values;
      this.each = data.touches.each;
      this.lasts = (data.time[data.time.length - 1] - data.time[0]) / 25; // of a flash, in s of the motion
      this.known = true; // false: another run is shown, with forces that the page does not have
      this.places = data.touches.pushed.map((place) => this.place(place));
      this.chips = this.each.map((touch) => {
        const chip = document.createElement("li");
        part("touches").append(chip);
        return chip;
      });
    }

    place(place) {
      const THREE = this.THREE;
      const material = new THREE.MeshBasicMaterial({ color: 0xffb000, transparent: true, depthWrite: false });
      const flash = new THREE.Mesh(new THREE.SphereGeometry(1, 32, 16), material);
      const mark = new THREE.Mesh(new THREE.SphereGeometry(1, 24, 12), new THREE.MeshBasicMaterial());
      this.scene.world.add(flash, mark);
      return { place, flash, mark, arrow: this.scene.arrow({ ...place, color: "#d62728", torque: false }) };
    }

    /** The latest impact that still shows, and how much of its light is left. */
    impact(touch, t) {
      for (let k = touch.impacts.length - 1; k >= 0; k--) {
        const passed = t - touch.impacts[k][0];
        if (passed >= 0) return passed < this.lasts ? [touch.impacts[k], 1 - passed / this.lasts] : null;
      }
      return null;
    }

    set(t, i) {
      const last = t >= data.time[data.time.length - 1];
      const row = last ? data.count - 1 : i;
      const now = this.each.map((touch, k) => ({
        state: Math.round(sample(this.values[2 * k], row)),
        effort: sample(this.values[2 * k + 1], row),
        impact: this.impact(touch, t),
      }));
      this.each.forEach((touch, k) => this.tell(this.chips[k], touch, now[k]));
      this.places.forEach((each, k) => this.show(each, 2 * this.each.length + 3 * k, row, now[each.place.touch]));
    }

    tell(chip, touch, { state, effort, impact }) {
      const held = state ? ` ${number(effort, 3)} ${touch.unit}` : "";
      const impulseText = impact && impact[0][2] ? ` ⚡ ${number(impact[0][2], 3)} ${touch.impulseUnit}` : impact ? " ⚡" : "";
      const text = this.known ? `${touch.name}: ${touch.words[state]}${held}${impulseText}` : `${touch.name}: not known here`;
      if (chip.textContent !== text) chip.textContent = text;
      chip.dataset.state = this.known ? ["open", "held", "slides"][state] : "open";
      chip.dataset.impact = this.known && impact ? "yes" : "no";
    }

    show({ place, flash, mark, arrow }, first, row, { state, impact }) {
      const at = this.scene.place(place);
      const wanted = this.known && arrowsWanted();
      const c = this.values.slice(first, first + 3).map((channel) => sample(channel, row));
      this.scene.point(arrow, new this.THREE.Vector3(...(this.known && state ? c : [0, 0, 0])));
      mark.visible = wanted && state > 0;
      mark.material.color.set(state === 1 ? 0x14713d : 0xc4620f);
      mark.scale.setScalar(1.3 * data.unit);
      mark.position.copy(at);
      flash.visible = wanted && Boolean(impact);
      if (!impact) return;
      flash.position.copy(at);
      flash.scale.setScalar((2.5 + 5 * Math.sqrt(impact[0][1])) * data.unit);
      flash.material.opacity = 0.75 * impact[1];
    }
  }

  const arrowsWanted = () => !part("arrows") || part("arrows").checked;

  /** Turns about what is looked at: drag, two fingers, wheel. */
  class Orbit {
    constructor(THREE, canvas, changed) {
      this.THREE = THREE;
      // What moves in a plane is seen from its front, from so far that there is no perspective.
      this.camera = new THREE.PerspectiveCamera(data.flat ? 1.5 : 30, 1, 0.01, 1000);
      this.changed = changed;
      this.up = new THREE.Vector3(...data.up);
      const toward = new THREE.Vector3(...data.toward);
      this.front = toward.clone().addScaledVector(this.up, -toward.dot(this.up)).normalize();
      this.side = this.up.clone().cross(this.front);
      this.elevation0 = Math.asin(Math.min(Math.max(toward.dot(this.up), -1), 1));
      this.follow = TRAVELS ? data.bodies[0].pose : -1;
      this.pointers = new Map();
      this.reset();
      this.listen(canvas);
    }

    reset() {
      this.azimuth = 0;
      this.elevation = data.flat ? 0 : this.elevation0;
      this.zoom = TRAVELS ? (0.8 * data.near) / RADIUS : 1;
      this.shift = new this.THREE.Vector3();
      this.changed();
    }

    /** Views by name: from the front, from the right, from above, as at first. */
    preset(name) {
      const quarter = Math.PI / 2;
      const views = { front: [0, 0], side: [quarter, 0], top: [0, 1.55] };
      const [azimuth, elevation] = views[name] || [0, data.flat ? 0 : this.elevation0];
      Object.assign(this, { azimuth, elevation });
      this.changed();
    }

    listen(canvas) {
      canvas.addEventListener("pointerdown", (event) => {
        canvas.setPointerCapture(event.pointerId);
        this.pointers.set(event.pointerId, [event.clientX, event.clientY]);
      });
      const release = (event) => this.pointers.delete(event.pointerId);
      canvas.addEventListener("pointerup", release);
      canvas.addEventListener("pointercancel", release);
      canvas.addEventListener("pointermove", (event) => this.drag(event, canvas));
      canvas.addEventListener("contextmenu", (event) => event.preventDefault());
      canvas.addEventListener(
        "wheel",
        (event) => {
          if (!event.ctrlKey && !canvas.matches(":focus")) return; // the page scrolls until the picture is chosen
          event.preventDefault();
          this.scale(Math.exp(0.0012 * event.deltaY));
        },
        { passive: false },
      );
    }

    drag(event, canvas) {
      const before = this.pointers.get(event.pointerId);
      if (!before) return;
      const now = [event.clientX, event.clientY];
      const [dx, dy] = [now[0] - before[0], now[1] - before[1]];
      if (this.pointers.size === 2) {
        const other = [...this.pointers].find(([id]) => id !== event.pointerId)[1];
        const distance = (p) => Math.hypot(p[0] - other[0], p[1] - other[1]) || 1;
        this.scale(distance(before) / distance(now));
        this.pan(dx / 2, dy / 2, canvas);
      } else if (event.buttons === 2 || event.buttons === 4 || event.shiftKey) {
        this.pan(dx, dy, canvas);
      } else {
        this.azimuth -= (2.2 * Math.PI * dx) / canvas.clientWidth;
        this.elevation = Math.min(Math.max(this.elevation + (3 * dy) / canvas.clientHeight, -1.55), 1.55);
      }
      this.pointers.set(event.pointerId, now);
      this.changed();
    }

    pan(dx, dy, canvas) {
      const size = (2 * this.distance() * Math.tan((this.camera.fov * Math.PI) / 360)) / canvas.clientHeight;
      const x = new this.THREE.Vector3().setFromMatrixColumn(this.camera.matrix, 0);
      const y = new this.THREE.Vector3().setFromMatrixColumn(this.camera.matrix, 1);
      this.shift.addScaledVector(x, -dx * size).addScaledVector(y, dy * size);
    }

    scale(factor) {
      this.zoom = Math.min(Math.max(this.zoom * factor, 0.02), 20);
      this.changed();
    }

    distance() {
      const slope = Math.tan((this.camera.fov * Math.PI) / 360);
      const [wide, high, deep] = data.span;
      return this.zoom * ((1.12 * Math.max(high, wide / this.camera.aspect)) / (2 * slope) + deep / 2);
    }

    look(scene) {
      const target =
        this.follow >= 0
          ? scene.main.groups[this.follow].group.position.clone()
          : new this.THREE.Vector3(...data.centre);
      target.add(this.shift);
      const [ca, sa] = [Math.cos(this.azimuth), Math.sin(this.azimuth)];
      const [ce, se] = [Math.cos(this.elevation), Math.sin(this.elevation)];
      const direction = this.front.clone().multiplyScalar(ca * ce).addScaledVector(this.side, sa * ce);
      direction.addScaledVector(this.up, se);
      const distance = this.distance();
      this.camera.up.copy(this.up);
      this.camera.position.copy(target).addScaledVector(direction, distance);
      this.camera.near = Math.max(distance / 500, distance - 20 * RADIUS);
      this.camera.far = distance + 40 * RADIUS;
      this.camera.lookAt(target);
      this.camera.updateMatrix();
      this.camera.updateProjectionMatrix();
      scene.lamp.position.copy(this.camera.position).addScaledVector(this.up, 0.5 * distance);
      scene.lamp.target.position.copy(target);
      scene.shine(target);
    }
  }

  /** Variables over time, one panel per unit, in step with the motion. */
  class Plot {
    constructor(values, seek) {
      this.values = values;
      this.seek = seek;
      this.box = part("plot");
      this.shown = new Set(data.signals.shown);
      if (!data.signals.names.length) return;
      this.choices();
      this.draw();
      const scrub = (event) => {
        if (event.type === "pointermove" && !event.buttons) return;
        const svg = event.target.closest("svg");
        if (!svg) return;
        const box = svg.getBoundingClientRect();
        const x = ((event.clientX - box.left) / box.width) * this.width;
        const share = (x - Plot.LEFT) / (this.width - Plot.LEFT - Plot.RIGHT);
        const [first, last] = [data.time[0], data.time[data.time.length - 1]];
        this.seek(first + Math.min(Math.max(share, 0), 1) * (last - first));
      };
      this.box.addEventListener("pointerdown", scrub);
      this.box.addEventListener("pointermove", scrub);
    }

    choices() {
      const list = part("variables");
      data.signals.names.forEach((name, k) => {
        const label = document.createElement("label");
        const input = document.createElement("input");
        input.type = "checkbox";
        input.checked = this.shown.has(k);
        input.addEventListener("change", () => {
          if (input.checked) this.shown.add(k);
          else this.shown.delete(k);
          this.draw();
          this.set(this.t || 0);
        });
        label.append(input, ` ${name}`);
        list.append(label);
      });
    }

    draw() {
      this.width = Math.max(this.box.clientWidth, 320);
      this.box.textContent = "";
      this.cursors = [];
      this.readings = [];
      const units = new Map();
      [...this.shown].sort((a, b) => a - b).forEach((k) => {
        const unit = data.signals.units[k];
        units.set(unit, [...(units.get(unit) || []), k]);
      });
      [...units].forEach(([unit, members], place) => this.panel(unit, members, place === units.size - 1));
    }

    panel(unit, members, last) {
      const { LEFT, RIGHT, HEIGHT } = Plot;
      const WIDTH = this.width;
      const name = "http://www.w3.org/2000/svg";
      const make = (tag, attributes, text) => {
        const element = document.createElementNS(name, tag);
        Object.entries(attributes).forEach(([key, value]) => element.setAttribute(key, value));
        if (text !== undefined) element.textContent = text;
        svg.append(element);
        return element;
      };
      const svg = document.createElementNS(name, "svg");
      const foot = last ? 30 : 8;
      svg.setAttribute("viewBox", `0 0 ${WIDTH} ${HEIGHT + foot}`);
      svg.setAttribute("role", "img");
      let [low, high] = [Infinity, -Infinity];
      members.forEach((k) => {
        for (let i = 0; i < data.count; i++) {
          const v = sample(this.values[k], i);
          low = Math.min(low, v);
          high = Math.max(high, v);
        }
      });
      const room = 0.06 * (high - low) || Math.abs(high) * 1e-3 || 1;
      [low, high] = [low - room, high + room];
      const [t0, t1] = [data.time[0], data.time[data.time.length - 1] || 1];
      const x = (t) => LEFT + ((t - t0) / (t1 - t0 || 1)) * (WIDTH - LEFT - RIGHT);
      const y = (v) => 8 + (1 - (v - low) / (high - low)) * (HEIGHT - 8);
      ticks(low, high, 4).forEach((v) => {
        make("path", { class: "rule", d: `M${LEFT} ${y(v).toFixed(1)}H${WIDTH - RIGHT}` });
        make("text", { x: LEFT - 5, y: (y(v) + 3.5).toFixed(1), class: "end" }, number(v));
      });
      ticks(t0, t1, 6).forEach((t) => {
        make("path", { class: "rule", d: `M${x(t).toFixed(1)} 8V${HEIGHT}` });
        if (!last) return;
        const cut = x(t) + 4 * number(t).length > WIDTH; // half as wide as the label: it would leave the picture
        make("text", { x: cut ? WIDTH : x(t).toFixed(1), y: HEIGHT + 13, class: cut ? "end" : "middle" }, number(t));
      });
      if (last) make("text", { x: (LEFT + WIDTH - RIGHT) / 2, y: HEIGHT + 27, class: "middle" }, "time in s");
      const legend = document.createElement("p");
      members.forEach((k, style) => {
        const points = data.time.map((t, i) => `${x(t).toFixed(1)} ${y(sample(this.values[k], i)).toFixed(1)}`);
        make("path", { class: `curve curve-${style % 6}`, d: `M${points.join("L")}` });
        const entry = document.createElement("span");
        entry.className = `key key-${style % 6}`;
        const reading = document.createElement("b");
        entry.append(`${data.signals.names[k]} `, reading, unit === "1" ? "" : ` ${unit}`);
        this.readings.push([k, reading]);
        legend.append(entry);
      });
      svg.setAttribute("aria-label", members.map((k) => data.signals.names[k]).join(", "));
      const cursor = make("path", { class: "cursor", d: `M0 8V${HEIGHT}` });
      this.cursors.push((t) => cursor.setAttribute("transform", `translate(${x(t).toFixed(2)} 0)`));
      this.box.append(legend, svg);
    }

    resize() {
      if (!this.cursors || Math.abs(this.box.clientWidth - this.width) < 8) return;
      this.draw();
      this.set(this.t || 0);
    }

    set(t) {
      this.t = t;
      if (!this.cursors) return;
      const [i, share] = frame(t);
      this.cursors.forEach((move) => move(t));
      this.readings.forEach(([k, element]) => {
        const [low, high = low] = data.signals.values.ranges[k];
        const value = between(this.values[k], i, share);
        element.textContent = number(Math.abs(value) < (high - low) / STEPS ? 0 : value, 4);
      });
    }
  }
  Object.assign(Plot, { LEFT: 58, RIGHT: 10, HEIGHT: 112 });

  function ticks(low, high, about) {
    const rough = (high - low) / about;
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((m) => m * power).find((size) => size >= rough * 0.999);
    const result = [];
    for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; k++) result.push(k * step);
    return result;
  }

  function number(value, digits = 3) {
    if (Math.abs(value) < 1e-12) return "0";
    const text = Number(value.toPrecision(digits));
    const size = Math.abs(text);
    const shown = size < 1e-3 || size >= 1e5 ? text.toExponential() : String(text);
    return shown.replace("-", "−");
  }

  class Player {
    constructor(THREE, moving) {
      this.THREE = THREE;
      this.canvas = part("canvas");
      this.renderer = new THREE.WebGLRenderer({ canvas: this.canvas, antialias: true, alpha: true });
      this.renderer.shadowMap.enabled = true;
      this.renderer.shadowMap.type = THREE.PCFSoftShadowMap;
      this.scene = new Scene(THREE, moving);
      this.dirty = true;
      this.orbit = new Orbit(THREE, this.canvas, () => this.wake());
      this.first = data.time[0];
      this.last = data.time[data.time.length - 1];
      this.t = this.first;
      this.playing = false;
      const lasts = this.last - this.first;
      this.digits = Math.min(Math.max(Math.ceil(2.5 - Math.log10(lasts || 1)), 2), 7);
      if (part("speed")) {
        const slow = [1, 0.5, 0.25, 0.1, 0.01, 0.001].find((speed) => lasts / speed >= 1.5);
        part("speed").value = String(slow || 0.001);
      }
      this.plot = new Plot(moving.signals, (t) => this.seek(t));
      this.labels = data.bodies.map((body) => {
        const label = document.createElement("span");
        label.textContent = body.name;
        part("labels").append(label);
        return label;
      });
      this.controls();
      new ResizeObserver(() => this.resize()).observe(this.canvas.parentElement);
      this.resize();
      this.seek(this.t);
    }

    controls() {
      const on = (name, event, action) => part(name) && part(name).addEventListener(event, action);
      on("play", "click", () => (this.playing ? this.pause() : this.play()));
      on("scrub", "input", () => {
        this.pause();
        this.seek(this.first + (part("scrub").value / 10000) * (this.last - this.first));
      });
      on("follow", "change", () => {
        this.orbit.follow = Number(part("follow").value);
        this.orbit.shift.set(0, 0, 0);
        this.wake();
      });
      data.bodies.forEach((body) => part("follow") && part("follow").add(new Option(body.name, body.pose)));
      if (part("follow")) part("follow").value = String(this.orbit.follow);
      on("frames", "change", () => {
        const visible = part("frames").checked;
        const figure = this.scene.main;
        [...figure.groups, figure.ground].forEach(({ axes }) => (axes.visible = visible));
        this.wake();
      });
      on("overlay", "change", () => {
        this.scene.overlay.all.visible = part("overlay").checked;
        this.wake();
      });
      on("apart", "change", () => {
        this.scene.overlay.poses = this.scene.magnified(Number(part("apart").value));
        this.seek(this.t);
      });
      on("traces", "change", () => {
        this.scene.traces.forEach((t) => (t.strong.visible = t.whole.visible = part("traces").checked));
        this.wake();
      });
      on("arrows", "change", () => this.seek(this.t));
      on("names", "change", () => {
        part("labels").hidden = !part("names").checked;
        this.wake();
      });
      on("reset", "click", () => this.orbit.reset());
      on("view", "change", () => {
        this.orbit.preset(part("view").value);
        part("view").value = "";
      });
      on("full", "click", () => this.full());
      on("record", "click", () => this.record());
      this.picking();
      on("closer", "click", () => this.orbit.scale(0.8));
      on("farther", "click", () => this.orbit.scale(1.25));
      document.addEventListener("keydown", (event) => this.key(event));
    }

    /** The whole screen, or back. */
    full() {
      if (document.fullscreenElement) document.exitFullscreen();
      else root.requestFullscreen().catch(() => undefined);
    }

    /** Plays once and hands the picture over as a WebM file; nothing leaves the page. */
    record() {
      const button = part("record");
      if (this.recorder) return this.recorder.stop();
      if (typeof MediaRecorder === "undefined" || !this.canvas.captureStream) {
        button.textContent = "cannot record here";
        return undefined;
      }
      const pieces = [];
      const recorder = new MediaRecorder(this.canvas.captureStream(60), { videoBitsPerSecond: 8e6 });
      this.recorder = recorder;
      recorder.addEventListener("dataavailable", (event) => pieces.push(event.data));
      recorder.addEventListener("stop", () => {
        this.recorder = undefined;
        this.pause();
        button.textContent = "Record";
        const link = document.createElement("a");
        link.href = URL.createObjectURL(new Blob(pieces, { type: "video/webm" }));
        link.download = `${data.name}.webm`;
        link.click();
        setTimeout(() => URL.revokeObjectURL(link.href), 10000);
      });
      button.textContent = "Stop";
      this.seek(this.first);
      recorder.start();
      this.play();
      return undefined;
    }

    /** A click on a body says its name, where it is and how fast it moves. */
    picking() {
      const pickedLabel = part("picked");
      let down = null;
      this.canvas.addEventListener("pointerdown", (event) => (down = [event.clientX, event.clientY]));
      this.canvas.addEventListener("click", (event) => {
        if (!pickedLabel || !down || Math.hypot(event.clientX - down[0], event.clientY - down[1]) > 4) return;
        const box = this.canvas.getBoundingClientRect();
        const place = new this.THREE.Vector2(
          (2 * (event.clientX - box.left)) / box.width - 1,
          1 - (2 * (event.clientY - box.top)) / box.height,
        );
        const ray = new this.THREE.Raycaster();
        ray.setFromCamera(place, this.orbit.camera);
        const hit = ray.intersectObject(this.scene.main.all, true).find((each) => each.object.userData.solid);
        this.picked = hit ? hit.object.userData.solid.pose : undefined;
        this.tellPicked();
      });
    }

    tellPicked() {
      const pickedLabel = part("picked");
      if (!pickedLabel) return;
      const body = data.bodies.find((each) => each.pose === this.picked);
      const group = this.picked >= 0 ? this.scene.main.groups[this.picked] : undefined;
      pickedLabel.hidden = !group;
      if (!group) return;
      const { x, y, z } = group.group.position;
      const place = [x, y, z].map((v) => number(v, 4)).join(", ");
      pickedLabel.textContent = `${body ? body.name : "point"}: ${place} m${this.speed()}`;
    }

    /** How fast the picked pose moves between two frames, in words. */
    speed() {
      const [i] = frame(this.t);
      const passed = data.count > 1 ? data.time[i + 1] - data.time[i] : 0;
      if (!(passed > 0)) return "";
      const way = this.scene.main.poses.slice(7 * this.picked, 7 * this.picked + 3);
      return `; ${number(Math.hypot(...way.map((c) => sample(c, i + 1) - sample(c, i))) / passed, 3)} m/s`;
    }

    key(event) {
      if (event.target.closest && event.target.closest("input, select, button, summary, textarea, a")) return;
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      const box = root.getBoundingClientRect();
      if (box.bottom < 0 || box.top > window.innerHeight) return; // out of sight
      const step = (this.last - this.first) / 100;
      const actions = {
        " ": () => (this.playing ? this.pause() : this.play()),
        ArrowRight: () => this.seek(this.t + step),
        ArrowLeft: () => this.seek(this.t - step),
        "+": () => this.orbit.scale(0.8),
        "-": () => this.orbit.scale(1.25),
        Home: () => this.seek(this.first),
        End: () => this.seek(this.last),
        f: () => this.full(),
        r: () => this.orbit.reset(),
        1: () => this.orbit.preset("front"),
        2: () => this.orbit.preset("side"),
        3: () => this.orbit.preset("top"),
      };
      if (!actions[event.key]) return;
      event.preventDefault();
      actions[event.key]();
    }

    /** What is shown as it came. */
    kept() {
      return { poses: this.scene.main.poses, vectors: this.scene.moving.vectors, values: this.plot.values };
    }

    /** Shows another run over the same times. */
    replace(poses, vectors, values) {
      this.scene.replace(poses, vectors);
      if (this.scene.touches) this.scene.touches.known = poses === this.scene.base;
      this.plot.values = values;
      this.plot.draw();
      this.seek(this.t);
    }

    play() {
      if (this.t >= this.last) this.seek(this.first);
      this.playing = true;
      this.before = undefined;
      part("play").textContent = "Pause";
      this.wake();
    }

    pause() {
      this.playing = false;
      part("play").textContent = "Play";
    }

    seek(t) {
      this.t = Math.min(Math.max(t, this.first), this.last);
      this.scene.set(this.t);
      this.plot.set(this.t);
      this.tellPicked();
      root.dataset.time = this.t.toFixed(this.digits + 1);
      if (part("scrub")) part("scrub").value = ((this.t - this.first) / (this.last - this.first || 1)) * 10000;
      if (part("time")) part("time").textContent = `${this.t.toFixed(this.digits)} s`;
      this.wake();
    }

    wake() {
      this.dirty = true;
      if (!this.waiting && this.scene) this.waiting = requestAnimationFrame((now) => this.tick(now));
    }

    tick(now) {
      this.waiting = undefined;
      if (this.recorder && this.playing && this.t >= this.last) this.recorder.stop();
      if (this.playing) {
        const passed = this.before === undefined ? 0 : Math.min((now - this.before) / 1000, 0.25);
        this.before = now;
        const t = this.t + passed * Number(part("speed").value);
        this.seek(t >= this.last ? (this.t < this.last ? this.last : this.first) : t);
      }
      if (this.dirty) this.render();
      if (this.playing) this.wake();
    }

    render() {
      this.dirty = false;
      this.orbit.look(this.scene);
      this.renderer.render(this.scene.scene, this.orbit.camera);
      if (!part("labels").hidden) this.moveLabels();
    }

    moveLabels() {
      const [width, height] = [this.canvas.clientWidth, this.canvas.clientHeight];
      data.bodies.forEach((body, k) => {
        const p = this.scene.main.groups[body.pose].group.position.clone().project(this.orbit.camera);
        this.labels[k].style.transform = `translate(${(((p.x + 1) * width) / 2).toFixed(1)}px,${(
          ((1 - p.y) * height) /
          2
        ).toFixed(1)}px)`;
        this.labels[k].hidden = p.z > 1;
      });
    }

    resize() {
      const box = this.canvas.parentElement;
      const [width, height] = [box.clientWidth, box.clientHeight];
      if (!width || !height) return;
      this.renderer.setPixelRatio(Math.min(window.devicePixelRatio || 1, 2));
      this.renderer.setSize(width, height, false);
      this.orbit.camera.aspect = width / height;
      this.plot.resize();
      this.wake();
    }
  }

  async function start() {
    const text = new TextDecoder().decode(await unpacked(root.querySelector(".animation-library").textContent.trim()));
    const script = document.createElement("script");
    script.textContent = text;
    document.head.append(script);
    const touched = data.touches && data.touches.values;
    const [poses, apart, vectors, signals, touches] = await Promise.all(
      [data.poses, data.apart, data.vectors, data.signals.values, touched].map((record) => record && channels(record)),
    );
    root.dataset.state = "ready"; // what is hidden has no size
    const player = new Player(window.THREE, { poses, apart, vectors, signals, touches });
    const wish = new URLSearchParams(location.hash.slice(1));
    if (wish.has("t")) player.seek(Number(wish.get("t")) || 0);
    const calm = window.matchMedia("(prefers-reduced-motion: reduce)").matches;
    if (data.time.length > 1 && !wish.has("pause") && (wish.has("play") || (root.dataset.autoplay && !calm))) player.play();
    window.animation = player;
    const live = root.querySelector(".animation-live-data");
    if (live && typeof WebAssembly === "object") {
      const unit = await mb2fmuLive.Unit.load(JSON.parse(live.textContent), unpacked);
      player.live = new mb2fmuLive.Panel(unit, player, part, data);
      if (wish.has("try")) part("live").open = true;
    }
  }

  start().catch((error) => {
    root.dataset.state = "failed";
    const hint = /webgl/i.test(error.message)
      ? " Turn on hardware acceleration (WebGL) in the browser's settings, or open this page in another browser."
      : "";
    part("failure").textContent =
      `The moving picture cannot be shown here (${error.message.replace(/\.$/, "")}); this is the start.${hint}`;
  });
})();
