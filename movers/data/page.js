// The tables of the page, and links and pictures to take along. Texts enter the page as text, never as markup.
const movers = {
  row: "", // the row that was clicked last

  node(tag, attributes = {}, ...children) {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    made.append(...children);
    return made;
  },

  // props.value: {rows, head} to sort, or {rows, chosen, texts} for scores by metric, with bars; a row is its id and cells.
  table(element, props, trigger, watch) {
    const { node } = movers;
    const button = (text, key, attributes) => node("button", { type: "button", "data-key": key, ...attributes }, text);
    const position = (value) => `${(100 * Math.min(Math.max(value, 0), 1)).toFixed(1)}%`;
    const digits = (value) => (value === null ? "…" : value.toFixed(3));
    let sorted = { column: 0, sign: 1 };

    const scoreCells = (score, unrelated, summary) => {
      const bar = node("div", { class: "bar" });
      if (score !== null) bar.append(node("b", { style: `width:${position(score)}` }));
      if (unrelated !== null) {
        bar.append(node("i", { style: `left:${position(unrelated)}`, title: `unrelated texts: ${digits(unrelated)}` },
          node("span", { class: "unseen" }, `unrelated texts: ${digits(unrelated)}`)));
      }
      return [node("td", { class: "n" }, digits(score)), node("td", {}, bar), node("td", { class: "about" }, summary)];
    };
    const plainCells = (score, ...texts) =>
      [node("td", { class: "n" }, digits(score)), ...texts.map((text) => node("td", {}, text))];
    const row = ([id, name, ...cells], chosen) => {
      const pressed = { "aria-pressed": String(id) === chosen };
      const head = node("th", { scope: "row" }, id === "" ? name : button(String(name), `row ${id}`, pressed));
      const drawn = chosen === undefined ? plainCells(...cells) : scoreCells(...cells);
      return node("tr", id === "" ? {} : { "data-row": id }, head, ...drawn);
    };
    const sortable = (name, column) => {
      const sort = { 1: "ascending", "-1": "descending" }[column === sorted.column ? sorted.sign : 0] ?? "none";
      return node("th", { scope: "col", "aria-sort": sort }, button(name, `column ${column}`));
    };
    const scoreHeads = (marked) => [
      node("th", { scope: "col" }, "Metric"),
      node("th", { scope: "col", class: "n" }, "Score"),
      node("th", { scope: "col" }, node("div", { class: "scale" }, node("span", {}, "0"),
        ...(marked ? [node("span", { class: "key" }, "unrelated")] : []), node("span", {}, marked ? "equal 1" : "1"))),
      node("th", { scope: "col", class: "about" }, "What it is"),
    ];
    const tab = element.closest("[role=tabpanel]");
    const plain = (text) => (text ?? "").replace(/\r\n?/g, "\n");
    // Scores are shown beside the texts that they belong to, and no others; the style sheet hides the picture too.
    const outdated = (texts) => [...tab.querySelectorAll("textarea")].some((box, n) => box.value !== plain(texts[n]));
    const draw = () => {
      element.classList.add("movers-table");
      const data = props.value;
      if (!data || (data.texts && outdated(data.texts))) return element.replaceChildren();
      const { column, sign } = sorted;
      const rows = [...data.rows];
      if (data.head) {
        rows.sort((a, b) => sign * (a[column + 1] < b[column + 1] ? -1 : a[column + 1] > b[column + 1] ? 1 : 0));
      }
      const heads = data.head ? data.head.map(sortable) : scoreHeads(rows.some((cells) => cells[3] !== null));
      const focused = element.contains(document.activeElement) && document.activeElement.dataset.key;
      element.replaceChildren(node("table", {},
        node("thead", {}, node("tr", {}, ...heads)),
        node("tbody", {}, ...rows.map((cells) => row(cells, data.chosen)))));
      if (focused) element.querySelector(`[data-key="${focused}"]`)?.focus();
    };
    element.addEventListener("click", (event) => {
      const chosen = event.target.closest("tr[data-row]");
      const head = event.target.closest("thead button");
      if (head) {
        const column = Number(head.dataset.key.split(" ")[1]);
        sorted = { column, sign: column === sorted.column ? -sorted.sign : 1 };
        draw();
      } else if (chosen) {
        movers.row = chosen.dataset.row;
        for (const each of element.querySelectorAll("[aria-pressed]")) {
          each.setAttribute("aria-pressed", each.closest("tr") === chosen);
        }
        trigger("select", {});
      }
    });
    tab.addEventListener("input", draw);
    watch("value", draw);
    draw();
  },

  // An address that fills the page with these texts, for the clipboard and the address bar.
  async link(metric, prediction, reference) {
    const url = new URL(location.pathname, location.origin);
    for (const [name, value] of Object.entries({ prediction, reference, metric })) url.searchParams.set(name, value ?? "");
    const say = (text) => `<span role="status">${text}</span>`;
    if (url.href.length > 8000) return say("The texts are too long for a link.");
    history.replaceState(null, "", url);
    try {
      await navigator.clipboard.writeText(url.href);
      return say("Copied.");
    } catch {
      return say("The link is in the address bar.");
    }
  },

  save(address, name) {
    if (address) movers.node("a", { href: address, download: name }).click();
  },
};
