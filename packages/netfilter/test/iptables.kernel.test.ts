// biome-ignore lint/style/noRestrictedImports: the runner of @fairlead/kernel stands on this package
import { spawnSync } from "node:child_process";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  type Command,
  type IPFamily,
  parseSave,
  type Rule,
  RuleTextError,
  renderRule,
  renderTable,
  type Table,
} from "../src/index.ts";
import { plainComment, rules } from "./arbitraries.ts";

const { CI = "", PATH } = process.env;

/** Of util-linux. */
const NAMESPACE_TOOL = "unshare";

/** Vitest cannot end a test that waits in a synchronous call. */
const HANGS_MS = 300_000;

type Variant = "nft" | "legacy";

/**
 * Runs restore and save one after the other; $1 and $2 are their names. Restore reads the payload from standard input.
 */
const SCRIPT = '"$1" && "$2"';

/** A test that asks the real iptables: skipped with the reason where there is none, a failure where CI is set. */
function kernelTest(variant: Variant, name: string, body: () => void): void {
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
 */
function stored(variant: Variant, family: IPFamily, payload: string): string {
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

const CHAINS = ["KUBE-A", "cali-b"];
const RULES_A_RUN = 300;

const combinations = (["IPv4", "IPv6"] as const).flatMap((family) =>
  (["filter", "nat"] as const).map((table): [IPFamily, "filter" | "nat"] => [family, table]),
);

/** All rules in one chain of one table that begins empty. */
function payload(table: Table, list: readonly Rule[]): string {
  const commands: Command[] = [
    { kind: "chain", chain: "X" },
    ...CHAINS.map((chain): Command => ({ kind: "chain", chain })),
    ...list.map((rule): Command => ({ kind: "append", chain: "X", rule })),
  ];
  return [...renderTable({ table, commands })].join("");
}

/** The lines of chain X without `-A X`. */
function linesOf(saved: string): string[] {
  return [...saved.matchAll(/^-A X ?(.*)$/gm)].map(([, words = ""]) => words);
}

/** Comments that the renderer takes, of the sort that an attacker would try. */
const hostileComment = fc
  .oneof(
    fc.string({ unit: "grapheme", maxLength: 80 }),
    fc
      .array(
        fc.constantFrom(
          '"',
          "'",
          "\\",
          " ",
          "  ",
          "--",
          "-j",
          "ACCEPT",
          "-t nat",
          "!",
          "#",
          "COMMIT",
          "$(x)",
          "`x`",
          "é",
        ),
        {
          maxLength: 12,
        },
      )
      .map((parts) => parts.join("")),
  )
  .filter((text) => {
    try {
      return renderRule({ matches: [{ kind: "comment", text }] }) !== "";
    } catch (error) {
      if (error instanceof RuleTextError) return false;
      throw error;
    }
  });

describe.each<Variant>(["nft", "legacy"])("the real iptables, %s variant", (variant) => {
  describe.each(combinations)("%s %s", (family, table) => {
    kernelTest(variant, "prints random rules as we do", () => {
      const kind = rules({ family, table, chains: CHAINS, objects: false, comment: plainComment });
      const list = fc.sample(kind, RULES_A_RUN);
      const saved = stored(variant, family, payload(table, list));
      expect(linesOf(saved)).toEqual(list.map(renderRule));
      expect(parseSave(saved, { family }).get(table)?.chains.get("X")?.rules).toEqual(list);
    });
  });

  kernelTest(variant, "stores one rule with just that comment, whatever it says", () => {
    const list = fc.sample(hostileComment, RULES_A_RUN).map((text): Rule => ({ matches: [{ kind: "comment", text }] }));
    const saved = stored(variant, "IPv4", payload("filter", list));
    const filter = parseSave(saved).get("filter");
    expect(filter?.chains.get("X")?.rules).toEqual(list);
    expect([...(filter?.chains.values() ?? [])].reduce((sum, chain) => sum + chain.rules.length, 0)).toBe(list.length);
  });
});
