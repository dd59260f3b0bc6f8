// Elements, words and data that everything else on the page is built with. Text is only ever set as text.

const CHANGE_WORDS = {
  IMPROVE_TEST: "better test",
  FIX_TEST: "test fix",
  FIX_TUTORIAL: "tutorial fix",
  FIX_IMPL: "impl fix",
};

function element(tag, attributes, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

function shape(tag, attributes, ...children) {
  return filled(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}

function filled(made, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "on") {
      for (const [event, listener] of Object.entries(value)) made.addEventListener(event, listener);
    } else {
      made.setAttribute(name, value === true ? "" : String(value));
    }
  }
  append(made, children);
  return made;
}

function append(parent, children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false || child === "") continue;
    parent.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
}

function glyph(mark) {
  return element("span", { class: `glyph ${mark}`, "aria-hidden": "true" }, (MARKS[mark] || { glyph: "·" }).glyph);
}

function wordOf(mark) {
  return (MARKS[mark] || { word: mark }).word;
}

function duration(seconds) {
  if (seconds === null || seconds === undefined) return "";
  const whole = Math.round(seconds);
  if (whole < 60) return `${whole}s`;
  const minutes = Math.floor(whole / 60);
  if (minutes < 60) return `${minutes}m${String(whole % 60).padStart(2, "0")}s`;
  return `${Math.floor(minutes / 60)}h${String(minutes % 60).padStart(2, "0")}m`;
}

function moment(at) {
  return at ? new Date(at * 1000).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" }) : "";
}

function clock(at) {
  return at ? new Date(at * 1000).toLocaleTimeString(undefined, { hour12: false }) : "";
}

function size(bytes) {
  if (bytes < 1000) return `${bytes} B`;
  return bytes < 1e6 ? `${(bytes / 1e3).toFixed(0)} kB` : `${(bytes / 1e6).toFixed(1)} MB`;
}

function plural(count, one, many) {
  return `${count.toLocaleString("en")} ${count === 1 ? one : many || one + "s"}`;
}

// What lies beside the page comes as scripts: a page on a disk may load a script there, but fetch nothing.
const loading = new Map();
const arrivals = new Map();
globalThis.swarmReport = {
  receive(name, value) {
    const arrived = arrivals.get(name);
    if (arrived) arrived(value);
  },
};

function loadScript(path) {
  return new Promise((done, fail) => {
    const script = element("script", { src: path, on: { load: () => done(), error: () => fail(new Error(path)) } });
    document.head.append(script);
  });
}

function load(name) {
  if (!loading.has(name)) {
    const arrived = new Promise((done) => arrivals.set(name, done));
    const path = `data/${name}.js`;
    loading.set(
      name,
      loadScript(path).then(
        () => arrived,
        () => {
          loading.delete(name);
          throw new Error(`${path} is missing: the page needs the folder it was made in`);
        },
      ),
    );
  }
  return loading.get(name);
}

// A fold whose content is made when it is first opened.
function fold(attributes, summary, make) {
  const made = element("details", attributes, element("summary", {}, summary));
  let isMade = false;
  made.addEventListener("toggle", async () => {
    if (!made.open || isMade) return;
    isMade = true;
    const body = element("div", { class: "body" }, element("p", { class: "dim" }, "loading …"));
    made.append(body);
    try {
      body.replaceChildren(...(await make()).filter(Boolean));
    } catch (error) {
      isMade = false;
      body.replaceChildren(element("p", { class: "problem" }, error.message));
    }
    made.dispatchEvent(new CustomEvent("filled"));
  });
  return made;
}
