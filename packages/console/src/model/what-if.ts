/** What would change if objects or the configuration changed. */

import { IP_FAMILIES, inSlices, systemClock } from "@fairlead/base";
import { type AgentConfig, formatError, parseArguments } from "@fairlead/config";
import {
  ClusterState,
  type OwnershipDecision,
  type Planner,
  type ServiceKey,
  type ServiceOwnership,
} from "@fairlead/core";
import { checkCIDR } from "@fairlead/endpoint-filter";
import { type PlannedNode, planNodeSteps } from "@fairlead/inspect";
import {
  filterSettings,
  type LearnedOnce,
  NetworksOnce,
  type NetworksOnceParts,
  networksSettings,
  ruleAnnotations,
  selectionOf,
  subscriptions,
} from "@fairlead/intake";
import { createManifestsSnapshot, type ObjectKey, type ObjectSource, type OtherSubscription } from "@fairlead/watch";
import { RequestError } from "../guard.ts";
import type { CIDRMove, OwnerMove, WhatIfNetworks } from "../protocol.ts";
import type { LiveCluster } from "./cluster.ts";
import type { AgentSetup } from "./plans.ts";

/** The plans of a node without and with a change, of the services only that it is about. */
export interface ChangedPlans {
  readonly before: PlannedNode;
  readonly after: PlannedNode;
  /** How the agents would be set up. */
  readonly setup: AgentSetup;
  /** Those of which anything is planned differently. */
  readonly services: readonly ServiceKey[];
  /** Those that get another owner. */
  readonly owners: readonly OwnerMove[];
  /** Absent: nothing is learned, neither without nor with the change. */
  readonly networks?: WhatIfNetworks;
}

/** What decides about a cluster: its objects, the configuration, and what is learned of networks by both. */
interface Side {
  readonly setup: AgentSetup;
  readonly state: ClusterState;
  readonly learned?: LearnedOnce;
}

/**
 * Plans a node as if the change had been made. Both sides are what agents decide that start now, without what an agent
 * keeps for a while of objects that are gone.
 */
export async function changedPlans(
  cluster: LiveCluster,
  setup: AgentSetup,
  nodeName: string,
  change: Change,
): Promise<ChangedPlans> {
  await cluster.ready;
  const [old, now] = [
    await sideOf(cluster, setup, nodeName, ""),
    await sideOf(cluster, changedSetup(setup, change), nodeName, change.manifests),
  ];
  const node = cluster.nodes.get(nodeName);
  const plan = ({ setup: of, state, learned }: Side, services?: readonly ServiceKey[]) => {
    const objects = { state, problems: [], ...(node && { node }), ...(learned && { learned }) };
    return inSlices(planNodeSteps({ ...of, cluster: objects, nodeName, ...(services && { services }) }));
  };
  const [before, after] = [await plan(old), await plan(now)];
  const services = differing(before, after);
  const networks = networksChange(old.learned, now.learned);
  return {
    before: await plan(old, services),
    after: await plan(now, services),
    setup: now.setup,
    services,
    owners: ownerMoves(before.planner, after.planner),
    ...(networks && { networks }),
  };
}

/** A hypothetical change; "" in each: none. */
export interface Change {
  /** Manifests of objects that come, or take the place of those of their names. */
  readonly manifests: string;
  /** One more CIDR of another network. */
  readonly excludeCIDR: string;
  /** A file of --config, in place of the agents' configuration. The mode stays. */
  readonly configuration: string;
}

/** Objects as a source would give them, raw. */
type PastedObjects = ReadonlyMap<ObjectKey, unknown>;

async function sideOf(cluster: LiveCluster, setup: AgentSetup, nodeName: string, manifests: string): Promise<Side> {
  const { config, networks: settings } = setup;
  const isChanged = manifests.trim() !== "";
  const state = isChanged ? copyOf(cluster.state) : cluster.state;
  const networks = settings && new NetworksReading(settings);
  const pasted = isChanged
    ? await readPasted({ manifests, nodeName, config, state, others: networks?.others ?? [] })
    : new Map<OtherSubscription, PastedObjects>();
  if (networks === undefined) return { setup, state };
  await networks.read(cluster.source, pasted);
  return { setup, state, learned: networks.decide(state) };
}

/** The objects themselves are never changed: both states hold the same ones. */
function copyOf(from: ClusterState): ClusterState {
  const copy = new ClusterState();
  for (const key of from.keys()) {
    const service = from.service(key);
    if (service !== undefined) copy.upsertService(service);
    for (const slice of from.slices(key)) copy.upsertSlice(slice);
  }
  return copy;
}

