import { readFileSync } from "node:fs";
import { type AgentConfig, formatError, type ParseResult, parseArguments } from "../src/index.ts";

export const FILE = "/etc/config.conf";

export function fixture(name: string): string {
  return readFileSync(new URL(`fixtures/${name}`, import.meta.url), "utf8");
}

/** Parses with one file there, at `FILE`. */
export function parse(argv: readonly string[], file?: string): ParseResult {
  const readFile = (path: string) => {
    if (file !== undefined && path === FILE) return file;
    throw new Error(`ENOENT: no such file or directory, open '${path}'`);
  };
  return parseArguments(argv, { readFile, version: "1.2.3" });
}

/** A KubeProxyConfiguration with these lines. */
export function configFile(...lines: readonly string[]): string {
  return ["apiVersion: kubeproxy.config.k8s.io/v1alpha1", "kind: KubeProxyConfiguration", ...lines].join("\n");
}

export function parseFile(...lines: readonly string[]): ParseResult {
  return parse([`--config=${FILE}`], configFile(...lines));
}

export function configOf(result: ParseResult): AgentConfig {
  if (result.kind === "run") return result.config;
  throw new Error(JSON.stringify(result, undefined, 1));
}

export function errorsOf(result: ParseResult): string[] {
  if (result.kind !== "invalid") throw new Error(`not refused: ${result.kind}`);
  return result.errors.map(formatError);
}

export function warningsOf(result: ParseResult): readonly string[] {
  if (result.kind === "run" || result.kind === "invalid") return result.warnings;
  throw new Error(`no configuration: ${result.kind}`);
}
