// biome-ignore lint/style/noRestrictedImports: the runner of @fairlead/kernel stands on this package
import { spawnSync } from "node:child_process";
import { test } from "vitest";
import type { IPFamily } from "../src/index.ts";

const { CI = "", PATH } = process.env;

/** Of util-linux. */
const NAMESPACE_TOOL = "unshare";

/** Vitest cannot end a test that waits in a synchronous call. */
const HANGS_MS = 300_000;

export type Variant = "nft" | "legacy";

/**
 * Runs restore and save one after the other; $1 and $2 are their names. Restore reads the payload from standard input.
 */
const SCRIPT = '"$1" && "$2"';

/** A test that asks the real iptables: skipped with the reason where there is none, a failure where CI is set. */
export function kernelTest(variant: Variant, name: string, body: () => void): void {
  test(name, ({ skip }) => {
    const missing = unavailable(variant);
    if (missing !== undefined && CI !== "") throw new Error(`CI must run this: ${missing}`);
    if (missing !== undefined) skip(missing);
    body();
  });
}

function unavailable(variant: Variant): string | undefined {
  const probe = inNamespace(variant, "IPv4", "*filter\nCOMMIT\n");
  if (probe.status === 0) return undefined;
  return `iptables-${variant} in a namespace of its own: ${probe.error?.message ?? probe.stderr.trim()}`;
}

/**
 * What the real iptables-save prints after iptables-restore took the payload, in a network namespace that ends with the
 * call.
 *
 * @throws Error with what the tool said when it refused the payload
 */
export function stored(variant: Variant, family: IPFamily, payload: string): string {
  const { status, stdout, stderr } = inNamespace(variant, family, payload);
  if (status !== 0) throw new Error(`iptables-${variant}-restore: ${stderr}`);
  return stdout.replaceAll(/^#.*\n/gm, "").replaceAll(/\[\d+:\d+\]$/gm, "[0:0]");
}

function inNamespace(variant: Variant, family: IPFamily, payload: string) {
  const tool = `${family === "IPv4" ? "iptables" : "ip6tables"}-${variant}`;
  const namespace = process.getuid?.() === 0 ? "-n" : "-Urn";
  const argv = [namespace, "--", "sh", "-c", SCRIPT, "sh", `${tool}-restore`, `${tool}-save`];
  return spawnSync(NAMESPACE_TOOL, argv, {
    input: payload,
    encoding: "utf8",
    // Of the tools in this namespace: two runs of these tests do not find each other's lock taken.
    env: { LC_ALL: "C", PATH, XTABLES_LOCKFILE: "/proc/self/ns/net" },
    timeout: HANGS_MS,
  });
}