function differing(before: PlannedNode, after: PlannedNode): readonly ServiceKey[] {
  const found = new Set<ServiceKey>();
  for (const family of IP_FAMILIES) {
    const [old, now] = [before.planner.plan(family).groups, after.planner.plan(family).groups];
    for (const id of new Set([...old.keys(), ...now.keys()])) {
      const [one, other] = [old.get(id), now.get(id)];
      const service = one?.service ?? other?.service;
      if (service !== undefined && JSON.stringify(one) !== JSON.stringify(other)) found.add(service);
    }
  }
  return [...found].sort();
}

/** How the agents would be set up. */
function changedSetup(setup: AgentSetup, { configuration, excludeCIDR }: Change): AgentSetup {
  const configured = configuration.trim() === "" ? setup : configuredSetup(setup, configuration);
  const { config, filter: before } = configured;
  const filter = filterWith(before, excludeCIDR);
  return { ...configured, filter, networks: networksSettings(config, filter) };
}

function configuredSetup(setup: AgentSetup, text: string): AgentSetup {
  const parsed = parseArguments(["--config=configuration"], { readFile: () => text, version: "" });
  if (parsed.kind === "invalid") throw new RequestError(400, parsed.errors.map(formatError).join("; "));
  if (parsed.kind !== "run") throw new RequestError(400, "configuration: is not a file of --config");
  const config = { ...parsed.config, mode: setup.mode };
  const filter = filterSettings(config);
  if (!filter.ok) throw new RequestError(400, filter.errors.join("; "));
  return { ...setup, config, filter: filter.options };
}

function filterWith(filter: AgentSetup["filter"], excludeCIDR: string): AgentSetup["filter"] {
  if (excludeCIDR.trim() === "") return filter;
  const checked = checkCIDR(excludeCIDR.trim());
  if ("problem" in checked) throw new RequestError(400, `CIDR ${excludeCIDR}: ${checked.problem}`);
  return { ...filter, excludeCIDRs: [...filter.excludeCIDRs, checked.cidr] };
}

interface PastedOptions {
  readonly manifests: string;
  readonly nodeName: string;
  /** Which Services are wanted, and which of their annotations. */
  readonly config: AgentConfig;
  /** Services and EndpointSlices go there. */
  readonly state: ClusterState;
  /** What else is asked for. */
  readonly others: readonly OtherSubscription[];
}

/**
 * Reads the objects of manifests.
 *
 * @returns those of each other resource
 * @throws RequestError when they cannot be read, or one of them is wrong, or none is wanted
 */
async function readPasted(options: PastedOptions): Promise<ReadonlyMap<OtherSubscription, PastedObjects>> {
  const { manifests, nodeName, config, state, others } = options;
  const problems: string[] = [];
  let found = 0;
  const { services, endpointSlices } = subscriptions({
    state,
    annotations: ruleAnnotations(config),
    serviceProxyName: config.serviceProxyName,
    problems: {
      object: (kind, namespace, name, all) => {
        found += 1;
        for (const { field, reason } of all) problems.push(`${kind} ${namespace}/${name}: ${field} ${reason}`);
      },
    },
    onChange: () => {},
    onNode: () => {},
    onSynced: () => {},
  });
  const kept = new Map(others.map((other) => [other, new Map<ObjectKey, unknown>()] as const));
  const recorders = Array.from(kept, ([other, objects]) => recorder(other, objects));
  const source = createManifestsSnapshot({
    paths: ["-"],
    nodeName,
    ...selectionOf(config),
    readStandardInput: async () => Buffer.from(manifests),
    onReport: (report) => {
      if (report.type === "badObject") problems.push(String(report.error));
    },
  });
  try {
    await source.run({ services, endpointSlices, others: recorders }, new AbortController().signal);
  } catch (error) {
    throw new RequestError(400, error instanceof Error ? error.message.replace(/^standard input/, "manifests") : "");
  }
  if (problems.length > 0) throw new RequestError(400, problems.join("; "));
  for (const objects of kept.values()) found += objects.size;
  if (found === 0) throw new RequestError(400, NOTHING);
  return kept;
}

const NOTHING =
  "manifests: neither a Service nor an EndpointSlice is in them, nor an object that this configuration learns networks from";

function recorder({ resource }: OtherSubscription, into: Map<ObjectKey, unknown>): OtherSubscription {
  return {
    resource,
    decode: (raw) => raw,
    onChange: (change) => {
      if (change.type === "upsert") into.set(change.key, change.object);
    },
    onState: () => {},
  };
}

/** Milliseconds that a user waits for the objects of networks. */
const LONGEST = 10_000;

/** What agents with some settings learn of a source's objects; other objects may be put in place of them. */
class NetworksReading {
  readonly #once: NetworksOnce;
  #serviceCIDRs: readonly string[] = [];

  constructor(settings: NetworksOnceParts["settings"]) {
    this.#once = new NetworksOnce({ settings, clock: systemClock, onReady: () => {} });
  }

  /** What is asked for alongside Services. */
  get others(): readonly OtherSubscription[] {
    return this.#once.subscriptions;
  }

