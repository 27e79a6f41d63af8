import { join } from "node:path";
import { build } from "vite";

const root = join(import.meta.dirname, "..", "src", "page");

export interface BuiltPage {
  readonly html: string;
  /** Absolute paths of the files that its script is made of. */
  readonly sources: readonly string[];
}

/** The page in one file: its script and style stand in it, so that nothing else is ever asked for. */
export async function buildPage(): Promise<BuiltPage> {
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
  const sources = built.output.flatMap((file) => (file.type === "chunk" ? file.moduleIds : []));
  return { html: inOneFile(files), sources: sources.filter((id) => id.startsWith("/")) };
}

/** Replacements are functions: a text may hold what replace() takes for a pattern. */
function inOneFile(files: ReadonlyMap<string, string>): string {
  const styled = (_link: string, name: string) => `<style>${files.get(name)}</style>`;
  return (files.get("index.html") ?? "")
    .replace(/<script type="module"[^>]* src="\.?\/([^"]+)"><\/script>/, () => "")
    .replace(/<link rel="stylesheet"[^>]* href="\.?\/([^"]+)">/, styled)
    .replace("</body>", () => `<script type="module">${scriptOf(files)}</script></body>`);
}

/** The text of a script ends with the first `</script`, wherever that stands. */
function scriptOf(files: ReadonlyMap<string, string>): string {
  const [code = ""] = Array.from(files).flatMap(([name, text]) => (name.endsWith(".js") ? [text] : []));
  return code.replaceAll("</script", "<\\/script").trim();
}
