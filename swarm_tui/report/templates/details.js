// What is shown when a test or a fix is opened.

function makeDetails(index, found) {
  const parts = [
    found.question && block("Waits for an answer", element("pre", { class: "question" }, found.question)),
    found.summary && block("Summary", markdown(found.summary)),
    found.note && element("p", { class: "problem" }, found.note),
    found.escalations.length && block("Escalations", ...found.escalations.map(makeEscalation)),
    found.changes.length && block("Changes", ...found.changes.map(makeChange)),
    found.uncommitted && block("Changes that were never committed", makeDiff(found.uncommitted)),
    found.tries.length && block("Tries", makeTries(found.tries)),
    found.runs.length &&
      block(
        "Runs in the agent's words",
        ...found.runs.map((run) => element("div", {}, element("p", { class: "mono" }, run.name), markdown(run.text))),
      ),
    found.casts.length && block("Recordings", ...found.casts.map((cast) => makeRecording(index, cast))),
    found.texts.length && block("Command line transcripts and files", ...found.texts.map(makeText)),
    found.transcript.length && block("The agent's transcript", makeTranscript(found)),
    found.screen && block("Last screen", fold({ class: "paper" }, "show", () => [element("pre", {}, found.screen)])),
    found.facts.length && block("Facts", makeFacts(found.facts)),
    found.files.length && block("Files in the sweep's folder", makeFiles(found.files)),
  ].filter(Boolean);
  return parts.length ? parts : [element("p", { class: "dim" }, "Nothing more is known of this test.")];
}

function block(title, ...content) {
  return element("section", { class: "block" }, element("h4", {}, title), content);
}

function makeFacts(facts) {
  return element(
    "dl",
    { class: "pairs" },
    facts.map(([name, value]) => [
      element("dt", {}, name),
      element("dd", { class: value.includes("\n") ? "mono pre" : "mono" }, value),
    ]),
  );
}

function makeEscalation(found) {
  return element(
    "div",
    { class: "escalation" },
    element("p", {}, element("span", { class: "tag blocked" }, found.kind), found.title),
    markdown(found.text),
    ...found.locations.map((place) => element("p", { class: "mono" }, place)),
  );
}

function makeChange(change) {
  const isGood = change.status === "SUCCEEDED";
  return element(
    "div",
    { class: "change" },
    element(
      "p",
      {},
      element("span", { class: `tag ${tagOf(change.kind)}` }, CHANGE_WORDS[change.kind] || change.kind),
      isGood ? "" : element("span", { class: "tag unresolved" }, change.status.toLowerCase()),
      change.commit && element("span", { class: "mono dim" }, change.commit.slice(0, 10)),
    ),
    markdown(change.summary),
    change.diff && makeDiff(change.diff),
    change.diff_note && element("p", { class: "dim" }, change.diff_note),
  );
}

function tagOf(kind) {
  return { FIX_IMPL: "impl_fix", FIX_TEST: "test_fix", FIX_TUTORIAL: "tutorial_fix" }[kind] || "better";
}

function makeTries(tries) {
  return element(
    "ol",
    { class: "tries" },
    tries.map((made) => {
      const mark = { runs: "running", passed: "clean", skipped: "skipped", failed: "unresolved" }[made.word];
      const words = made.word === "runs" ? "did not end" : made.word;
      const head = [glyph(mark), ` try ${made.number} ${words}`, element("span", { class: "dim" }, ` ${seconds(made)}`)];
      return element("li", {}, made.failure ? fold({}, head, () => [element("pre", {}, made.failure)]) : head);
    }),
  );
}

function seconds(made) {
  return made.seconds < 10 ? `${made.seconds.toFixed(made.seconds < 1 ? 2 : 1)}s` : duration(made.seconds);
}

// A diff, file by file.
function makeDiff(text) {
  const files = [];
  for (const line of text.split("\n")) {
    if (line.startsWith("diff --git ") || !files.length) files.push([]);
    files[files.length - 1].push(line);
  }
  return element("div", { class: "diff" }, files.map(makeFileDiff));
}

function makeFileDiff(lines) {
  const start = lines.findIndex((line) => line.startsWith("@@"));
  const body = start < 0 ? [] : lines.slice(start);
  const header = start < 0 ? lines : lines.slice(0, start);
  const added = body.filter((line) => line.startsWith("+")).length;
  const removed = body.filter((line) => line.startsWith("-")).length;
  const code = element("pre", { class: "code" });
  for (const line of body.length ? body : header.slice(1)) {
    const kind = { "+": "added", "-": "removed", "@": "hunk", "\\": "dim" }[line[0]];
    code.append(element("span", { class: body.length ? kind : "dim" }, line || " "));
  }
  const isLong = body.length > 400;
  return element(
    "details",
    { class: "paper", open: !isLong },
    element(
      "summary",
      {},
      element("span", { class: "mono" }, pathOf(header)),
      element("span", { class: "counts" }, element("b", { class: "plus" }, `+${added}`), element("b", { class: "minus" }, `−${removed}`)),
    ),
    code,
  );
}