  /**
   * Reads everything that is asked for, once.
   *
   * @param pasted by what asks for them: they take the place of the source's of the same names
   * @throws RequestError when the source does not give it all
   */
  async read(source: ObjectSource, pasted: ReadonlyMap<OtherSubscription, PastedObjects>): Promise<void> {
    const missing = new Set(["serviceCIDRs", ...this.others.map(nameOf)]);
    const done = new AbortController();
    const have = (what: string) => {
      if (missing.delete(what) && missing.size === 0) done.abort();
    };
    const { serviceCIDRs } = subscriptions({
      state: new ClusterState(),
      problems: { object: () => {} },
      onChange: () => {},
      onNode: () => {},
      onSynced: () => {},
      onServiceCIDRs: (cidrs) => {
        this.#serviceCIDRs = cidrs;
        have("serviceCIDRs");
      },
    });
    const others = this.others.map((other) =>
      overlaid(other, pasted.get(other) ?? new Map(), () => have(nameOf(other))),
    );
    // They come before the lists, so that a complete list has them.
    for (const [other, objects] of pasted) {
      for (const [key, object] of objects) await other.onChange({ type: "upsert", key, object });
    }
    const signal = AbortSignal.any([done.signal, AbortSignal.timeout(LONGEST)]);
    await source.run({ others, ...(serviceCIDRs && { serviceCIDRs }) }, signal);
    // Who may not list these is answered all the same.
    missing.delete("serviceCIDRs");
    if (missing.size > 0)
      throw new RequestError(503, `${[...missing].join(", ")}: no complete answer in ${LONGEST / 1_000} s`);
  }

  /** @param state all services, with their EndpointSlices */
  decide(state: ClusterState): LearnedOnce {
    return this.#once.decide(state, this.#serviceCIDRs);
  }
}

/** @param onKnown what there is of the resource is known, or why it is not */
function overlaid(other: OtherSubscription, pasted: PastedObjects, onKnown: () => void): OtherSubscription {
  return {
    resource: other.resource,
    decode: other.decode,
    onChange: async (change) => {
      if (change.type !== "synced" && pasted.has(change.key)) return;
      await other.onChange(change);
      if (change.type === "synced") onKnown();
    },
    onState: (state) => {
      // With such an object there is such a resource.
      other.onState(state === "absent" && pasted.size > 0 ? "listed" : state);
      if (state !== "unreachable") onKnown();
    },
  };
}

function nameOf({ resource: { plural, group } }: OtherSubscription): string {
  return group === "" ? plural : `${plural}.${group}`;
}

type Owners = Pick<Planner, "ownerships">;

/** The services that have another owner, in the order of their names; those that come or go are none of them. */
function ownerMoves(before: Owners, after: Owners): readonly OwnerMove[] {
  const key = ({ service, family }: ServiceOwnership) => `${service} ${family}`;
  const old = new Map<string, OwnershipDecision>();
  for (const one of before.ownerships()) old.set(key(one), one.decision);
  const moves = Array.from(after.ownerships()).flatMap((one): readonly OwnerMove[] => {
    const [was, { ownership, why }] = [old.get(key(one))?.ownership, one.decision];
    if (was === undefined || was === ownership) return [];
    return [{ service: one.service, family: one.family, before: was, after: ownership, why }];
  });
  return moves.sort((a, b) => (`${a.service} ${a.family}` < `${b.service} ${b.family}` ? -1 : 1));
}

/** What becomes of learned CIDRs that did not so before; undefined: nothing is learned on either side. */
function networksChange(before: LearnedOnce | undefined, after: LearnedOnce | undefined): WhatIfNetworks | undefined {
  if (before === undefined && after === undefined) return undefined;
  const [old, now] = [before?.report.cidrs ?? [], after?.report.cidrs ?? []];
  const key = ({ side, source, cidr }: (typeof old)[number]) => `${side} ${source} ${cidr}`;
  const [byKey, still] = [new Map(old.map((one) => [key(one), one])), new Set(now.map(key))];
  const changed = now.flatMap((one): readonly CIDRMove[] => {
    const was = byKey.get(key(one));
    if (was?.stage === one.stage && was.why === one.why) return [];
    return [{ ...one, ...(was && { before: was.stage }), after: one.stage }];
  });
  const gone = old
    .filter((one) => !still.has(key(one)))
    .map(({ why: _why, ...one }): CIDRMove => ({ ...one, before: one.stage }));
  const known = new Set(before?.problems);
  return {
    cidrs: [...changed, ...gone],
    problems: (after?.problems ?? []).filter((one) => !known.has(one)),
    unread: (after?.report.sources ?? []).flatMap(({ source, state }) =>
      state === "forbidden" || state === "unreachable" ? [`${source}: ${state}`] : [],
    ),
  };
}
