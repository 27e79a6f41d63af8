/** What running agents say of owners. */

import { errorText, parseJSON } from "@fairlead/base";
import type { LearnedOnce, OwnershipRow } from "@fairlead/intake";
import type { Context } from "../frame/context.ts";
import { CommandFailure } from "../frame/errors.ts";
import { type AgentAddress, askAgent, askAgentIn } from "./agent-endpoint.ts";
import { type Agents, agentPods } from "./agent-pods.ts";

/** What a running agent says of owners, and of the networks that it has learned. */
export interface AgentOwnership {
  readonly services: readonly OwnershipRow[];
  /** Absent: it learns none. */
  readonly networks?: LearnedOnce["report"];
}

/** @throws CommandFailure when it does not answer, or says something else */
export async function agentOwnership(
  at: AgentAddress,
  context: Pick<Context, "askHere" | "env" | "warn">,
): Promise<AgentOwnership> {
  return ownershipOf(await askAgent("/ownership", at, context));
}

/** What the agent of a node says; `problem`: it does not answer, or says something else. */
export type NodeOwnership = { readonly node: string } & (
  | { readonly ownership: AgentOwnership }
  | { readonly problem: string }
);

/**
 * Asks the agents of all nodes, in the order of the nodes' names.
 *
 * @param port of their metricsBindAddress
 * @throws CommandFailure when the pods cannot be listed
 */
export async function allOwnership(agents: Agents, port: number): Promise<readonly NodeOwnership[]> {
  const pods = await agentPods(agents);
  return eachNode([...pods.keys()].sort(), async (node): Promise<NodeOwnership> => {
    const pod = pods.get(node);
    if (pod === undefined) return { node, problem: "no agent runs there" };
    try {
      return { node, ownership: ownershipOf(await askAgentIn(pod, "/ownership", port, agents)) };
    } catch (error) {
      return { node, problem: errorText(error) };
    }
  });
}

/** Nodes that are asked at the same time: each is a process or two here, and work for the API server. */
const AT_ONCE = 4;

/**
 * Does the work for each node, for a few at once.
 *
 * @returns what came of them, in the order of the nodes
 */
export async function eachNode<T>(nodes: readonly string[], work: (node: string) => Promise<T>): Promise<readonly T[]> {
  const results = new Map<string, T>();
  const queue = nodes.values();
  const worker = async () => {
    for (const node of queue) results.set(node, await work(node));
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  return nodes.flatMap((node) => results.get(node) ?? []);
}

/** @throws CommandFailure for what no agent says */
function ownershipOf(text: string): AgentOwnership {
  const answer = parseJSON(text);
  if (!isReport(answer)) throw new CommandFailure("the agent's /ownership is not what this version of fairlead knows");
  const { services, networks } = answer;
  return { services, ...(networks && { networks: { ...networks, conflicts: networks.conflicts ?? [] } }) };
}

/** Agents before this version say nothing of conflicts. */
type OwnershipAnswer = Omit<AgentOwnership, "networks"> & {
  readonly networks?: Omit<LearnedOnce["report"], "conflicts"> & Partial<Pick<LearnedOnce["report"], "conflicts">>;
};

function isReport(answer: unknown): answer is OwnershipAnswer {
  if (typeof answer !== "object" || answer === null || !("services" in answer)) return false;
  const networks = "networks" in answer ? answer.networks : undefined;
  return isTable(answer.services, SERVICE) && (networks === undefined || isNetworks(networks));
}

function isNetworks(networks: unknown): boolean {
  if (typeof networks !== "object" || networks === null) return false;
  if (!("sources" in networks) || !("cidrs" in networks)) return false;
  return isTable(networks.sources, SOURCE) && isTable(networks.cidrs, CIDR);
}

/** Whether every row has a text in each of the fields. */
function isTable(rows: unknown, fields: readonly string[]): boolean {
  return Array.isArray(rows) && rows.every((one) => fields.every((field) => typeof one?.[field] === "string"));
}

const SERVICE = ["service", "ipFamily", "ownership", "why", "frontends"] as const;
const SOURCE = ["source", "side", "state"] as const;
const CIDR = ["cidr", "side", "source", "stage"] as const;
