import { access, readFile } from "node:fs/promises";
import { join } from "node:path";
import { parseArguments } from "@fairlead/config";
import { expect, test } from "vitest";
import { parse } from "yaml";
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
