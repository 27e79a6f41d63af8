/** Which relays a plan needs, and on which address. */

import type {
  EndpointSetName,
  ForwardingPlan,
  Frontend,
  IPFamily,
  ServicePortGroup,
  SourceClass,
  Treatment,
} from "@fairlead/core";

/** Plain questions about what a group has relayed. */

type Proxied = Extract<Treatment, { verdict: "proxy" }>;

export function proxied(treatment: Treatment): treatment is Proxied {
  return treatment.verdict === "proxy";
}

export const CLASSES: readonly SourceClass[] = ["outside", "node", "pod"];

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

/**
 * The address that relays listen on. Any address of the node's own will do, since rules lead every packet there; one
 * only, because an answer by UDP must come from the address that was asked, which a socket on all addresses does not
 * know.
 *
 * @param current the address in use, kept as long as the node has it
 * @returns where nothing is relayed and the node has none: an address on which nothing will listen
 * @throws Error where the node has none but loopback and link-local ones
 */
export function hostAddress(
  family: IPFamily,
  { node: { nodeAddresses = [] }, groups }: Pick<ForwardingPlan, "node" | "groups">,
  current?: string,
): string {
  const usable = nodeAddresses.filter((address) => !LIMITED.test(address));
  if (current !== undefined && usable.includes(current)) return current;
  const [first] = usable;
  // A cluster of one family has nothing of the other, nor have its nodes.
  if (first === undefined && groups.size === 0) return LOOPBACK[family];
  if (first === undefined) {
    throw new Error(`${family}: the node has no address for relays to listen on; set one with --bind-address`);
  }
  return first;
}

/** Loopback and link-local addresses. */
const LIMITED = /^(127\.|169\.254\.|::1$|fe[89ab][0-9a-f]:)/;

const LOOPBACK: Readonly<Record<IPFamily, string>> = { IPv4: "127.0.0.1", IPv6: "::1" };
