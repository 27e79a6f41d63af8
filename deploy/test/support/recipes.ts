import { glob, readFile } from "node:fs/promises";
import { join } from "node:path";
import { parse, parseAllDocuments } from "yaml";
import { deployDir, repositoryDir } from "../../src/paths.ts";

/** A configuration that users are shown, and that learns networks or has rules for services. */
export interface Recipe {
  /** `docs/multi-cni.md:349` */
  readonly at: string;
  readonly multiCNI: Readonly<Record<string, unknown>>;
}

const LEARNS = ["excludeCIDRsFrom", "clusterCIDRsFrom", "serviceRules"];

/** Those of the documents, the overlays, and the chart's example, which is a comment. */
export async function recipes(): Promise<readonly Recipe[]> {
  const found = [...(await inDocuments()), ...(await inOverlays()), await ofChart()];
  return found.filter(({ multiCNI }) => LEARNS.some((field) => field in multiCNI));
}

async function inDocuments(): Promise<readonly Recipe[]> {
  const patterns = ["*.md", "docs/*.md", "deploy/**/*.md", "packages/*/*.md"];
  const found: Recipe[] = [];
  for await (const name of glob(patterns, { cwd: repositoryDir, exclude: ["**/node_modules/**"] })) {
    const text = await readFile(join(repositoryDir, name), "utf8");
    for (const { 1: block = "", index } of text.matchAll(/^```yaml\n(.*?)^```$/gms)) {
      const line = text.slice(0, index).split("\n").length;
      found.push(...inDocument(`${name}:${line}`, block));
    }
  }
  return found;
}

async function inOverlays(): Promise<readonly Recipe[]> {
  const found: Recipe[] = [];
  for await (const name of glob(["base/*.conf", "overlays/*/*.conf"], { cwd: deployDir })) {
    found.push(...inDocument(`deploy/${name}`, await readFile(join(deployDir, name), "utf8")));
  }
  return found;
}

function inDocument(at: string, text: string): readonly Recipe[] {
  return parseAllDocuments(text).flatMap((document) => {
    const content: unknown = document.toJS();
    const multiCNI = recordOf(recordOf(content)["multiCNI"]);
    return [{ at, multiCNI }];
  });
}

/** What stands behind `# For example:` in the chart's values, as a user writes it. */
async function ofChart(): Promise<Recipe> {
  const at = "deploy/helm/fairlead/values.yaml";
  const text = await readFile(join(repositoryDir, at), "utf8");
  const [, example = ""] = /^ *# For example:\n((?: *# {2}.*\n)+)/m.exec(text) ?? [];
  return { at, multiCNI: recordOf(parse(example.replaceAll(/^ *# {2}/gm, ""))) };
}

function recordOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null ? { ...value } : {};
}
