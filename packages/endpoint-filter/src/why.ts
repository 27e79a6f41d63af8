import type { Ownership } from "@fairlead/core";
import type { FilterOptions } from "./options.ts";
import type { Survey } from "./survey.ts";

/** Sentences for operators: log lines, `/ownership` and the command line show them as they are. */

export function fromCIDRs({ own, excluded, cidrs }: Survey, policy: FilterOptions["mixedServices"]): string {
  const total = own + excluded;
  if (excluded === 0)
    return total === 1
      ? "its endpoint is in no excluded CIDR"
      : `none of its ${total} endpoints is in an excluded CIDR`;
  if (own === 0) return `${total === 1 ? "its endpoint is" : `all of its ${total} endpoints are`} in ${names(cidrs)}`;
  const are = excluded === 1 ? "is" : "are";
  return `${excluded} of its ${total} endpoints ${are} in ${names(cidrs)}; mixed services: ${POLICIES[policy]}`;
}

const POLICIES: Readonly<Record<FilterOptions["mixedServices"], string>> = {
  "own-endpoints": "own-endpoints, so only its other endpoints are used",
  skip: "skip, so it is not served",
  all: "all, so every endpoint is used",
};

/** All endpoints are addresses of nodes. */
export function fromNodes(endpoints: number): string {
  return endpoints === 1
    ? "its endpoint is a node's address, which is in no pod network"
    : `all of its ${endpoints} endpoints are nodes' addresses, which are in no pod network`;
}

export function fromMemory(remembered: Ownership | undefined, policy: FilterOptions["mixedServices"]): string {
  if (remembered === undefined) return "it has no endpoints, and its last owner is not known";
  const then = remembered === "mixed" ? `; mixed services: ${policy}` : "";
  return `it has no endpoints; when it last had endpoints, it was ${remembered}${then}`;
}

/** The first few: an operator may exclude a thousand. */
function names(cidrs: readonly string[]): string {
  const shown = cidrs.slice(0, 3).join(", ");
  return cidrs.length > 3 ? `${shown} and ${cidrs.length - 3} more` : shown;
}