function pathOf(header) {
  const renamed = header.find((line) => line.startsWith("rename to "));
  if (renamed) return renamed.slice(10);
  const sides = ["+++ ", "--- "].map((word) => header.find((line) => line.startsWith(word)));
  const named = sides.find((line) => line && !line.endsWith("/dev/null"));
  return named ? named.slice(6) : (header[0] || "").replace(/^diff --git a\/\S* b\//, "");
}

// The lines of a command line transcript say themselves what they are: # comment, $ command, two spaces, ! , ? .
function makeText(file) {
  const head = [fileName(file.name), file.is_cut ? element("span", { class: "dim" }, " (cut)") : ""];
  return fold({ class: "paper" }, head, () => {
    const code = element("pre", { class: file.is_cli ? "code cli" : "code" });
    for (const line of file.text.split("\n")) {
      const kind = file.is_cli ? { "#": "comment", $: "command", "!": "error", "?": "exit" }[line[0]] : null;
      code.append(element("span", { class: kind }, line || " "));
    }
    return [code];
  });
}

// What a test of the e2e fixture leaves lies in e2e/<run>/<test>/<try>/: the run and the try say enough.
function fileName(path) {
  const parts = path.replace(/^test_output\//, "").split("/");
  const shown = parts[0] === "e2e" && parts.length > 4 ? [parts[1], parts[3], parts.slice(4).join("/")].join(" · ") : parts.join("/");
  return element("span", { class: "mono", title: path }, shown);
}

function makeTranscript(found) {
  return fold({ class: "paper" }, plural(found.transcript.length, "entry", "entries"), () => [
    found.transcript_note && element("p", { class: "dim" }, found.transcript_note),
    element(
      "ol",
      { class: "transcript" },
      found.transcript.map((entry) =>
        element(
          "li",
          { class: `${entry.role}${entry.is_error ? " bad" : ""}` },
          element("span", { class: "who" }, entry.tool || entry.role, element("span", { class: "dim" }, ` ${clock(entry.at)}`)),
          ["user", "agent"].includes(entry.role) ? markdown(entry.text) : makeLong(entry.text),
        ),
      ),
    ),
  ]);
}

function makeLong(text) {
  const lines = text.split("\n");
  if (lines.length <= 12) return element("pre", {}, text);
  const first = element("pre", {}, lines.slice(0, 8).join("\n"));
  return element("div", {}, first, fold({}, `${lines.length - 8} lines more`, () => [element("pre", {}, lines.slice(8).join("\n"))]));
}

function makeFiles(files) {
  return fold({}, plural(files.length, "file"), () => [
    element(
      "ul",
      { class: "files mono" },
      files.map((file) => element("li", {}, file.name, element("span", { class: "dim" }, ` ${size(file.size)}`))),
    ),
  ]);
}

// Recordings: the player is loaded when the first one is played.

let playerLoaded = null;

function makeRecording(index, cast) {
  if (cast.problem) {
    return element("p", {}, element("span", { class: "mono" }, cast.name), element("span", { class: "problem" }, ` ${cast.problem}`));
  }
  const facts = `${cast.columns}×${cast.rows} · ${seconds(cast)}${cast.note ? ` · ${cast.note}` : ""}`;
  return fold({ class: "paper cast" }, [fileName(cast.name), element("span", { class: "dim" }, ` ${facts}`)], async () => {
    playerLoaded = playerLoaded || loadScript("player/asciinema-player.min.js");
    try {
      await playerLoaded;
    } catch {
      playerLoaded = null;
      throw new Error("player/asciinema-player.min.js is missing: the page needs the folder it was made in");
    }
    const text = await load(`cast-${index}-${cast.place}`);
    const stage = element("div", { class: "stage" });
    stage.style.maxWidth = `${Math.max(320, cast.columns * 8.4 + 24)}px`;
    const player = AsciinemaPlayer.create({ data: text }, stage, {
      autoPlay: true,
      idleTimeLimit: 2,
      fit: "width",
      theme: "asciinema",
      logger: { log() {}, debug() {}, info() {}, warn() {}, error() {} },
    });
    stage.player = player;
    return [stage];
  });
}
