// Search and filter over the rows of the tests; the grid and the timeline dim what is not shown.

const filter = { words: "", marks: new Set(), onlyCasts: false };

function makeFilter(report) {
  const search = element("input", {
    type: "search",
    id: "search",
    placeholder: "search tests, words, blocks    /",
    "aria-label": "search the tests",
    autocomplete: "off",
    spellcheck: "false",
    on: {
      input: () => {
        filter.words = search.value;
        applyFilter(report);
      },
    },
  });
  return element("div", { class: "filter" }, search, makePills(report), element("p", { class: "dim", id: "shown", "aria-live": "polite" }));
}

// Legend and filter in one: what each glyph means, how many there are, and a press shows only those.
function makePills(report) {
  const pills = Object.entries(report.counts).map(([mark, count]) =>
    makePill(mark, { "data-mark": mark, on: { click: () => toggleMark(report, mark) } }, glyph(mark), ` ${wordOf(mark)} `, element("b", {}, count)),
  );
  if (report.tests.some((test) => test.casts)) {
    pills.push(makePill("recorded", { "data-recorded": true, on: { click: () => toggleCasts(report) } }, "▸ recorded"));
  }
  return element("div", { class: "pills", role: "group", "aria-label": "filter by state" }, pills);
}

function makePill(mark, attributes, ...content) {
  return element("button", { class: `pill ${mark}`, type: "button", "aria-pressed": "false", ...attributes }, content);
}

function toggleMark(report, mark) {
  if (!filter.marks.delete(mark)) filter.marks.add(mark);
  applyFilter(report);
}

function toggleCasts(report) {
  filter.onlyCasts = !filter.onlyCasts;
  applyFilter(report);
}

function clearFilter(report) {
  filter.words = document.getElementById("search").value = "";
  filter.marks.clear();
  filter.onlyCasts = false;
  applyFilter(report);
}

function isFiltered() {
  return Boolean(filter.words.trim() || filter.marks.size || filter.onlyCasts);
}

// All words must be there, in any order; a word that begins with ! must not.
function fits(test, words) {
  if (filter.marks.size && !filter.marks.has(test.mark)) return false;
  if (filter.onlyCasts && !test.casts) return false;
  return words.every((word) => (word[0] === "!" && word.length > 1 ? !test.text.includes(word.slice(1)) : test.text.includes(word)));
}

function applyFilter(report) {
  const words = filter.words.toLowerCase().split(/\s+/).filter(Boolean);
  const shownFiles = new Set();
  let shown = 0;
  for (const test of report.tests) {
    const isShown = fits(test, words);
    shown += isShown;
    if (isShown) shownFiles.add(test.file);
    test.row.hidden = !isShown;
    test.cell.classList.toggle("out", !isShown);
    if (test.bar) test.bar.classList.toggle("out", !isShown);
  }
  for (const [file, heading] of report.headings) heading.hidden = !shownFiles.has(file);
  for (const pill of document.querySelectorAll(".pill[data-mark]")) {
    pill.setAttribute("aria-pressed", String(filter.marks.has(pill.dataset.mark)));
  }
  for (const pill of document.querySelectorAll(".pill[data-recorded]")) {
    pill.setAttribute("aria-pressed", String(filter.onlyCasts));
  }
  const note = document.getElementById("shown");
  note.textContent = isFiltered() ? `${shown.toLocaleString("en")} of ${plural(report.tests.length, "test")} · Esc shows all` : "";
}
