import { type ProxySubscriptions, subscriptions } from "@fairlead/intake";
import type { ServiceDeviceChange } from "@fairlead/kernel";
import { sleep } from "../clock.ts";
import { Readiness } from "../intake/readiness.ts";
import { serviceAddressReason } from "../intake/service-address.ts";
import { logSource } from "../intake/source-log.ts";
import { describeError } from "../log/log.ts";
import { followAddresses } from "../node/follow-addresses.ts";
import { PodCIDRs, podCIDRsTimeout } from "../node/pod-cidrs.ts";
import type { SyncKind } from "../pacing/sync-loop.ts";
import { watchConfigFile } from "../start/config-file.ts";
import { type Assembled, assemble } from "./assemble.ts";
import { NodeEligibility } from "./eligibility.ts";
import type { AgentParts } from "./parts.ts";
import { openServers } from "./servers.ts";

/** Milliseconds that connections through this process get to end after SIGTERM. */
const goodbyes = 1_000;
/** Milliseconds that what runs gets to end after SIGTERM. A restore that is cut off leaves its tables as they were. */
const lastWords = 1_500;

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
  await Promise.race([windUp(parts, agent), sleep(parts.clock, lastWords)]);
  return reason;
}

function start(parts: AgentParts, agent: Assembled, signal: AbortSignal, fail: (reason: string) => void): void {
  const { config, clock, log, kernel } = parts;
  const eligibility = new NodeEligibility(config.manifests === undefined);
  openServers(parts, agent, eligibility, signal, fail);
  // Manifests may do without a Node: then nothing is local.
  const needsPodCIDRs = config.detectLocal.kind === "node-cidr" && config.manifests === undefined;
  const readiness = new Readiness(clock, () => begin(parts, agent), needsPodCIDRs);
  const request = (kind: SyncKind) => {
    if (readiness.ready) requestSync(parts, agent, kind);
  };
  parts.onFullSyncAsked?.(() => request("full"));
  const fatal = (what: string) => (error: unknown) => fail(`${what}: ${describeError(error)}`);
  const { strangeChange } = parts;
  const watched = {
    signal,
    ...(strangeChange && {
      onServiceDevice: (change: ServiceDeviceChange) => {
        if (readiness.ready && strangeChange(change)) agent.loop.requestCheck();
      },
    }),
  };
  const follow = followAddresses(kernel, watched, (addresses, ips) => {
    if (agent.inputs.setAddresses(addresses, ips)) request("partial");
  });
  follow.catch(fatal("node addresses cannot be followed"));
  const podCIDRs = followPodCIDRs(parts, readiness, signal, fail);
  const intake = subscribe(parts, agent, eligibility, readiness, request, podCIDRs);
  const source = parts.source(logSource({ log, serviceAddress: (address) => isServiceAddress(agent, address) }));
  source.run(intake, signal).catch(fatal("objects cannot be followed"));
  if (config.configFile === undefined) return;
  watchConfigFile({
    ...config.configFile,
    clock,
    signal,
    onChange: () => fail("the configuration file changed: ending, to be started again with the new one"),
    onError: (error) => log.warn("The configuration file is not watched", { error: describeError(error) }),
  });
}

/** Undefined: local traffic is not known by them. */
function followPodCIDRs(
  { config, clock, nodeName }: AgentParts,
  readiness: Readiness,
  signal: AbortSignal,
  fail: (reason: string) => void,
): PodCIDRs | undefined {
  if (config.detectLocal.kind !== "node-cidr") return undefined;
  const podCIDRs = new PodCIDRs({
    onKnown: () => readiness.nodeKnown(),
    onChanged: (before, after) =>
      fail(`the podCIDRs of Node ${nodeName} changed from ${before.join(",")} to ${after.join(",") || "none"}`),
  });
  if (config.manifests === undefined) {
    const late = () => fail(`Node ${nodeName} was given no podCIDRs, which detectLocalMode NodeCIDR needs`);
    const cancel = clock.after(podCIDRsTimeout, () => podCIDRs.known || late());
    signal.addEventListener("abort", cancel);
  }
  return podCIDRs;
}

function subscribe(
  { config }: AgentParts,
  agent: Assembled,
  eligibility: NodeEligibility,
  readiness: Readiness,
  request: (kind: SyncKind) => void,
  podCIDRs: PodCIDRs | undefined,
): ProxySubscriptions {
  let announced = false;
  return subscriptions({
    loopbackEndpoints: config.userspace.only,
    state: agent.state,
    problems: agent.problems,
    onChange() {
      // The lists have begun to come: the kernel is read meanwhile.
      if (!announced && !readiness.ready) agent.syncer.prepare();
      announced = true;
      request("partial");
    },
    onNode(node) {
      eligibility.set(node);
      if (node === undefined) return;
      if (agent.inputs.setNode(node)) request("partial");
      podCIDRs?.see(node);
    },
    onSynced: (resource) => readiness.synced(resource),
  });
}

function begin({ clock, log }: AgentParts, { families, health, metrics, loop, state }: Assembled): void {
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

async function windUp({ relaying, clock }: AgentParts, { loop, keeper, serviceHealth }: Assembled): Promise<void> {
  await Promise.all([
    loop.stop(),
    relaying?.close(sleep(clock, goodbyes)),
    ...Array.from(serviceHealth.values(), (servers) => servers.close()),
  ]);
  await keeper.flush();
}
