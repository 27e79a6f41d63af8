// On every page, after it is read. Diagrams and the tracer are loaded where a page has them, and from nowhere else.
const base = new URL(document.documentElement.dataset.base ?? "./", location.href);
const dark = () => {
  const { theme } = document.documentElement.dataset;
  return theme === "dark" || (theme !== "light" && matchMedia("(prefers-color-scheme: dark)").matches);
};

if (document.getElementById("tracer")) import(new URL("assets/tracer.js", base).href);

const diagrams = Array.from(document.querySelectorAll("code.mermaid"), (code) => {
  const place = document.createElement("div");
  place.className = "diagram";
  place.textContent = code.textContent;
  code.parentElement.replaceWith(place);
  return place;
});

if (diagrams.length > 0) {
  const script = document.createElement("script");
  script.src = new URL("assets/mermaid.js", base).href;
  script.onload = () => {
    mermaid.initialize({ startOnLoad: false, securityLevel: "strict", theme: dark() ? "dark" : "neutral" });
    mermaid.run({ nodes: diagrams });
  };
  document.head.append(script);
}
