import { parseJSON } from "@fairlead/base";
import type { LearnedOnce, OwnershipRow } from "@fairlead/intake";
import type { Context } from "../frame/context.ts";
import { CommandFailure } from "../frame/errors.ts";
import { type AgentAddress, askAgent } from "./agent-endpoint.ts";

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

/** @throws CommandFailure for what no agent says */
export function ownershipOf(text: string): AgentOwnership {
  const answer = parseJSON(text);
  if (!isReport(answer)) throw new CommandFailure("the agent's /ownership is not what this version of fairlead knows");
  const { services, networks } = answer;
  return { services, ...(networks && { networks: { ...networks, conflicts: networks.conflicts ?? [] } }) };
}

/** Undefined: it is no JSON. */
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
