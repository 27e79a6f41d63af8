import type { ServicePortGroup } from "../plan.ts";
import type { ConntrackFlow } from "./flow.ts";

/** Answers whether a flow is answered by a serving endpoint of a group; a group's endpoints are read once. */
export class ServingIndex {
  readonly #byGroup = new Map<ServicePortGroup, ReadonlySet<string>>();

  serves(group: ServicePortGroup, flow: ConntrackFlow): boolean {
    return this.#endpoints(group).has(`${flow.replySource} ${flow.replyPort}`);
  }

  #endpoints(group: ServicePortGroup): ReadonlySet<string> {
    const known = this.#byGroup.get(group);
    if (known !== undefined) return known;
    const endpoints = new Set(group.serving.map(({ address, port }) => `${address} ${port}`));
    this.#byGroup.set(group, endpoints);
    return endpoints;
  }
}
