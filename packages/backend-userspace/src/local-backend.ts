import { inSlices, socketText } from "@fairlead/base";
import type { ForwardingPlan, IPFamily, PlanChange, PlanEndpoint, ServicePortGroup, SyncReport } from "@fairlead/core";
import type { RelayingBackend } from "./backend.ts";
import { resolveOptions, type UserspaceOptions } from "./options.ts";
import { localPort, localSets } from "./plan/local.ts";
import { isRelayable } from "./plan/relays.ts";
import { LOOPBACK } from "./relay/loopback.ts";
import { Relays } from "./relay/relays.ts";
import { userspaceSemantics } from "./semantics.ts";

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

function whyNowhere(group: ServicePortGroup): string {
  if (!isRelayable(group)) return `${group.protocol} cannot be relayed`;
  return localSets(group).length === 0 ? "no endpoints" : "no free port";
}
