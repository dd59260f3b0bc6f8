// The head of the page: numbers, the bar, the grid of glyphs, the timeline.

function makeHead(report) {
  const name = report.title || `Sweep ${report.sweep}`;
  return element(
    "header",
    { class: "head" },
    element(
      "div",
      {},
      element("h1", {}, name),
      element(
        "p",
        { class: "dim" },
        report.title ? `sweep ${report.sweep} · ` : "",
        moment(report.start),
        report.is_over ? "" : element("span", { class: "running" }, " · not over when this page was made"),
        report.is_over && report.ended && report.ended !== "finished" ? ` · ended: ${report.ended}` : "",
      ),
    ),
    element("button", { class: "quiet", type: "button", id: "theme", on: { click: nextTheme } }, themeWord()),
  );
}

function makeNumbers(report) {
  const counts = report.counts;
  const sum = (marks) => marks.reduce((total, mark) => total + (counts[mark] || 0), 0);
  const fixed = sum(Object.keys(MARKS).filter((mark) => MARKS[mark].pill === "fixed"));
  const inNeed = sum(["waiting", "blocked", "error", "unresolved"]);
  const numbers = [
    [report.tests.length, "tests", ""],
    [counts.clean || 0, "clean", "clean"],
    ...(counts.skipped ? [[counts.skipped, "skipped", "skipped"]] : []),
    [fixed, "tests and docs fixed", "better"],
    [counts.impl_fix || 0, "with impl fixes", "impl_fix"],
    [report.turned_green, "red tests now green", "better"],
    [inNeed, inNeed === 1 ? "needs a person" : "need a person", "blocked"],
    [duration(report.end - report.start), "from start to end", ""],
  ];
  return [
    element(
      "dl",
      { class: "numbers" },
      numbers.map(([value, label, mark]) =>
        element("div", {}, element("dd", { class: value ? mark : "dim" }, value), element("dt", {}, label)),
      ),
    ),
    element(
      "p",
      { class: "facts" },
      report.facts.map(([name, value]) =>
        element("span", {}, element("span", { class: "dim" }, name + " "), element("span", { class: "mono" }, value)),
      ),
    ),
  ];
}

function makeBar(report) {
  const bar = element("div", { class: "bar", "aria-hidden": "true" });
  for (const [mark, count] of Object.entries(report.counts)) {
    const part = element("span", { class: `part ${mark}`, title: `${count} ${wordOf(mark)}` });
    part.style.flexGrow = count;
    bar.append(part);
  }
  return bar;
}

function makeGrid(report) {
  const grid = element("div", { class: "grid" });
  for (const [file, tests] of byFile(report.tests)) {
    grid.append(
      element("div", { class: "file", title: file }, file.replace(/^.*\//, "").replace(/\.py$/, "")),
      element(
        "div",
        { class: "cells" },
        tests.map((test) =>
          element(
            "a",
            {
              class: `cell ${test.mark}`,
              href: `#test-${test.index}`,
              id: `cell-${test.index}`,
              title: `${test.name} · ${wordOf(test.mark)}`,
              "aria-label": `${test.name}, ${wordOf(test.mark)}`,
            },
            MARKS[test.mark].glyph,
          ),
        ),
      ),
    );
  }
  return grid;
}

function byFile(tests) {
  const groups = new Map();
  for (const test of tests) {
    if (!groups.has(test.file)) groups.set(test.file, []);
    groups.get(test.file).push(test);
  }
  return groups;
}

// One lane for each agent that worked at once, one bar for each test.
function makeTimeline(report) {
  const { count, spans } = report.lanes;
  const total = report.end - report.start;
  if (!spans.length || total <= 0) return null;
  const step = Math.max(4, Math.min(16, Math.floor(280 / count)));
  const height = (count + (report.integrating ? 1 : 0)) * step;
  const width = 1000;
  const scale = width / total;
  const drawing = shape("svg", { viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "none", role: "img" });
  drawing.append(shape("title", {}, "When each test was worked on"));
  drawing.style.height = `${height}px`;
  const marks = element("div", { class: "ticks", "aria-hidden": "true" });
  for (const at of ticks(total)) {
    drawing.append(shape("line", { class: "tick", x1: at * scale, x2: at * scale, y1: 0, y2: height }));
    if (at > 0.93 * total) continue;
    const label = element("span", {}, duration(at) || "0s");
    label.style.left = `${(100 * at) / total}%`;
    marks.append(label);
  }
  const addBar = (lane, start, end, attributes, words) => {
    const place = { x: (start * scale).toFixed(2), y: lane * step + (step > 6 ? 1.5 : 0.5) };
    const extent = { width: Math.max(1, (end - start) * scale - 0.8).toFixed(2), height: step - (step > 6 ? 3 : 1) };
    drawing.append(
      shape("rect", { ...attributes, ...place, ...extent }, shape("title", {}, `${words} · ${duration(end - start)}`)),
    );
  };
  for (const [lane, start, end, index] of spans) {
    const test = report.tests[index];
    addBar(lane, start, end, { class: `span ${test.mark}`, "data-test": index }, `${test.name} · ${wordOf(test.mark)}`);
  }
  if (report.integrating) addBar(count, ...report.integrating, { class: "span integrating" }, "integrating");
  drawing.addEventListener("click", (event) => {
    const index = event.target.getAttribute("data-test");
    if (index !== null) location.hash = `test-${index}`;
  });
  return element(
    "figure",
    { class: "timeline" },
    element("figcaption", { class: "dim" }, `${plural(count, "agent")} at once at most${report.integrating ? "; below them the integrator" : ""}`),
    drawing,
    marks,
  );
}

function ticks(total) {
  const steps = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 43200, 86400];
  const step = steps.find((seconds) => total / seconds <= 8) || 604800;
  const found = [];
  for (let at = 0; at <= total; at += step) found.push(at);
  return found;
}

// Themes: what the system prefers, until somebody chooses.

const THEMES = ["auto", "dark", "light"];

function theme() {
  return document.documentElement.dataset.theme || "auto";
}

function themeWord() {
  return `theme: ${theme()}`;
}

function setTheme(name) {
  if (name === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = name;
}

function nextTheme() {
  setTheme(THEMES[(THEMES.indexOf(theme()) + 1) % THEMES.length]);
  document.getElementById("theme").textContent = themeWord();
  remember("swarm-tui-theme", theme());
}

// A browser may forbid pages from a disk to remember anything.
function remember(name, value) {
  try {
    localStorage.setItem(name, value);
  } catch {
    return;
  }
}

function remembered(name) {
  try {
    return localStorage.getItem(name);
  } catch {
    return null;
  }
}
