// A small and safe part of markdown: paragraphs, lists, headings, quotes, code. Links stay the text they are.

function markdown(text) {
  const box = element("div", { class: "markdown" });
  let list = null;
  let paragraph = [];
  const lines = (text || "").split("\n");
  const flush = () => {
    if (paragraph.length) box.append(element("p", {}, spans(paragraph.join("\n"))));
    paragraph = [];
  };
  for (let at = 0; at < lines.length; at++) {
    const line = lines[at];
    const fence = /^\s*(```|~~~)/.exec(line);
    const item = /^\s*(?:[-*+]|\d{1,3}[.)])\s+(.*)$/.exec(line);
    const heading = /^#{1,6}\s+(.*)$/.exec(line);
    if (!item) list = null;
    if (fence) {
      flush();
      const code = [];
      while (++at < lines.length && !lines[at].trim().startsWith(fence[1])) code.push(lines[at]);
      box.append(element("pre", {}, code.join("\n")));
    } else if (item) {
      flush();
      if (!list) box.append((list = element("ul")));
      list.append(element("li", {}, spans(item[1])));
    } else if (heading) {
      flush();
      box.append(element("p", { class: "heading" }, spans(heading[1])));
    } else if (!line.trim()) {
      flush();
    } else {
      paragraph.push(line);
    }
  }
  flush();
  return box;
}

function spans(text) {
  return text.split(/(`[^`\n]+`|\*\*[^*\n]+\*\*)/).map((part) => {
    if (part.length > 2 && part.startsWith("`") && part.endsWith("`")) return element("code", {}, part.slice(1, -1));
    if (part.length > 4 && part.startsWith("**")) return element("strong", {}, part.slice(2, -2));
    return part;
  });
}
