// Puts the page together.

const report = JSON.parse(document.getElementById("summary").textContent);

function makeRow(test) {
  const tries = element("span", { class: "tried", title: `${test.tries.length} tries` });
  for (const made of test.tries.slice(-8)) tries.append(glyph({ v: "clean", s: "skipped", x: "unresolved", o: "running" }[made]));
  const head = [
    glyph(test.mark),
    element(
      "span",
      { class: "name" },
      element("span", { class: "mono" }, test.name),
      element("span", { class: "words" }, test.summary),
    ),
    element("span", { class: "word" }, wordOf(test.mark), test.casts ? element("span", { class: "dim" }, " ▸") : ""),
    tries,
    element("span", { class: "time" }, duration(test.seconds)),
    element("span", { class: "money" }, test.dollars === null ? "" : `$${test.dollars.toFixed(2)}`),
  ];
  const row = fold({ class: `test ${test.mark}`, id: `test-${test.index}` }, head, async () =>
    makeDetails(test.index, await load(`test-${test.index}`)),
  );
  test.row = row;
  test.text = [test.test, test.summary, test.block, wordOf(test.mark), test.changes.join(" ")].join("\n").toLowerCase();
  return row;
}

function makeTests() {
  const list = element("div", { class: "tests" });
  report.headings = new Map();
  for (const [file, tests] of byFile(report.tests)) {
    const heading = element("h3", {}, element("span", { class: "mono" }, file), element("span", { class: "dim" }, ` ${tests.length}`));
    report.headings.set(file, heading);
    list.append(heading, ...tests.map(makeRow));
  }
  return list;
}

function testLinks(indices) {
  const shown = indices.slice(0, 12).map((index) => {
    const test = report.tests[index];
    return element("a", { class: "test-link", href: `#test-${index}` }, glyph(test.mark), element("span", { class: "mono" }, test.name));
  });
  if (indices.length > 12) shown.push(element("span", { class: "dim" }, `and ${indices.length - 12} more`));
  return element("p", { class: "links" }, shown);
}

const MARK_OF_NEED = {
  blocker: "blocked",
  harness_defect: "blocked",
  fix_direction_ambiguous: "waiting",
  uncaught_bug: "impl_fix",
  shared_pattern: "waiting",
  suite_duplication: "waiting",
  failing: "unresolved",
  held: "waiting",
  editing: "impl_fix",
};

function makeNeed(need) {
  const word = need.kind.replaceAll("_", " ");
  const mark = MARK_OF_NEED[need.kind] || need.kind;
  return element(
    "li",
    {},
    element("p", {}, element("span", { class: `tag ${mark}` }, word), element("strong", {}, need.title)),
    need.text && markdown(need.text),
    need.tests.length > 0 && testLinks(need.tests),
  );
}

function makeFix(fix) {
  const verdict = fix.verdict || "open";
  const head = [
    element("span", { class: "rank" }, fix.rank),
    element("span", { class: `verdict ${verdict}` }, verdict),
    element("span", { class: "title" }, fix.title),
    element("span", { class: "counts" }, fix.turned_green ? element("b", { class: "plus" }, `${fix.turned_green}▲`) : "", fix.broken.length ? element("b", { class: "minus" }, `${fix.broken.length}▼`) : "", fix.weaker.length ? element("b", { class: "minus" }, plural(fix.weaker.length, "weaker test")) : "", element("b", { class: "plus" }, `+${fix.added}`), element("b", { class: "minus" }, `−${fix.removed}`)),
    element("span", { class: "mono dim" }, fix.commit.slice(0, 8)),
  ];
  return fold({ class: "fix", id: `fix-${fix.rank}` }, head, async () => {
    const found = await load(`commit-${fix.commit}`);
    return [
      fix.verdict_note && element("p", {}, `${fix.verdict}: ${fix.verdict_note}`),
      fix.hunks_out.length > 0 && block("Without", element("ul", {}, ...fix.hunks_out.map((hunk) => element("li", { class: "mono" }, hunk)))),
      fix.cost && element("p", { class: "dim" }, fix.cost),
      fix.origin && element("p", { class: "problem" }, fix.origin),
      fix.why && element("p", { class: "dim" }, `why rank ${fix.rank}: ${fix.why}`),
      fix.weaker.length > 0 && block("Tests that it weakens, removes or renames", element("ul", {}, ...fix.weaker.map((test) => element("li", { class: "mono" }, test)))),
      fix.broken.length > 0 && block("Breaks", element("ul", {}, ...fix.broken.map((test) => element("li", { class: "mono" }, test)))),
      element("pre", { class: "message" }, fix.message),
      fix.tests.length && block(fix.tests.length === 1 ? "Made by the agent of" : "Made by the agents of", testLinks(fix.tests)),
      found.text && makeDiff(found.text),
      found.note && element("p", { class: "dim" }, found.note),
    ];
  });
}

function makePart(part) {
  return element(
    "li",
    {},
    element("span", { class: `verdict ${part.verdict === "out" ? "revert" : part.verdict || "open"}` }, part.verdict || "open"),
    ` ${part.title} `,
    part.tests.length > 0 && testLinks(part.tests),
  );
}

