import { access, glob, readFile } from "node:fs/promises";
import { join } from "node:path";
import { parseArguments } from "@fairlead/config";
import { describe, expect, test } from "vitest";
import { parse, parseAllDocuments } from "yaml";
import { deployDir, repositoryDir } from "../src/paths.ts";

/** Commands in the documents for operators name what exists. */
const texts = await Promise.all(
  ["docs/install.md", "docs/migrate-from-kube-proxy.md"].map((name) => readFile(join(repositoryDir, name), "utf8")),
);
const text = texts.join("\n");

test("paths of the repository", async () => {
  const paths = new Set(text.match(/\bdeploy\/[\w./-]*\w/g));
  expect(paths.size).toBeGreaterThan(5);
  for (const path of paths) await access(join(repositoryDir, path));
});

test("scripts of the root", async () => {
  const { scripts } = JSON.parse(await readFile(join(repositoryDir, "package.json"), "utf8"));
  const names = [...text.matchAll(/\bpnpm ([\w:]+)/g)].map(([, name]) => name).filter((name) => name !== "install");
  expect(names.length).toBeGreaterThan(0);
  for (const name of names) expect(Object.keys(scripts)).toContain(name);
});

test("values of the chart", async () => {
  const values = parse(await readFile(join(deployDir, "helm/fairlead/values.yaml"), "utf8"));
  const set = [...text.matchAll(/--set(?:-string)? '?([A-Za-z]+)(?:\.([A-Za-z]+))?[^=]*=/g)];
  expect(set.length).toBeGreaterThan(5);
  for (const [, top = "", below] of set) {
    expect(Object.keys(values)).toContain(top);
    // Below these anything goes.
    if (below !== undefined && !["config", "nodeSelector"].includes(top))
      expect(Object.keys(values[top])).toContain(below);
  }
});

test("flags of the agent", () => {
  const { text: help } = helpText();
  const flags = ["exclude-cluster-cidr", "init-only", "cleanup", "config", "write-config-to"];
  for (const flag of flags) {
    expect(text).toContain(`--${flag}`);
    expect(help).toContain(`--${flag}`);
  }
});

function helpText() {
  const result = parseArguments(["--help"], { readFile: () => "", version: "0.1.0" });
  if (result.kind !== "help") throw new Error("--help gives no help");
  return result;
}

const read = (name: string) => readFile(join(repositoryDir, name), "utf8");
const architecture = await read("docs/architecture.md");

test("the table of rooms says what may import what, as pnpm lint:layers enforces it", async () => {
  const layers: Readonly<Record<string, readonly string[]>> = JSON.parse(await read("tooling/layers.json"));
  const rows = [...architecture.matchAll(/^\| (?:packages\/(?=\w)|(?=lab ))([\w-]+) .*\| ([^|]*?) *\|$/gm)].map(
    ([, name = "", may = ""]) => {
      const rooms = may === "–" ? [] : may.split(", ");
      return [name, name === "base" ? rooms : ["base", ...rooms].sort()] as const;
    },
  );
  expect(Object.fromEntries(rows)).toEqual(layers);
});

test("the files on a change's way are there", async () => {
  const [, way = ""] = /## A change on its way([\s\S]*?)\n## /.exec(architecture) ?? [];
  const files = [...way.matchAll(/`((?:packages|apps)\/[\w./-]+\.ts)`/g)].map(([, file = ""]) => file);
  expect(files.length).toBeGreaterThan(10);
  for (const file of files) await access(join(repositoryDir, file));
});

const LEARNS = ["excludeCIDRsFrom", "clusterCIDRsFrom", "serviceRules"];

const all = await recipes();

function configOf({ multiCNI }: Recipe) {
  const fairlead = { apiVersion: "fairlead.dev/v1alpha1", kind: "FairleadConfiguration", multiCNI };
  const kubeProxy = { apiVersion: "kubeproxy.config.k8s.io/v1alpha1", kind: "KubeProxyConfiguration" };
  const text = [kubeProxy, fairlead].map((document) => JSON.stringify(document)).join("\n---\n");
  return parseArguments(["--config=config.conf"], { readFile: () => text, version: "0.1.0" });
}

test("the documents and the chart have recipes", () => {
  const files = new Set(all.map(({ at }) => at.replace(/:.*/, "")));
  expect([...files]).toEqual(expect.arrayContaining(["docs/multi-cni.md", "deploy/helm/fairlead/values.yaml"]));
  expect(all.length).toBeGreaterThan(4);
});

describe.each(all.map((one) => [one.at, one] as const))("%s", (_, recipe) => {
  test("is a configuration, each source is believed in some CIDRs only, and no client is left unanswered", () => {
    const result = configOf(recipe);
    expect(result).toMatchObject({ kind: "run", warnings: [] });
    if (result.kind !== "run") return;
    const { excludeCIDRsFrom, clusterCIDRsFrom, excludedFrontends } = result.config.multiCNI;
    for (const source of [...excludeCIDRsFrom, ...clusterCIDRsFrom]) {
      expect({ ...source, within: source.within ?? [] }).not.toMatchObject({ within: [] });
    }
    expect(excludedFrontends).toBe("excluded-clients");
  });
});

/** A configuration that users are shown, and that learns networks or has rules for services. */
interface Recipe {
  /** `docs/multi-cni.md:349` */
  readonly at: string;
  readonly multiCNI: Readonly<Record<string, unknown>>;
}

/** Those of the documents, the overlays, and the chart's example, which is a comment. */
async function recipes(): Promise<readonly Recipe[]> {
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
