import { createHash } from "node:crypto";
import { openIptables } from "@fairlead/kernel";
import type { NetworkNamespace } from "@fairlead/kernel/netns";
import { runnerIn } from "@fairlead/lab/wire";
import type { Variant } from "../proxy/tools.ts";

/**
 * What the kernel holds for services, as a digest for each chain that a packet can reach, `nat KUBE-SERVICES` → digest,
 * or for each frontend.
 */
export type RuleDigests = ReadonlyMap<string, string>;

/** Reads what a node holds. */
export type RulesReader = (node: NetworkNamespace) => Promise<RuleDigests>;

/** Rules of different service ports: their order says nothing. */
const UNORDERED = /^KUBE-(?:SERVICES|NODEPORTS|EXTERNAL-SERVICES|PROXY-FIREWALL)$/;

/** Reads nat and filter of a node. */
export async function readRules(node: NetworkNamespace, variant: Variant): Promise<RuleDigests> {
  const iptables = await openIptables(runnerIn(node), { family: "IPv4", variant });
  const digests = new Map<string, string>();
  for (const table of ["nat", "filter"] as const) {
    const chains = new Map<string, string[]>();
    for await (const line of iptables.saveLines(table)) addLine(chains, line);
    for (const [chain, digest] of reachable(chains)) digests.set(`${table} ${chain}`, digest);
  }
  return digests;
}

function addLine(chains: Map<string, string[]>, line: string): void {
  if (line.startsWith(":")) chains.set(line.slice(1, line.indexOf(" ")), []);
  if (!line.startsWith("-A ")) return;
  const end = line.indexOf(" ", 3);
  chains.get(line.slice(3, end))?.push(line.slice(end + 1));
}

/** Chains of services that the built-in chains lead to. A proxy may leave others for later: no packet meets them. */
function reachable(chains: ReadonlyMap<string, readonly string[]>): ReadonlyMap<string, string> {
  const digests = new Map<string, string>();
  const wait = ["PREROUTING", "INPUT", "FORWARD", "OUTPUT", "POSTROUTING"].filter((chain) => chains.has(chain));
  for (let chain = wait.pop(); chain !== undefined; chain = wait.pop()) {
    if (digests.has(chain)) continue;
    const rules = chains.get(chain) ?? [];
    digests.set(chain, digestOf(UNORDERED.test(chain) ? [...rules].sort() : rules));
    wait.push(...rules.map(targetOf).filter((target) => chains.has(target)));
  }
  return digests;
}

function targetOf(rule: string): string {
  return /(?:^| )-[jg] (\S+)/.exec(rule)?.[1] ?? "";
}

function digestOf(lines: readonly string[]): string {
  return createHash("sha256").update(lines.join("\n")).digest("base64url").slice(0, 16);
}

/** @throws Error that names the first chains that differ */
export function requireSameRules(what: string, actual: RuleDigests, expected: RuleDigests): void {
  const names = new Set([...actual.keys(), ...expected.keys()]);
  const different = [...names].filter((name) => actual.get(name) !== expected.get(name));
  if (different.length === 0) return;
  const some = different.slice(0, 5).join(", ");
  throw new Error(
    `${what}: the rules of ${different.length} chains or frontends are not those of a fresh start: ${some}`,
  );
}
