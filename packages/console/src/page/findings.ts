/** What verifying found, and its tone; addresses with their ports. */

import type { ServiceReport } from "@fairlead/inspect";
import type { FamilyFindings, NodeRow, ReadResult } from "../protocol.ts";

/** One service that is not in a node's kernel as it should be. */
export interface Difference extends ServiceReport {
  readonly node: string;
  readonly family: FamilyFindings["family"];
}

export function differencesOf({ node, kernel }: NodeRow): readonly Difference[] {
  if (kernel?.state !== "read") return [];
  return kernel.value.flatMap(({ family, services }) => services.map((report) => ({ ...report, node, family })));
}

/** Reports name ports: `shop/web:http`. */
export function isAbout(report: Difference, service: string): boolean {
  return report.service === service || (report.service ?? "").startsWith(`${service}:`);
}

/** The services that differ anywhere, each with where. */
export function differingServices(nodes: Iterable<NodeRow>): ReadonlyMap<string, readonly Difference[]> {
  const found = new Map<string, Difference[]>();
  for (const difference of [...nodes].flatMap(differencesOf)) {
    const key = (difference.service ?? "").split(":", 1)[0] ?? "";
    const known = found.get(key);
    if (known === undefined) found.set(key, [difference]);
    else known.push(difference);
  }
  return found;
}

export type Tone = "good" | "warn" | "bad" | "plain";

export interface Verdict {
  readonly tone: Tone;
  readonly text: string;
}

const ASKING: Verdict = { tone: "plain", text: "asking …" };

export function kernelVerdict(kernel: ReadResult<readonly FamilyFindings[]> | undefined): Verdict {
  if (kernel === undefined) return { tone: "plain", text: "not looked at" };
  if (kernel.state === "asking") return ASKING;
  if (kernel.state === "failed") return { tone: "warn", text: "cannot be read" };
  const count = kernel.value.reduce((sum, { services }) => sum + services.length, 0);
  if (count === 0) return { tone: "good", text: "as planned" };
  return { tone: "bad", text: count === 1 ? "1 service differs" : `${count} services differ` };
}

/** Of the last answer. A kernel is read through the agent's pod: where that fails later, the answer does not count. */
export function agentVerdict({ agent, kernel }: Pick<NodeRow, "agent" | "kernel">): Verdict {
  if (agent === undefined) return { tone: "plain", text: "not asked" };
  if (agent.state === "asking") return ASKING;
  if (agent.state === "failed") return { tone: "bad", text: "stopped or not reachable" };
  if (kernel?.state === "failed" && kernel.at > agent.at) return { tone: "warn", text: "unknown" };
  if (agent.value.healthy === undefined) return { tone: "plain", text: "runs" };
  return agent.value.healthy ? { tone: "good", text: "healthy" } : { tone: "bad", text: "not healthy" };
}

/**
 * The modes of a cluster, as far as agents have said theirs.
 *
 * @param assumed the mode of a node that has not been asked
 * @returns `iptables mode`, `iptables mode on 1 of 3 nodes`, `iptables on 2, nftables on 1 of 3 nodes`
 */
export function modesText(
  nodes: readonly NodeRow[],
  assumed: { readonly node: string; readonly mode: string },
): string {
  const modes = nodes.flatMap(({ node, agent }) => {
    const known = agent?.state === "read" ? agent.value.mode : undefined;
    return known ?? (node === assumed.node ? assumed.mode : []);
  });
  const counts = [...Map.groupBy(modes, (mode) => mode)].map(([mode, own]) => [mode, own.length] as const).sort();
  const [[first = assumed.mode, count = 0] = []] = counts;
  if (counts.length <= 1 && count === nodes.length) return `${first} mode`;
  if (counts.length <= 1) return `${first} mode on ${count} of ${nodes.length} nodes`;
  const each = counts.map(([mode, number]) => `${mode} on ${number}`).join(", ");
  return `${each}${modes.length < nodes.length ? ` of ${nodes.length}` : ""} nodes`;
}

/** `10.144.1.5:8080`, `[fd00::5]:8080` */
export function socket(address: string, port: number): string {
  return address.includes(":") ? `[${address}]:${port}` : `${address}:${port}`;
}