function makeIntegration() {
  const made = report.integration;
  const squashed = made.squashed;
  return [
    made.headline && element("p", { class: "dim" }, made.headline),
    made.branch &&
      element(
        "p",
        {},
        element("span", { class: "mono" }, made.branch),
        element("span", { class: "dim" }, ` at ${made.tip.slice(0, 10)} · ${plural(made.fixes.length, "fix", "fixes")}`),
        made.plan && ` · ${made.plan}`,
        made.reviewed && element("span", {}, " · applied on ", element("span", { class: "mono" }, made.reviewed)),
      ),
    made.detail && made.detail !== made.headline && element("p", { class: "dim" }, made.detail),
    ...made.doubts.map((doubt) => element("p", { class: "problem" }, doubt)),
    made.fixes.length > 0 && element("div", { class: "fixes" }, made.fixes.map(makeFix)),
    squashed &&
      fold(
        { class: "fix" },
        [
          element("span", { class: "rank glyph better" }, "●"),
          element("span", { class: "title" }, squashed.title),
          element("span", { class: "dim" }, plural(squashed.branches.length, "branch", "branches")),
          element("span", { class: "mono dim" }, squashed.commit.slice(0, 8)),
        ],
        async () => {
          const found = await load(`commit-${squashed.commit}`);
          return [
            made.parts.length > 0 && block(plural(made.parts.length, "part", "parts"), element("ul", { class: "plain parts" }, made.parts.map(makePart))),
            makeDiff(found.text),
            found.note && element("p", { class: "dim" }, found.note),
          ];
        },
      ),
    made.left_out.length > 0 &&
      block(
        "Left out",
        element(
          "ul",
          { class: "plain" },
          made.left_out.map((left) =>
            element("li", {}, element("span", { class: "mono" }, left.branch || left.commit.slice(0, 10)), ` ${left.reason}`),
          ),
        ),
      ),
    made.normalizations.length > 0 && block("Made uniform", ...made.normalizations.map(markdown)),
  ].filter(Boolean);
}

function makeLog() {
  return fold({ class: "paper" }, plural(report.log.length, "line"), () => [
    element(
      "ol",
      { class: "log" },
      report.log.map((told) =>
        element(
          "li",
          { class: told.level },
          element("span", { class: "dim" }, clock(told.at)),
          element("span", {}, told.text, told.test ? element("span", { class: "dim mono" }, ` ${told.test}`) : ""),
        ),
      ),
    ),
  ]);
}

function section(id, title, content) {
  const shown = content.flat().filter(Boolean);
  return shown.length ? element("section", { id, class: "part-of-page" }, title && element("h2", {}, title), shown) : null;
}

function makePage() {
  const needs = report.needs.map(makeNeed);
  const patterns = report.patterns.map(makeNeed);
  const parts = [
    section("overview", "", [
      makeNumbers(report),
      report.problems.map((problem) => element("p", { class: "notice" }, problem)),
      makeBar(report),
      makePills(report),
      makeGrid(report),
      makeTimeline(report),
    ]),
    section("fixes", "Integrated branch", [makeIntegration()]),
    section("needs", "Needs a person", [needs.length ? element("ul", { class: "needs" }, needs) : null]),
    section("patterns", "Patterns", [patterns.length ? element("ul", { class: "needs" }, patterns) : null]),
    section("tests", "Tests", [makeFilter(report), makeTests()]),
    section("log", "Log", [report.log.length ? makeLog() : null]),
  ].filter(Boolean);
  document.body.append(
    element("main", {}, makeHead(report), makeMenu(parts), parts),
    element("footer", { class: "dim" }, `made by swarm-tui ${report.version} · ${moment(report.made_at)} · secrets of known forms are masked`),
  );
}

function makeMenu(parts) {
  const words = { overview: "Overview", fixes: "Fixes", needs: "Needs a person", patterns: "Patterns", tests: "Tests", log: "Log" };
  return element("nav", {}, parts.map((part) => element("a", { href: `#${part.id}` }, words[part.id])));
}

// The address names what is open: a link to one test can be sent.
function followAddress() {
  const target = document.getElementById(location.hash.slice(1));
  if (!target) return;
  if (target.tagName === "DETAILS") {
    if (target.hidden) clearFilter(report);
    target.open = true;
  }
  target.scrollIntoView({ block: "start" });
}

function readKey(event) {
  const isTyping = event.target instanceof HTMLInputElement;
  if (event.key === "/" && !isTyping && !event.ctrlKey && !event.metaKey && !event.altKey) {
    event.preventDefault();
    document.getElementById("search").focus();
  } else if (event.key === "Escape" && isFiltered()) {
    clearFilter(report);
    document.getElementById("search").blur();
  }
}

setTheme(THEMES.includes(remembered("swarm-tui-theme")) ? remembered("swarm-tui-theme") : "auto");
makePage();
for (const test of report.tests) test.cell = document.getElementById(`cell-${test.index}`);
for (const bar of document.querySelectorAll(".timeline rect[data-test]")) report.tests[Number(bar.dataset.test)].bar = bar;
addEventListener("hashchange", followAddress);
addEventListener("keydown", readKey);
followAddress();
