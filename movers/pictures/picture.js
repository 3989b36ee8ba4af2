"use strict";
(function () {
  const SVG = "http://www.w3.org/2000/svg", SIDES = [".left", ".right"];
  const number = (value) => value.toFixed(3), percent = (share) => (100 * share).toFixed(1) + " %";
  const element = (name, attributes, text) => {
    const made = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    if (text) made.textContent = text;
    return made;
  };

  function start(panel) {
    const flows = JSON.parse(panel.querySelector("script").textContent); // [i, j, share, cost, tint], strongest first
    const canvas = panel.querySelector(".canvas"), svg = canvas.querySelector("svg"), detail = panel.querySelector(".detail");
    const { measure, drawn, labels } = panel.dataset, idle = detail.textContent;
    const texts = panel.closest(".picture").querySelector(".texts");
    const listed = SIDES.map((side) => Array.from(canvas.querySelectorAll(side + " .unit")));
    const units = listed.map((own) => new Map(own.map((unit) => [+unit.dataset.n, unit])));
    const words = SIDES.map((side) => Array.from(texts.querySelectorAll(side + " [data-n]:not(.dropped)")));
    const sideOf = (target) => (target.closest(".left") ? 0 : 1);
    const flowsOf = (side, n) => [...flows.keys()].filter((place) => flows[place][side] === n);
    let chosen = null, active = [];

    function draw() {
      if (!canvas.offsetWidth) return;
      const box = canvas.getBoundingClientRect(), taken = [], lines = [], shown = [];
      const places = new Set([...active, ...flows.keys()].slice(0, +drawn + active.length));
      const ordered = [...places].filter((place) => [0, 1].every((side) => units[side].has(flows[place][side])));
      ordered.sort((a, b) => flows[a][0] - flows[b][0] || flows[a][1] - flows[b][1]);
      const width = (flow) => Math.max(1.2, (9 * flow[2]) / (flows[0][2] || 1));
      // Flows of a unit leave it one below the other, as wide as they are.
      const totals = [new Map(), new Map()], used = [new Map(), new Map()];
      for (const place of ordered) for (const side of [0, 1]) {
        const n = flows[place][side];
        totals[side].set(n, (totals[side].get(n) || 0) + width(flows[place]));
      }
      const ends = new Map();
      for (const place of ordered) {
        const flow = flows[place];
        const [[x1, y1], [x2, y2]] = [0, 1].map((side) => {
          const n = flow[side], own = units[side].get(n).getBoundingClientRect(), total = totals[side].get(n);
          const before = used[side].get(n) || 0, fit = Math.min(1, (own.height - 2) / total);
          used[side].set(n, before + width(flow));
          return [(side ? own.left : own.right) - box.left, own.top + own.height / 2 - box.top + (before + width(flow) / 2 - total / 2) * fit];
        });
        ends.set(place, [x1, y1, x2, y2]);
        const middle = (x1 + x2) / 2, d = `M${x1},${y1} C${middle},${y1} ${middle},${y2} ${x2},${y2}`;
        const state = active.includes(place) ? "on" : "";
        lines.push(element("path", { d, "stroke-width": width(flow), style: "--tint:" + flow[4], class: state, "data-flow": place }));
      }
      for (const place of (chosen ? active : [...flows.keys()]).slice(0, +labels)) {
        if (!ends.has(place)) continue;
        const [x1, y1, x2, y2] = ends.get(place), text = number(flows[place][3]), half = 18;
        for (const t of [0.5, 0.36, 0.64, 0.26, 0.74, 0.18, 0.82]) {
          const x = x1 + (x2 - x1) * (t * t * t + 1.5 * t * (1 - t)), y = y1 + (y2 - y1) * t * t * (3 - 2 * t);
          if (x - half < x1 || x + half > x2) continue;
          if (taken.some((other) => Math.abs(other[0] - x) < 2 * half && Math.abs(other[1] - y) < 15)) continue;
          taken.push([x, y]);
          const group = element("g", { class: "label" });
          group.append(element("rect", { x: x - half, y: y - 7, width: 2 * half, height: 14, rx: 2 }), element("text", { x, y: y + 4 }, text));
          shown.push(group);
          break;
        }
      }
      svg.replaceChildren(...lines, ...shown);
      svg.classList.toggle("dim", chosen !== null);
    }
    function mark(side, n) {
      units[side].get(n)?.classList.add("on");
      if ("main" in panel.dataset) for (const word of words[side]) if (+word.dataset.n === n) word.classList.add("on");
    }
    function name(side, n) {
      const unit = units[side].get(n), word = words[side].find((each) => +each.dataset.n === n);
      return "“" + (unit ? unit.querySelector(".text") : word)?.textContent + "”";
    }
    const told = (flow) => (measure === "mass" ? percent(flow[2]) : measure + " " + number(flow[2])) + " at distance " + number(flow[3]);
    function choose(target) {
      for (const other of [...canvas.querySelectorAll(".on"), ...("main" in panel.dataset ? texts.querySelectorAll(".on") : [])]) other.classList.remove("on");
      chosen = target; active = [];
      let text = idle;
      if (target && target.dataset.flow) {
        active = [+target.dataset.flow];
        const flow = flows[active[0]];
        text = name(0, flow[0]) + " → " + name(1, flow[1]) + " " + told(flow);
      } else if (target) {
        const side = sideOf(target), n = +target.dataset.n, unit = units[side].get(n);
        active = flowsOf(side, n);
        mark(side, n);
        const partners = active.slice(0, 12).map((place) => name(1 - side, flows[place][1 - side]) + " " + told(flows[place]));
        const more = active.length > 12 ? "; and " + (active.length - 12) + " more" : "";
        const weight = measure === "mass" && unit ? " (" + percent(+unit.dataset.weight) + " of the text)" : "";
        const note = unit && unit.dataset.note ? "; " + unit.dataset.note : "";
        text = name(side, n) + weight + note + (partners.length ? (side ? " ← " : " → ") + partners.join("; ") + more : ": matched with nothing");
      }
      for (const place of active) [0, 1].forEach((side) => mark(side, flows[place][side]));
      detail.textContent = text;
      draw();
    }
    function fill(table) { // the plan, in the colours of the lines, opaque where much mass moves
      const order = units.map((own) => [...own.keys()].sort((a, b) => a - b));
      const head = (side, n) => { const cell = document.createElement("th"); cell.textContent = name(side, n).slice(1, -1).replace(/^(.{16}).+/s, "$1…"); return cell; };
      const cells = new Map(flows.map((flow) => [flow[0] + " " + flow[1], flow]));
      table.insertRow().append(document.createElement("td"), ...order[1].map((j) => head(1, j)));
      for (const i of order[0]) {
        const row = table.insertRow();
        row.append(head(0, i));
        for (const j of order[1]) {
          const cell = row.insertCell(), flow = cells.get(i + " " + j);
          if (flow) cell.setAttribute("style", "--tint:" + flow[4] + ";--share:" + Math.round(25 + (75 * flow[2]) / flows[0][2]) + "%");
        }
      }
    }
    const focused = () => (canvas.contains(document.activeElement) ? document.activeElement.closest(".unit") : null);
    let over = "";
    for (const area of [canvas, texts]) {
      area.addEventListener("mouseover", (event) => {
        const target = event.target.closest("[data-n]:not(.dropped), [data-flow]");
        const key = target ? target.dataset.flow || sideOf(target) + " " + target.dataset.n : "";
        if (key !== over) choose(target || focused());
        over = key;
      });
      area.addEventListener("mouseleave", () => { over = ""; choose(focused()); });
    }
    canvas.addEventListener("focusin", (event) => {
      const unit = event.target.closest(".unit");
      if (!unit) return;
      listed[sideOf(unit)].forEach((other) => { other.tabIndex = other === unit ? 0 : -1; other.ariaSelected = other === unit; });
      choose(unit);
    });
    canvas.addEventListener("focusout", (event) => { const unit = event.target.closest(".unit"); if (unit) unit.ariaSelected = "false"; choose(null); });
    canvas.addEventListener("keydown", (event) => {
      const unit = event.target.closest(".unit");
      if (!unit) return;
      const side = sideOf(unit), own = listed[side], at = own.indexOf(unit);
      const moves = { ArrowDown: own[at + 1], ArrowUp: own[at - 1], Home: own[0], End: own[own.length - 1] };
      const best = flowsOf(side, +unit.dataset.n)[0];
      moves[side ? "ArrowLeft" : "ArrowRight"] = best === undefined ? null : units[1 - side].get(flows[best][1 - side]);
      if (event.key === "Escape") unit.blur();
      else if (event.key in moves) { event.preventDefault(); moves[event.key]?.focus(); }
    });
    panel.querySelectorAll("table").forEach(fill);
    new ResizeObserver(draw).observe(canvas);
    draw();
  }

  const startAll = () => document.querySelectorAll(".movers .panel").forEach(start);
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", startAll); else startAll();
})();
