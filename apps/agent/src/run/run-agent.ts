import { errorChainText, sleep } from "@fairlead/base";
import type { NodeState } from "@fairlead/core";
import { type ProxySubscriptions, ruleAnnotations, subscriptions } from "@fairlead/intake";
import type { ServiceDeviceChange } from "@fairlead/kernel";
import { followAddresses } from "../node/follow-addresses.ts";
import { whyUnserved } from "../node/primary-family.ts";
import { serviceAddressReason } from "../objects/service-address.ts";
import { logSource } from "../objects/source-log.ts";
import type { SyncKind } from "../sync/sync-loop.ts";
import { type Assembled, assemble } from "./assemble.ts";
import { watchConfigFile } from "./config-file.ts";
import { NodeEligibility } from "./eligibility.ts";
import { followPodCIDRs } from "./follow-pod-cidrs.ts";
import { followForeign } from "./foreign-changes.ts";
import type { AgentParts } from "./parts.ts";
import { prerequisites } from "./prerequisites.ts";
import { type Prerequisite, Readiness } from "./readiness.ts";
import { whyRefused } from "./refusal.ts";
import { openServers } from "./servers.ts";

/** Milliseconds that connections through this process get to end after SIGTERM. */
const DRAIN_MS = 1_000;
/** Milliseconds that what runs gets to end after SIGTERM. A restore that is cut off leaves its tables as they were. */
const SHUTDOWN_MS = 1_500;

/**
 * Runs the agent until `stop` aborts or it cannot go on. The rules stay in place either way.
 *
 * @returns undefined after `stop`; else why it cannot go on
 */
export async function runAgent(parts: AgentParts, stop: AbortSignal): Promise<string | undefined> {
  const agent = assemble(parts);
  const ended = Promise.withResolvers<string | undefined>();
  const down = new AbortController();
  stop.addEventListener("abort", () => ended.resolve(undefined));
  if (stop.aborted) ended.resolve(undefined);
  start(parts, agent, down.signal, ended.resolve);
  const reason = await ended.promise;
  down.abort();
  await Promise.race([shutDown(parts, agent), sleep(parts.clock, SHUTDOWN_MS)]);
  return reason;
}

function start(parts: AgentParts, agent: Assembled, signal: AbortSignal, fail: (reason: string) => void): void {
  const { config, clock, log, kernel } = parts;
  const eligibility = new NodeEligibility(config.manifests === undefined);
  openServers(parts, agent, eligibility, signal, fail);
  const onReady = (without: readonly Prerequisite[]) => {
    const refused = whyRefused(parts, agent);
    if (refused === undefined) begin(parts, agent, without);
    else fail(refused);
  };
  const readiness = new Readiness({ clock, needs: prerequisites(parts, agent), onReady });
  const request = (kind: SyncKind) => {
    if (readiness.ready) requestSync(parts, agent, kind);
  };
  parts.onFullSyncAsked?.(() => request("full"));
  const fatal = (what: string) => (error: unknown) => fail(`${what}: ${errorChainText(error)}`);
  const { isForeignChange } = parts;
  const watched = {
    signal,
    ...(isForeignChange && {
      onServiceDevice: (change: ServiceDeviceChange) => {
        if (readiness.ready && isForeignChange(change)) agent.loop.requestCheck();
      },
    }),
  };
  const follow = followAddresses(kernel, watched, (addresses, ips) => {
    if (agent.inputs.setAddresses(addresses, ips)) request("partial");
    readiness.known("addresses");
  });
  follow.catch(fatal("node addresses cannot be followed"));
  void followForeign(parts, agent, signal);
  const podCIDRs = followPodCIDRs(parts, readiness, signal, fail);
  const onNode = (node: NodeState | undefined) => {
    eligibility.set(node);
    if (node === undefined) return;
    if (agent.inputs.setNode(node)) request("partial");
    podCIDRs?.see(node);
    const unserved = seeAddresses(node, parts, agent, readiness);
    if (unserved !== undefined) fail(unserved);
  };
  const intake = subscribe(parts, agent, readiness, request, onNode);
  agent.networks?.start({
    onFirst: () => readiness.known("networks"),
    onChange: (decision) => {
      if (agent.inputs.setNetworks(decision)) request("partial");
    },
  });
  const onReport = logSource({ log, serviceAddress: (address) => isServiceAddress(agent, address) });
  const source = parts.source(onReport, agent.metrics.requests);
  const others = agent.networks && { others: agent.networks.subscriptions };
  source.run({ ...intake, ...others }, signal).catch(fatal("objects cannot be followed"));
  followConfigFile(parts, signal, fail);
}

