/** Serving on local ports only, and where each Service is to be had. */

import { inSlices, socketText } from "@fairlead/base";
import type {
  EndpointSetName,
  ForwardingPlan,
  FrontendLookup,
  IPFamily,
  PlanChange,
  PlanEndpoint,
  ServicePortGroup,
  SyncReport,
} from "@fairlead/core";
import type { RelayingBackend } from "./backend.ts";
import { userspaceSemantics } from "./facts.ts";
import { resolveOptions, type UserspaceOptions } from "./options.ts";
import { isRelayable, proxied } from "./plan/relays.ts";
import { LOOPBACK } from "./relay/relay.ts";
import { Relays } from "./relay/relays.ts";

/** Where a service port is to be had. */
export interface LocalService {
  /** `namespace/name:port` */
  readonly name: string;
  /** `TCP`, `UDP` or `SCTP`. */
  readonly protocol: string;
  /** `127.0.0.1:8080`; absent: nowhere. */
  readonly address?: string;
  /** Why nowhere. */
  readonly reason?: string;
}

/** A backend without rules. */
export interface LocalBackend extends RelayingBackend {
  /** Every service port of the last plan, by name. */
  services(): readonly LocalService[];
}

/**
 * The services of one IP family on local ports: no rule, no root, no Linux. Each service port gets the port that it
 * asks for, or else one that is free.
 *
 * @throws RangeError when an option is out of range
 */
export function createLocalBackend(family: IPFamily, options: UserspaceOptions = {}): LocalBackend {
  const resolved = resolveOptions(family, options);
  const address = resolved.address ?? LOOPBACK[family];
  const relays = new Relays(address, resolved, { sets: localSets, preferredPort: localPort });
  let groups: ReadonlyMap<string, ServicePortGroup> = new Map();

  const report = (kind: SyncReport["kind"]): SyncReport => ({ kind, objects: {} });

  return {
    semantics: userspaceSemantics,

    async sync(plan: ForwardingPlan) {
      groups = plan.groups;
      relays.retain(groups);
      await relays.open(groups.values());
      await inSlices(relays.serve(groups.values()), resolved);
      return report("full");
    },

    async apply(plan: ForwardingPlan, change: PlanChange) {
      groups = plan.groups;
      for (const [id, { before, after }] of change.groups) {
        if (after === undefined || (before !== undefined && localPort(before) !== localPort(after))) relays.drop(id);
      }
      const present = Array.from(change.groups.values(), ({ after }) => after).filter((group) => group !== undefined);
      await relays.open(present);
      await inSlices(relays.serve(present), resolved);
      return report("partial");
    },

    difference: async () => undefined,
    maintain: async () => undefined,
    relays: (group): readonly PlanEndpoint[] => relays.ports(group).map((port) => ({ address, port, local: true })),
    close: () => relays.close(),
    cleanup: async () => relays.close(),

    services() {
      const all = Array.from(groups.values(), (group): LocalService => {
        const { name, protocol } = group;
        const [port] = relays.ports(group);
        if (port !== undefined) return { name, protocol, address: socketText(address, port) };
        return { name, protocol, reason: whyNowhere(group) };
      });
      return all.sort((a, b) => (a.name < b.name ? -1 : 1));
    },
  };
}

/** Plain questions about a group that is served on local ports only, without any rule. */

/**
 * Names the local port of a service with one port, `8080`, or of each of its ports by name, `http=8080,metrics=9090`.
 */
export const LOCAL_PORT_ANNOTATION = "fairlead.dev/local-port";

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

function whyNowhere(group: ServicePortGroup): string {
  if (!isRelayable(group)) return `${group.protocol} cannot be relayed`;
  return localSets(group).length === 0 ? "no endpoints" : "no free port";
}

/** Ports below are for root. */
const FIRST_FREE = 1024;
const PRIVILEGED_OFFSET = 8_000;

/** What this node itself would be given at the service's cluster IP. */
function localSets({ frontends }: ServicePortGroup): readonly EndpointSetName[] {
  const treatments = frontends.filter(({ reach }) => reach === "internal").map((frontend) => frontend.treatments.node);
  return [...new Set(treatments.filter(proxied).map(({ set }) => set))];
}

/** The annotation's port; else the service's own, or 8080 for 80, 8443 for 443 and so on. */
function localPort(group: ServicePortGroup): number | undefined {
  const own = group.frontends.find(({ reach }) => reach === "internal")?.port;
  const fallback = own !== undefined && own < FIRST_FREE ? own + PRIVILEGED_OFFSET : own;
  return annotatedPort(group) ?? fallback;
}

function annotatedPort({ annotations, name }: ServicePortGroup): number | undefined {
  const portName = name.slice(name.indexOf("/") + 1).split(":")[1] ?? "";
  const entries = (annotations[LOCAL_PORT_ANNOTATION] ?? "").split(",").map((entry) => entry.trim());
  const given = entries.find((entry) => entry.startsWith(`${portName}=`))?.slice(portName.length + 1);
  const text = given ?? (entries.length === 1 ? entries[0] : undefined) ?? "";
  const port = /^\d{1,5}$/.test(text) ? Number(text) : 0;
  return port >= 1 && port <= 65_535 ? port : undefined;
}
