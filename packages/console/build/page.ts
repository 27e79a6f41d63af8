import { join } from "node:path";
import { build } from "vite";

const root = join(import.meta.dirname, "..", "src", "page");

/** The page in one file: its script and style stand in it, so that nothing else is ever asked for. */
export async function buildPage(): Promise<string> {
  const built = await build({
    root,
    configFile: false,
    logLevel: "error",
    oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
    build: { write: false, assetsInlineLimit: Number.MAX_SAFE_INTEGER, cssCodeSplit: false, modulePreload: false },
  });
  if (!("output" in built)) throw new Error("vite gave no single output");
  const files = new Map(
    built.output.map((file) => [file.fileName, file.type === "chunk" ? file.code : String(file.source)] as const),
  );
  const html = files.get("index.html") ?? "";
  // A replacement as a function: the text may hold what replace() takes for a pattern.
  return html
    .replace(/<script type="module"[^>]* src="\.?\/([^"]+)"><\/script>/, () => "")
    .replace(/<link rel="stylesheet"[^>]* href="\.?\/([^"]+)">/, (_all, name: string) => `<style>${files.get(name)}</style>`)
    .replace("</body>", () => `<script type="module">${scriptOf(files)}</script></body>`);
}

/** The text of a script ends with the first `</script`, wherever that stands. */
function scriptOf(files: ReadonlyMap<string, string>): string {
  const [code = ""] = Array.from(files).flatMap(([name, text]) => (name.endsWith(".js") ? [text] : []));
  return code.replaceAll("</script", "<\\/script").trim();
}
