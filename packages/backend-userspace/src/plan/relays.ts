import type { EndpointSetName, Frontend, ServicePortGroup, SourceClass, Treatment } from "@fairlead/core";

/** Plain questions about what a group has relayed. */

export type Proxied = Extract<Treatment, { verdict: "proxy" }>;

const CLASSES: readonly SourceClass[] = ["outside", "node", "pod"];

export function proxied(treatment: Treatment): treatment is Proxied {
  return treatment.verdict === "proxy";
}

/** The sets that some packet goes to: each has a relay of its own. */
export function relayedSets(group: ServicePortGroup): readonly EndpointSetName[] {
  const sets = group.frontends.flatMap(({ treatments }) =>
    CLASSES.map((source) => treatments[source])
      .filter(proxied)
      .map(({ set }) => set),
  );
  return [...new Set(sets)];
}

/** What cannot be relayed at all: user space has TCP and UDP sockets only. */
export function isRelayable({ protocol }: ServicePortGroup): boolean {
  return protocol !== "SCTP";
}

/** What becomes of packets that no rule of nat has sent to a relay. One verdict is enough for all source classes. */
export function refusal(frontend: Frontend, served: (set: EndpointSetName) => boolean): "reject" | "drop" | undefined {
  for (const source of CLASSES) {
    const treatment = frontend.treatments[source];
    if (treatment.verdict === "reject" || treatment.verdict === "drop") return treatment.verdict;
    if (proxied(treatment) && !served(treatment.set)) return "reject";
  }
  return undefined;
}