function followConfigFile(
  { config, clock, log }: AgentParts,
  signal: AbortSignal,
  fail: (reason: string) => void,
): void {
  if (config.configFile === undefined) return;
  watchConfigFile({
    ...config.configFile,
    clock,
    signal,
    onChange: () => fail("the configuration file changed: ending, to be started again with the new one"),
    onError: (error) => log.warn("The configuration file is not watched", { error: errorChainText(error) }),
  });
}

/**
 * Addresses of the own Node may come late, and change while the agent runs.
 *
 * @returns why the node cannot be served with them
 */
function seeAddresses(
  { addresses }: NodeState,
  { unserved }: AgentParts,
  { inputs }: Assembled,
  readiness: Readiness,
): string | undefined {
  if (addresses.length === 0) return undefined;
  readiness.known("nodeAddresses");
  return whyUnserved(inputs.primaryFamily, unserved);
}

function subscribe(
  { config, mode }: AgentParts,
  agent: Assembled,
  readiness: Readiness,
  request: (kind: SyncKind) => void,
  onNode: (node: NodeState | undefined) => void,
): ProxySubscriptions {
  const { networks } = agent;
  let announced = false;
  return subscriptions({
    loopbackEndpoints: config.userspace.only,
    serviceProxyName: config.serviceProxyName,
    annotations: ruleAnnotations(config),
    state: agent.state,
    problems: agent.problems,
    onChange() {
      // The lists have begun to come: the kernel is read meanwhile.
      if (!announced && !readiness.ready) agent.syncer.prepare();
      announced = true;
      request("partial");
    },
    onNode,
    // Without them there is only no drop of packets to addresses that no service has: nothing waits for them.
    onServiceCIDRs:
      mode.needs.serviceCIDRs || networks !== undefined
        ? (cidrs) => {
            networks?.setServiceCIDRs(cidrs);
            if (agent.inputs.setServiceCIDRs(cidrs)) request("partial");
          }
        : undefined,
    onSynced(resource) {
      readiness.known(resource);
      networks?.synced(resource);
    },
  });
}

function begin(
  { clock, log, nodeName }: AgentParts,
  { families, health, metrics, loop, state }: Assembled,
  without: readonly Prerequisite[],
): void {
  if (without.length > 0) {
    log.warn("The own Node is not known: serving as if it had no zone, and the address that the kernel sends from", {
      node: nodeName,
      missing: without.join(","),
    });
  }
  log.verbose(2, "All objects are known, writing rules", { serviceChanges: state.serviceChanges.total });
  for (const family of families) {
    health.started(family);
    metrics.sync.lastQueued.set({ ip_family: family }, clock.now() / 1000);
  }
  loop.start();
}

function requestSync({ clock }: AgentParts, { families, health, metrics, loop }: Assembled, kind: SyncKind): void {
  for (const family of families) {
    health.queued(family);
    metrics.sync.lastQueued.set({ ip_family: family }, clock.now() / 1000);
  }
  loop.request(kind);
}

function isServiceAddress({ planner, families }: Assembled, address: string): string | undefined {
  const known = families.some((family) => planner.lookup(family).at("TCP", address, 443) !== undefined);
  return serviceAddressReason(address, () => known, process.env);
}

async function shutDown(
  { relaying, clock }: AgentParts,
  { loop, keeper, networks, known, serviceHealth }: Assembled,
): Promise<void> {
  networks?.stop();
  await Promise.all([
    loop.stop(),
    relaying?.close(sleep(clock, DRAIN_MS)),
    ...Array.from(serviceHealth.values(), (servers) => servers.close()),
  ]);
  await Promise.all([keeper.flush(), known.flush()]);
}
