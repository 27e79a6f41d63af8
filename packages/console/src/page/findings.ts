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

/** `iptables mode`, `iptables and nftables mode`: as the agents say that were asked, else as it was planned for. */
export function modesText(nodes: Iterable<NodeRow>, planned: string): string {
  const said = [...nodes].flatMap(({ agent }) => (agent?.state === "read" ? (agent.value.mode ?? []) : []));
  const modes = said.length === 0 ? [planned] : [...new Set(said)].sort();
  return `${modes.join(" and ")} mode`;
}

export type Tone = "good" | "warn" | "bad" | "plain";

export interface Verdict {
  readonly tone: Tone;
  readonly text: string;
}

export function kernelVerdict(kernel: ReadResult<readonly FamilyFindings[]> | undefined): Verdict {
  if (kernel === undefined) return { tone: "plain", text: "not looked at" };
  if (kernel.state === "failed") return { tone: "warn", text: "cannot be read" };
  const count = kernel.value.reduce((sum, { services }) => sum + services.length, 0);
  if (count === 0) return { tone: "good", text: "as planned" };
  return { tone: "bad", text: count === 1 ? "1 service differs" : `${count} services differ` };
}

/** Of the last answer. A kernel is read through the agent's pod: where that fails later, the answer does not count. */
export function agentVerdict({ agent, kernel }: Pick<NodeRow, "agent" | "kernel">): Verdict {
  if (agent === undefined) return { tone: "plain", text: "not asked" };
  if (agent.state === "failed") return { tone: "bad", text: "stopped or not reachable" };
  if (kernel?.state === "failed" && kernel.at > agent.at) return { tone: "warn", text: "unknown" };
  if (agent.value.healthy === undefined) return { tone: "plain", text: "runs" };
  return agent.value.healthy ? { tone: "good", text: "healthy" } : { tone: "bad", text: "not healthy" };
}

/** `10.144.1.5:8080`, `[fd00::5]:8080` */
export function socket(address: string, port: number): string {
  return address.includes(":") ? `[${address}]:${port}` : `${address}:${port}`;
}
