import type { PlanEndpoint, ServicePortGroup } from "../plan.ts";
import type { ConntrackFlow } from "./flow.ts";

/** The endpoints that may be in the middle of a conversation with a client of the group. */
export function conversing(group: ServicePortGroup): readonly PlanEndpoint[] {
  return group.present ?? group.serving;
}

/** The same for the same endpoint, to look it up. */
export function endpointKey({ address, port }: Pick<PlanEndpoint, "address" | "port">): string {
  return `${address} ${port}`;
}

/** Answers whether a flow is answered by such an endpoint of a group; a group's endpoints are read once. */
export class ServingIndex {
  readonly #byGroup = new Map<ServicePortGroup, ReadonlySet<string>>();

  serves(group: ServicePortGroup, flow: ConntrackFlow): boolean {
    return this.#endpoints(group).has(`${flow.replySource} ${flow.replyPort}`);
  }

  #endpoints(group: ServicePortGroup): ReadonlySet<string> {
    const known = this.#byGroup.get(group);
    if (known !== undefined) return known;
    const endpoints = new Set(conversing(group).map(endpointKey));
    this.#byGroup.set(group, endpoints);
    return endpoints;
  }
}
