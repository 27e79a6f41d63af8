/** Relays of node ports on loopback addresses. */

import { inAnyOf, inSlices } from "@fairlead/base";
import type { EndpointSetName, ForwardingPlan, Frontend, IPFamily, PlanChange, ServicePortGroup } from "@fairlead/core";
import { resolveOptions, type UserspaceOptions } from "./options.ts";
import { proxied } from "./plan/relays.ts";
import { LOOPBACK } from "./relay/relay.ts";
import { Relays } from "./relay/relays.ts";

/** TCP node ports on a loopback address, for a mode that cannot lead packets on from there. */
export interface NodePortRelays {
  /** Makes the listening sockets those of the plan. A port that another program has costs that port only. */
  sync(plan: ForwardingPlan): Promise<void>;
  /** The same for the groups of a change. */
  apply(change: PlanChange): Promise<void>;
  /**
   * Tries ports again that another program had.
   *
   * @returns milliseconds until it should be called again; undefined: not before the next change
   */
  retry(): Promise<number | undefined>;
  /** Sockets that listen now. */
  readonly listeners: number;
  /** Times that one could not be opened. */
  readonly failures: number;
  /** Closes the listening sockets; connections go on until `RelayTraffic.end`. */
  close(): void;
}

/** Milliseconds until a port is tried again that was taken. */
const RETRY = 30_000;

/**
 * Opens nothing until it is called.
 *
 * @param options `address` is 127.0.0.1 or ::1 unless given; ports are the services' own, whatever `portRange` says
 * @throws RangeError when an option is out of range
 */
export function createNodePortRelays(family: IPFamily, options: UserspaceOptions = {}): NodePortRelays {
  const resolved = resolveOptions(family, options);
  const { clock } = resolved;
  const address = resolved.address ?? LOOPBACK[family];
  const sets = (group: ServicePortGroup) => nodePortSets(group, address);
  const relays = new Relays(address, resolved, { sets, port: nodePort });
  let retryAt = 0;

  /** Ports that a service or a set has given up are closed first: another one may have them now. */
  async function serve(groups: readonly ServicePortGroup[]): Promise<void> {
    for (const group of groups) if (relays.ports(group).some((port) => port !== nodePort(group))) relays.drop(group.id);
    await inSlices(relays.serve(groups), resolved);
    const missing = groups.filter((group) => relays.ports(group).length === 0);
    await relays.open(missing);
    await inSlices(relays.serve(missing), resolved);
    retryAt = clock.monotonic() + RETRY;
  }

  return {
    async sync({ groups }) {
      relays.retain(groups);
      await serve([...groups.values()]);
    },
    async apply({ groups }) {
      for (const [id, { after }] of groups) if (after === undefined) relays.drop(id);
      await serve(Array.from(groups.values(), ({ after }) => after).filter((group) => group !== undefined));
    },
    async retry() {
      if (relays.failed.length === 0) return undefined;
      const wait = retryAt - clock.monotonic();
      if (wait > 0) return wait;
      await serve(relays.failed);
      return relays.failed.length === 0 ? undefined : RETRY;
    },
    get listeners() {
      return relays.listening;
    },
    get failures() {
      return relays.failures;
    },
    close: () => relays.close(),
  };
}

/** Plain questions about a group that has its node port relayed, and nothing else. */

function nodePort({ frontends }: ServicePortGroup): number | undefined {
  return frontends.find(isNodePort)?.port;
}

/**
 * The set behind its node port, where that has endpoints: as for clients from outside, since upstream's relay leads to
 * endpoints of this node only under external traffic policy Local (pkg/proxy/nftables/proxier.go). Only TCP is
 * relayed, as upstream.
 *
 * @param client what the node's programs send from
 */
function nodePortSets({ frontends, protocol, ...group }: ServicePortGroup, client: string): readonly EndpointSetName[] {
  const frontend = protocol === "TCP" ? frontends.find(isNodePort) : undefined;
  if (frontend?.gate !== undefined && !inAnyOf(frontend.gate.ranges)(client)) return [];
  const treatment = frontend?.treatments.outside;
  return treatment !== undefined && proxied(treatment) && group[treatment.set].length > 0 ? [treatment.set] : [];
}

function isNodePort({ at }: Frontend): boolean {
  return at === "node-port";
}
