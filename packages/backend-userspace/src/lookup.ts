import type { FrontendLookup, PlanEndpoint, ServicePortGroup } from "@fairlead/core";

/**
 * Which entries of connection tracking are stale in this mode: to the kernel a frontend's endpoints are its relays. An
 * entry that leads to any other socket, such as one of the process before this one, keeps its client there.
 *
 * @param relays where a group's relays listen
 */
export function relayLookup(
  lookup: FrontendLookup,
  relays: (group: ServicePortGroup) => readonly PlanEndpoint[],
): FrontendLookup {
  const known = new WeakMap<ServicePortGroup, ServicePortGroup>();
  const withRelays = (group: ServicePortGroup | undefined) => {
    if (group === undefined) return undefined;
    const made = known.get(group) ?? { ...group, serving: relays(group) };
    known.set(group, made);
    return made;
  };
  return {
    family: lookup.family,
    at: (protocol, address, port) => withRelays(lookup.at(protocol, address, port)),
    atNodePort: (protocol, port) => withRelays(lookup.atNodePort(protocol, port)),
  };
}
