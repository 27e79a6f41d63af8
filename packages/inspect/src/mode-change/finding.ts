import type { ServiceKey } from "@fairlead/core";

/** One thing that a change of the mode means for a node. */
export interface ModeFinding {
  readonly topic: string;
  /** `blocks`: the node cannot run the mode. */
  readonly state: "fits" | "differs" | "blocks" | "unknown";
  readonly found: string;
  /** What can be done about it. */
  readonly advice?: string;
  /** The services that it is about, sorted; absent: it is not about single ones. */
  readonly services?: readonly ServiceKey[];
}

/** Services by their names, each once. */
export function sortedServices(services: Iterable<ServiceKey>): readonly ServiceKey[] {
  return [...new Set(services)].sort();
}
