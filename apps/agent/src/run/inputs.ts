import { errorChainText } from "@fairlead/base";
import type { NodeState } from "@fairlead/core";
import { type ProxySubscriptions, ruleAnnotations, subscriptions } from "@fairlead/intake";
import type { ServiceDeviceChange } from "@fairlead/kernel";
import { followAddresses } from "../node/follow-addresses.ts";
import { whyUnserved } from "../node/primary-family.ts";
import { serviceAddressReason } from "../objects/service-address.ts";
import { logSource } from "../objects/source-log.ts";
import type { SyncKind } from "../sync/sync-loop.ts";
import type { NodeEligibility } from "./eligibility.ts";
import { followPodCIDRs } from "./follow-pod-cidrs.ts";
import type { Agent, AgentParts } from "./parts.ts";
import { prerequisites } from "./prerequisites.ts";
import { type Prerequisite, Readiness } from "./readiness.ts";
import { whyRefused } from "./refusal.ts";
import { beginSyncs, requestSync } from "./syncs.ts";

/** What inputs need alongside the agent. */
interface Following {
  readonly eligibility: NodeEligibility;
  readonly signal: AbortSignal;
  /** Called when the agent cannot go on. */
  readonly fail: (reason: string) => void;
}

/**
 * Follows all that the rules depend on, each until the signal aborts: the node's addresses, the objects, the networks.
 * The first sync waits for the prerequisites; after it, each change asks for another.
 */
export function followInputs(parts: AgentParts, agent: Agent, following: Following): void {
  const { signal, fail } = following;
  const onReady = (without: readonly Prerequisite[]) => {
    const refused = whyRefused(parts, agent);
    if (refused === undefined) beginSyncs(parts, agent, without);
    else fail(refused);
  };
  const readiness = new Readiness({ clock: parts.clock, needs: prerequisites(parts), onReady });
  const request = (kind: SyncKind) => {
    if (readiness.ready) requestSync(parts, agent, kind);
  };
  const fatal = (what: string) => (error: unknown) => fail(`${what}: ${errorChainText(error)}`);
  parts.onFullSyncAsked?.(() => request("full"));
  followNodeAddresses(parts, agent, readiness, request, signal).catch(fatal("node addresses cannot be followed"));
  const onNode = nodeFollower(parts, agent, readiness, request, following);
  const intake = subscribe(parts, agent, readiness, request, onNode);
  agent.delay.start(() => request("partial"));
  agent.networks?.start({
    onFirst: () => readiness.known("networks"),
    onChange: (decision) => {
      if (agent.inputs.setNetworks(decision)) request("partial");
    },
  });
  const onReport = logSource({ log: parts.log, serviceAddress: (address) => isServiceAddress(agent, address) });
  const source = parts.source(onReport, agent.metrics.requests);
  const others = agent.networks && { others: agent.networks.subscriptions };
  source.run({ ...intake, ...others }, signal).catch(fatal("objects cannot be followed"));
}

type Request = (kind: SyncKind) => void;

function followNodeAddresses(
  { kernel, isForeignChange }: AgentParts,
  { inputs, loop }: Agent,
  readiness: Readiness,
  request: Request,
  signal: AbortSignal,
): Promise<void> {
  const watched = {
    signal,
    ...(isForeignChange && {
      onServiceDevice: (change: ServiceDeviceChange) => {
        if (readiness.ready && isForeignChange(change)) loop.requestCheck();
      },
    }),
  };
  return followAddresses(kernel, watched, (addresses, ips) => {
    if (inputs.setAddresses(addresses, ips)) request("partial");
    readiness.known("addresses");
  });
}

/** The own Node: whether it is going away, its addresses, which may come late and change, and its podCIDRs. */
function nodeFollower(
  parts: AgentParts,
  { inputs }: Agent,
  readiness: Readiness,
  request: Request,
  { eligibility, signal, fail }: Following,
): (node: NodeState | undefined) => void {
  const podCIDRs = followPodCIDRs(parts, readiness, signal, fail);
  return (node) => {
    eligibility.set(node);
    if (node === undefined) return;
    if (inputs.setNode(node)) request("partial");
    podCIDRs?.see(node);
    if (node.addresses.length === 0) return;
    readiness.known("nodeAddresses");
    const unserved = whyUnserved(inputs.primaryFamily, parts.unserved);
    if (unserved !== undefined) fail(unserved);
  };
}

function subscribe(
  { config, mode }: AgentParts,
  { state, problems, syncer, inputs, networks }: Agent,
  readiness: Readiness,
  request: Request,
  onNode: (node: NodeState | undefined) => void,
): ProxySubscriptions {
  let announced = false;
  return subscriptions({
    loopbackEndpoints: config.userspace.only,
    serviceProxyName: config.serviceProxyName,
    annotations: ruleAnnotations(config),
    state,
    problems,
    onChange() {
      // The lists have begun to come: the kernel is read meanwhile.
      if (!announced && !readiness.ready) syncer.prepare();
      announced = true;
      request("partial");
    },
    onNode,
    // Without them there is only no drop of packets to addresses that no service has: nothing waits for them.
    onServiceCIDRs:
      mode.needs.serviceCIDRs || networks !== undefined
        ? (cidrs) => {
            networks?.setServiceCIDRs(cidrs);
            if (inputs.setServiceCIDRs(cidrs)) request("partial");
          }
        : undefined,
    onSynced(resource) {
      readiness.known(resource);
      networks?.synced(resource);
    },
  });
}

function isServiceAddress({ planner, families }: Agent, address: string): string | undefined {
  const known = families.some((family) => planner.lookup(family).at("TCP", address, 443) !== undefined);
  return serviceAddressReason(address, () => known, process.env);
}
