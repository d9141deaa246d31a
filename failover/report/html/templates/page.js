// Every table of the page: sorted, searched, narrowed and shown in parts. Text goes in as text, never as markup.
"use strict";
(() => {
  const tables = new Map();
  const plain = new Intl.NumberFormat("en");

  function element(name, attributes = {}, ...children) {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.append(...children);
    return made;
  }

  class Table {
    constructor(section) {
      this.id = section.id;
      this.section = section;
      const data = JSON.parse(section.querySelector("script").textContent);
      this.rows = data.rows;
      this.step = data.step;
      this.opens = data.opens;
      this.columns = data.columns.map((column) => ({
        ...column,
        index: column.i || Array.from({ length: data.rows }, (_, row) => row),
        keys: column.kind === "number" ? column.k || column.d.map(Number) : null,
        lower: column.d.map((text) => text.toLowerCase()),
      }));
      this.shown = this.step;
      this.query = "";
      this.chosen = new Map();
      this.sorted = null;
      this.body = section.querySelector("tbody");
      this.note = section.querySelector(".shown");
      this.names = [...section.querySelectorAll("thead th")].map((head) => head.textContent);
      this.title = section.dataset.title.toLowerCase();
      this.addSorting();
      this.addTools();
      this.update();
    }

    addSorting() {
      this.heads = [...this.section.querySelectorAll("thead th")];
      this.heads.forEach((head, column) => {
        const button = element("button", { type: "button" }, head.textContent);
        if (head.title) button.title = head.title;
        head.replaceChildren(button);
        button.addEventListener("click", () => this.sortBy(column));
      });
    }

    addTools() {
      const tools = this.section.querySelector(".tools");
      const search = element("input", { type: "search", placeholder: "Search", "aria-label": `Search ${this.title}` });
      for (const typed of ["input", "change"]) {
        search.addEventListener(typed, () => {
          if (this.query === search.value) return;
          this.query = search.value;
          this.restart();
        });
      }
      this.search = search;
      tools.append(search);
      this.columns.forEach((column, number) => {
        if (!column.choice || column.d.length < 2) return;
        const counts = new Array(column.d.length).fill(0);
        for (const value of column.index) counts[value] += 1;
        const name = this.names[number].toLowerCase();
        const select = element("select", { "aria-label": `Only this ${name}` }, element("option", { value: "" }, `any ${name}`));
        column.d.forEach((text, value) => {
          select.append(element("option", { value }, `${text} (${plain.format(counts[value])})`));
        });
        select.addEventListener("change", () => this.choose(number, select.value === "" ? null : Number(select.value)));
        tools.append(select);
      });
      this.chip = element("button", { type: "button", class: "chip", hidden: "" });
      this.chip.addEventListener("click", () => this.choose(0, null));
      tools.append(this.chip);
      tools.hidden = this.rows < 2;
    }

    choose(column, value) {
      if (value === null) this.chosen.delete(column);
      else this.chosen.set(column, value);
      this.restart();
    }

    only(text) {
      const value = this.columns[0].d.indexOf(text);
      if (value < 0) return;
      this.query = this.search.value = "";
      this.choose(0, value);
      this.section.scrollIntoView();
      this.chip.focus({ preventScroll: true });
    }

    sortBy(column) {
      const first = this.columns[column].keys ? -1 : 1;
      if (!this.sorted || this.sorted.column !== column) this.sorted = { column, way: first };
      else if (this.sorted.way === first) this.sorted = { column, way: -first };
      else this.sorted = null;
      this.heads.forEach((head, number) => {
        if (this.sorted && number === column) head.setAttribute("aria-sort", this.sorted.way > 0 ? "ascending" : "descending");
        else head.removeAttribute("aria-sort");
      });
      this.restart();
    }

    restart() {
      this.shown = this.step;
      this.update();
    }

    // Each distinct value is looked at once, however many rows hold it.
    found() {
      const words = this.query.toLowerCase().split(/\s+/).filter(Boolean);
      const hits = words.map((word) => this.columns.map((column) => column.lower.map((text) => text.includes(word))));
      const rows = [];
      for (let row = 0; row < this.rows; row += 1) {
        let fits = true;
        for (const [column, value] of this.chosen) fits = fits && this.columns[column].index[row] === value;
        if (fits && hits.every((hit) => this.columns.some((column, number) => hit[number][column.index[row]]))) rows.push(row);
      }
      return this.sorted ? this.sort(rows) : rows;
    }

    sort(rows) {
      const { column: number, way } = this.sorted;
      const column = this.columns[number];
      const rank = (value) => {
        const key = column.keys[value];
        return key === null || Number.isNaN(key) ? null : key;
      };
      let ranks;
      if (column.keys) {
        ranks = column.d.map((_, value) => rank(value));
      } else {
        const collator = new Intl.Collator("en", { numeric: true });
        ranks = new Array(column.d.length);
        column.d.map((text, value) => [text, value]).sort((a, b) => collator.compare(a[0], b[0])).forEach(([, value], place) => {
          ranks[value] = place;
        });
      }
      return rows.sort((a, b) => {
        const [x, y] = [ranks[column.index[a]], ranks[column.index[b]]];
        if (x === y) return a - b;
        if (x === null) return 1;
        if (y === null) return -1;
        return x < y ? -way : way;
      });
    }

    update() {
      const rows = this.found();
      this.body.replaceChildren(...rows.slice(0, this.shown).map((row) => this.row(row)));
      const shown = Math.min(this.shown, rows.length);
      const matching = rows.length === this.rows ? "" : ` matching, of ${plain.format(this.rows)} in all`;
      this.note.replaceChildren();
      if (shown < rows.length || matching) {
        this.note.append(`${plain.format(shown)} of ${plain.format(rows.length)} shown${matching}`);
      }
      if (shown < rows.length) {
        this.more(`Show ${plain.format(Math.min(4 * this.step, rows.length - shown))} more`, this.shown + 4 * this.step);
        this.more(`Show all ${plain.format(rows.length)}`, rows.length);
      }
      const chosen = this.columns[0].choice ? undefined : this.chosen.get(0);
      this.chip.hidden = chosen === undefined;
      if (chosen !== undefined) {
        this.chip.textContent = `${this.names[0].toLowerCase()}: ${this.columns[0].d[chosen]} ×`;
        this.chip.setAttribute("aria-label", `Show every ${this.names[0].toLowerCase()} again`);
      }
    }

    more(text, shown) {
      const button = element("button", { type: "button" }, text);
      button.addEventListener("click", () => {
        this.shown = shown;
        this.update();
      });
      this.note.append(button);
    }

    row(row) {
      return element("tr", {}, ...this.columns.map((column, number) => this.cell(column, number, column.index[row])));
    }

    cell(column, number, value) {
      const text = column.d[value];
      const tone = column.t ? column.t[value] : "";
      const attributes = { class: `${column.kind} ${tone}` };
      const cell = number === 0 ? element("th", { scope: "row", ...attributes }) : element("td", attributes);
      if (column.kind === "tag") {
        cell.append(element("span", { class: `tag ${tone}` }, text));
      } else if (column.kind === "name") {
        const code = element("code", {}, text);
        if (number === 0 && this.opens) {
          const button = element("button", { type: "button", title: `Its ${this.opens}` }, code);
          button.addEventListener("click", () => tables.get(this.opens).only(text));
          cell.append(button);
        } else cell.append(code);
      } else cell.append(text);
      return cell;
    }

    // On paper nobody can ask for more: what is not thousands of rows is printed whole.
    printed(whole) {
      if (this.rows > 2000) return;
      if (whole) {
        this.kept = this.shown;
        this.shown = this.rows;
      } else this.shown = this.kept;
      this.update();
    }
  }

  for (const section of document.querySelectorAll("section.table")) tables.set(section.id, new Table(section));
  window.addEventListener("beforeprint", () => tables.forEach((table) => table.printed(true)));
  window.addEventListener("afterprint", () => tables.forEach((table) => table.printed(false)));
})();
