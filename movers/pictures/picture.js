"use strict";
(function () {
  const SVG = "http://www.w3.org/2000/svg", LABELS = 60;
  const percent = (share) => (100 * share).toFixed(share < 0.0995 ? 2 : 1) + " %";
  const number = (value) => String(Number(value.toPrecision(3)));

  function start(panel) {
    const canvas = panel.querySelector(".canvas");
    if (!canvas || canvas.dataset.ready) return;
    canvas.dataset.ready = "yes";
    const flows = JSON.parse(panel.querySelector("script").textContent); // [i, j, share, cost], strongest first
    const svg = canvas.querySelector("svg"), detail = panel.querySelector(".detail"), slider = panel.querySelector("input");
    const output = panel.querySelector("output"), measure = panel.dataset.measure, idle = detail.textContent;
    const sides = [".left", ".right"].map((side) => Array.from(canvas.querySelectorAll(side + " .unit")));
    const numbered = sides.map((units) => { const found = []; for (const unit of units) found[+unit.dataset.n] = unit; return found; });
    const of = [new Map(), new Map()];
    flows.forEach((flow, place) => [0, 1].forEach((side) => {
      const own = of[side].get(flow[side]); own ? own.push(place) : of[side].set(flow[side], [place]);
    }));
    const scale = panel.closest(".panels").dataset, low = +scale.low, high = +scale.high; // of all panels of a picture
    const most = flows.length ? flows[0][2] : 1;
    const widest = canvas.classList.contains("long") ? 4 : 9;
    let chosen = null, anchors = null;

    function measureUnits() {
      const box = canvas.getBoundingClientRect();
      anchors = numbered.map((units, side) => units.map((unit) => {
        const own = unit.getBoundingClientRect();
        return [(side ? own.left : own.right) - box.left, own.top + own.height / 2 - box.top, own.height];
      }));
    }
    function width(flow) { return Math.max(1.2, widest * flow[2] / most); }
    function colour(flow) {
      const share = high > low ? Math.round(100 * (flow[3] - low) / (high - low)) : 0;
      return "color-mix(in oklab, var(--dear) " + share + "%, var(--cheap))";
    }
    function draw() {
      if (!canvas.offsetWidth) return;
      measureUnits();
      const shown = slider ? +slider.value : flows.length, active = chosen ? of[chosen[0]].get(chosen[1]) || [] : [];
      const places = new Set(active);
      for (let place = 0; place < shown && place < flows.length; place++) places.add(place);
      const lines = document.createDocumentFragment(), labels = document.createDocumentFragment(), taken = [];
      // Flows of a unit leave it one below the other, as wide as they are.
      const ends = [new Map(), new Map()];
      const ordered = Array.from(places).sort((a, b) => flows[a][0] - flows[b][0] || flows[a][1] - flows[b][1]);
      const totals = [new Map(), new Map()];
      for (const place of ordered) [0, 1].forEach((side) => {
        const key = flows[place][side]; totals[side].set(key, (totals[side].get(key) || 0) + width(flows[place]));
      });
      const drawn = [];
      for (const place of ordered) {
        const flow = flows[place], end = [0, 1].map((side) => {
          const [x, y, height] = anchors[side][flow[side]], total = totals[side].get(flow[side]);
          const scale = Math.min(1, (height - 2) / total), used = ends[side].get(flow[side]) || 0;
          ends[side].set(flow[side], used + width(flow));
          return [x, y + (used + width(flow) / 2 - total / 2) * scale];
        });
        const [[x1, y1], [x2, y2]] = end, bend = (x2 - x1) / 2;
        const path = document.createElementNS(SVG, "path");
        path.setAttribute("d", "M" + x1 + "," + y1 + " C" + (x1 + bend) + "," + y1 + " " + (x2 - bend) + "," + y2 + " " + x2 + "," + y2);
        path.setAttribute("stroke-width", width(flow));
        path.style.stroke = colour(flow);
        if (active.includes(place)) path.setAttribute("class", "on");
        lines.append(path);
        drawn.push([place, x1, y1, x2, y2]);
      }
      drawn.sort((a, b) => a[0] - b[0]);
      const wanted = active.length ? drawn.filter((each) => active.includes(each[0])) : drawn.slice(0, LABELS);
      for (const [place, x1, y1, x2, y2] of wanted) {
        const text = number(flows[place][3]), half = 3.4 * text.length + 2;
        for (const t of [0.5, 0.36, 0.64, 0.26, 0.74]) {
          const s = 1 - t, x = x1 * (s * s * s + 1.5 * s * s * t + 1.5 * s * t * t) + x2 * (t * t * t + 1.5 * s * s * t + 1.5 * s * t * t);
          const y = y1 * (s * s * s + 3 * s * s * t) + y2 * (t * t * t + 3 * s * t * t);
          if (x2 - x1 < 2 * half || x - half < x1 || x + half > x2) continue;
          if (taken.some((each) => Math.abs(each[0] - x) < half + each[2] + 1 && Math.abs(each[1] - y) < 14)) continue;
          taken.push([x, y, half]);
          const group = document.createElementNS(SVG, "g"), back = document.createElementNS(SVG, "rect");
          group.setAttribute("class", active.includes(place) ? "label on" : "label");
          for (const [name, value] of Object.entries({ x: x - half, y: y - 7, width: 2 * half, height: 14, rx: 2 })) back.setAttribute(name, value);
          const words = document.createElementNS(SVG, "text");
          words.setAttribute("x", x); words.setAttribute("y", y + 4); words.textContent = text;
          group.append(back, words); labels.append(group);
          break;
        }
      }
      svg.replaceChildren(lines, labels);
      svg.classList.toggle("dim", chosen !== null);
      if (output) output.textContent = Math.min(shown, flows.length) + " of " + flows.length;
    }
    function words(unit) { return unit.querySelector(".text").textContent; }
    function choose(unit) {
      canvas.querySelectorAll(".on").forEach((other) => other.classList.remove("on"));
      chosen = null;
      if (unit) {
        const side = unit.closest(".left") ? 0 : 1, place = +unit.dataset.n, own = of[side].get(place) || [];
        chosen = [side, place];
        unit.classList.add("on");
        const told = own.slice(0, 12).map((at) => {
          const flow = flows[at], other = numbered[1 - side][flow[1 - side]];
          other.classList.add("on");
          return "“" + words(other) + "” " + (measure === "mass" ? percent(flow[2]) : measure + " " + number(flow[2])) + " at distance " + number(flow[3]);
        });
        const arrow = side ? " ← " : " → ", more = own.length > 12 ? "; and " + (own.length - 12) + " more" : "";
        const weight = measure === "mass" ? " (" + percent(+unit.dataset.weight) + " of the text)" : "";
        const note = unit.dataset.note ? "; " + unit.dataset.note : "";
        detail.textContent = "“" + words(unit) + "”" + weight + note + (told.length ? arrow + told.join("; ") + more : ": matched with nothing");
      } else detail.textContent = idle;
      draw();
    }
    const unitOf = (event) => event.target.closest ? event.target.closest(".unit") : null;
    let over = null;
    canvas.addEventListener("mouseover", (event) => { const unit = unitOf(event); if (unit !== over) { over = unit; choose(unit || focused()); } });
    canvas.addEventListener("mouseleave", () => { over = null; choose(focused()); });
    const focused = () => canvas.contains(document.activeElement) ? document.activeElement.closest(".unit") : null;
    canvas.addEventListener("focusin", (event) => {
      const unit = unitOf(event);
      if (!unit) return;
      const own = unit.closest(".left") ? sides[0] : sides[1];
      own.forEach((other) => { if (other.tabIndex === 0) other.tabIndex = -1; if (other.ariaSelected === "true") other.ariaSelected = "false"; });
      unit.tabIndex = 0; unit.ariaSelected = "true";
      choose(unit);
    });
    canvas.addEventListener("focusout", (event) => { const unit = unitOf(event); if (unit) unit.ariaSelected = "false"; choose(null); });
    canvas.addEventListener("keydown", (event) => {
      const unit = unitOf(event);
      if (!unit) return;
      const side = unit.closest(".left") ? 0 : 1, own = sides[side], at = own.indexOf(unit);
      let next = null;
      if (event.key === "ArrowDown") next = own[at + 1];
      else if (event.key === "ArrowUp") next = own[at - 1];
      else if (event.key === "Home") next = own[0];
      else if (event.key === "End") next = own[own.length - 1];
      else if (event.key === (side ? "ArrowLeft" : "ArrowRight")) {
        const best = (of[side].get(+unit.dataset.n) || [])[0];
        next = best === undefined ? null : numbered[1 - side][flows[best][1 - side]];
      } else if (event.key === "Escape") { unit.blur(); return; } else return;
      event.preventDefault();
      if (next) next.focus();
    });
    if (slider) slider.addEventListener("input", draw);
    new ResizeObserver(draw).observe(canvas);
    draw();
  }

  function startAll() {
    document.querySelectorAll(".movers .panel").forEach(start);
  }
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", startAll); else startAll();
})();
