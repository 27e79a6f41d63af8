/** A crowd of clients with affinity, followed through changes of endpoints. */

import type { VirtualClock } from "@fairlead/base/testing";
import type { ForwardingPlan, PlanChange, PlannerOptions } from "@fairlead/core";
import fc from "fast-check";
import { TestCluster } from "../clusters.ts";
import { endpointSlice, type RawObject, service } from "../objects.ts";

export interface CrowdNode {
  readonly options: PlannerOptions;
  readonly clock: VirtualClock;
  readonly nodeAddress: string;
  /** How many clients there are. Default: 200. */
  readonly clients?: number;
  /** Whether node port and ClusterIP lead a client to the same endpoint. */
  readonly sharesFrontends: boolean;
  /** Whether a port that gets another name keeps its clients. Default: yes. */
  readonly forgetsRenamed?: true;
  /** Whether another process knows no clients. Default: it knows those of before. */
  readonly forgetsAtRestart?: true;
  /** Whether a service that gets the addresses of another in one change gets its clients, too. Default: no. */
  readonly inherits?: true;
  apply(plan: ForwardingPlan, change: PlanChange): Promise<unknown>;
  fullSync(plan: ForwardingPlan): Promise<unknown>;
  /** Another process begins. */
  restart(plan: ForwardingPlan): Promise<unknown>;
  /** kube-proxy has served, each of these clients from then on at its endpoint; and this mode serves again. */
  afterKubeProxy?(plan: ForwardingPlan, clients: ReadonlyMap<string, string>): Promise<unknown>;
  /** @returns the endpoint `address:port` where a new connection ends, or what else becomes of it */
  connect(client: string, to: { readonly address: string; readonly port: number }): string | Promise<string>;
}

export const CROWD_CLIENTS = Array.from({ length: 200 }, (_, at) => `10.201.7.${at + 1}`);

const CROWD_ENDPOINTS = 12;

const TIMEOUTS = [600, 3600, 10_800] as const;

/** Undefined: none has a weight. */
type Weights = readonly [first: number, last: number] | undefined;

type Condition = "ready" | "terminating" | "unready" | "none";

const condition = fc.constantFrom<Condition>("ready", "ready", "ready", "terminating", "unready", "none");
const some = fc.array(condition, { minLength: CROWD_ENDPOINTS, maxLength: CROWD_ENDPOINTS });
const noEndpoints = fc.constant<readonly Condition[]>(Array.from({ length: CROWD_ENDPOINTS }, () => "none"));
const one = fc
  .nat({ max: CROWD_ENDPOINTS - 1 })
  .map((at): readonly Condition[] =>
    Array.from({ length: CROWD_ENDPOINTS }, (_, each) => (each === at ? "ready" : "none")),
  );

/** What happens to a service with affinity; all its clients connect after each step that they do not sleep through. */
type CrowdStep =
  | { readonly kind: "endpoints"; readonly conditions: readonly Condition[] }
  /** One goes and comes, so that others must not change. */
  | { readonly kind: "toggle"; readonly at: number; readonly to: Condition }
  /** What the slices of its first and its last six endpoints weigh. */
  | { readonly kind: "weights"; readonly weights: Weights }
  | { readonly kind: "timeout"; readonly seconds: number }
  /** Seconds; fewer than the shortest timeout. */
  | { readonly kind: "wait"; readonly seconds: number }
  /** Longer than all timeouts. */
  | { readonly kind: "long-wait" }
  /** Deleted, and made again: with the same endpoints. */
  | { readonly kind: "again" }
  /** Another service of the same endpoints gets its addresses, in one change. */
  | { readonly kind: "other" }
  /** Its port gets another name. */
  | { readonly kind: "renamed" }
  | { readonly kind: "full-sync" }
  | { readonly kind: "restart" }
  /** kube-proxy serves for a while; only where there is a stand-in for it. */
  | { readonly kind: "kube-proxy" };

const step: fc.Arbitrary<CrowdStep> = fc.oneof(
  { weight: 3, arbitrary: fc.record({ kind: fc.constant("endpoints"), conditions: fc.oneof(some, noEndpoints, one) }) },
  {
    weight: 6,
    arbitrary: fc.record({ kind: fc.constant("toggle"), at: fc.nat({ max: CROWD_ENDPOINTS - 1 }), to: condition }),
  },
  fc.record({ kind: fc.constant("weights"), weights: fc.constantFrom<Weights>([0, 1], [9, 1], [1, 3], undefined) }),
  fc.record({ kind: fc.constant("timeout"), seconds: fc.constantFrom(...TIMEOUTS) }),
  fc.record({ kind: fc.constant("wait"), seconds: fc.integer({ min: 1, max: 40 }) }),
  fc.constantFrom<CrowdStep>(
    { kind: "long-wait" },
    { kind: "again" },
    { kind: "other" },
    { kind: "renamed" },
    { kind: "full-sync" },
    { kind: "restart" },
    { kind: "restart" },
    { kind: "kube-proxy" },
  ),
);

export async function followCrowd(history: CrowdHistory, node: CrowdNode): Promise<void> {
  const crowd = new Crowd(node);
  await crowd.begin();
  for (const [at, { step, asleep }] of history.entries()) {
    await crowd.step(step);
    const wrong = asleep ? undefined : await crowd.connectAll();
    if (wrong !== undefined) throw new Error(`step ${at}, ${JSON.stringify(step)}: ${wrong}`);
  }
}

/** A step, and whether clients sleep through it. */
export type CrowdHistory = readonly { readonly step: CrowdStep; readonly asleep: boolean }[];

/** @param most steps */
export function crowdHistory(most = 12): fc.Arbitrary<CrowdHistory> {
  // Not so often, that clients forget by the clock.
  const asleep = fc.integer({ min: 0, max: 4 }).map((number) => number === 0);
  return fc.array(fc.record({ step, asleep }), { minLength: 3, maxLength: most });
}

/** Less than one history in a thousand million may fail by chance. */
const LEAST_CHANCE = 1e-9;

/**
 * What holds of the clients of one service with affinity, whatever happens to it: a client keeps its endpoint as long
 * as that was usable without a break; all others are spread by chance; and of a service that is gone nothing is known.
 */
class AffinityRule {
  readonly #kept = new Map<string, string>();
  /** With the share of those that draw. */
  #usable: ReadonlyMap<string, number> = new Map();
  #drawn = new Map<string, number>();

  /** The endpoints from now on, and what they weigh; absent: all alike. */
  endpoints(usable: readonly string[], weights: readonly number[] = []): void {
    const total = usable.reduce((sum, _, at) => sum + (weights[at] ?? 1), 0);
    this.#usable = new Map(usable.map((endpoint, at) => [endpoint, (weights[at] ?? 1) / total]));
    this.#drawn = new Map();
    for (const [client, endpoint] of this.#kept) if (!this.#usable.has(endpoint)) this.#kept.delete(client);
  }

  /** The service is deleted, or its clients were away for too long. */
  forget(): void {
    this.#kept.clear();
  }

  /** A client that is known now, for another reason than a connection of before. */
  knows(client: string, endpoint: string): void {
    if (this.#usable.has(endpoint)) this.#kept.set(client, endpoint);
  }

  /** How many clients have an endpoint that they have to keep. */
  get known(): number {
    return this.#kept.size;
  }

  /** @returns what is wrong with a connection that came to `end` */
  met(client: string, end: string): string | undefined {
    if (this.#usable.size === 0)
      return end.includes(":") ? `${client} came to ${end}; there is no endpoint` : undefined;
    if (!this.#usable.has(end)) return `${client} came to ${end}, which is no endpoint`;
    const kept = this.#kept.get(client);
    if (kept === undefined) this.#drawn.set(end, (this.#drawn.get(end) ?? 0) + 1);
    this.#kept.set(client, end);
    return kept === undefined || kept === end ? undefined : `${client} came to ${end}; ${kept} is usable`;
  }

  /** @returns what is wrong with the shares of those that drew since the last change */
  shares(): string | undefined {
    const drawn = [...this.#drawn.values()].reduce((sum, count) => sum + count, 0);
    for (const [endpoint, share] of this.#usable) {
      const count = this.#drawn.get(endpoint) ?? 0;
      const chance = 2 * this.#usable.size * tail(drawn, share, count);
      if (chance < LEAST_CHANCE)
        return `${count} of ${drawn} drew ${endpoint}, one of ${this.#usable.size} with ${share} of all: ${chance}`;
    }
    return undefined;
  }
}

/** Numbers from 0 to before 1 that look random and are the same for the same seed (mulberry32). */
export function randomOf(seed: number): () => number {
  let state = seed | 0;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let bits = Math.imul(state ^ (state >>> 15), 1 | state);
    bits = (bits + Math.imul(bits ^ (bits >>> 7), 61 | bits)) ^ bits;
    return ((bits ^ (bits >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** The service whose clients are followed. */
interface CrowdService {
  readonly name: string;
  readonly portName: string;
  readonly seconds: number;
  readonly conditions: readonly Condition[];
  readonly weights?: Weights;
}

const FIRST_SERVICE: CrowdService = {
  name: "crowd-0",
  portName: "http",
  seconds: 10_800,
  conditions: Array.from({ length: CROWD_ENDPOINTS }, (_, at) => (at < 5 ? "ready" : "none")),
};

const LONGER_THAN_ALL = 10_801;

const CROWD_ADDRESS = "10.96.9.9";
const CROWD_NODE_PORT = 30_909;

class Crowd {
  readonly #node: CrowdNode;
  readonly #cluster: TestCluster;
  readonly #rules = { address: new AffinityRule(), nodePort: new AffinityRule() };
  #service: CrowdService = FIRST_SERVICE;

  constructor(node: CrowdNode) {
    this.#node = node;
    this.#cluster = new TestCluster(node.options);
  }

  async begin(): Promise<void> {
    this.#cluster.replan();
    await this.#node.fullSync(this.#plan);
    await this.#change(FIRST_SERVICE, []);
    const wrong = await this.connectAll();
    if (wrong !== undefined) throw new Error(`at first: ${wrong}`);
  }

  async step(step: CrowdStep): Promise<void> {
    const before = this.#service;
    switch (step.kind) {
      case "endpoints":
        return this.#change({ ...before, conditions: step.conditions });
      case "toggle":
        return this.#change({ ...before, conditions: before.conditions.with(step.at, step.to) });
      case "weights":
        return this.#change({ ...before, weights: step.weights });
      case "timeout":
        return this.#change({ ...before, seconds: step.seconds });
      case "renamed":
        if (this.#node.forgetsRenamed) this.#forget();
        return this.#change({ ...before, portName: `${before.portName}x`.slice(-8) });
      case "wait":
        return this.#node.clock.advanceNow(step.seconds * 1000);
      case "long-wait":
        this.#forget();
        return this.#node.clock.advanceNow(LONGER_THAN_ALL * 1000);
      case "again":
        await this.#remove(before);
        return this.#change(before, []);
      case "other":
        if (!this.#node.inherits) this.#forget();
        return this.#change({ ...before, name: `crowd-${Number(before.name.slice(6)) + 1}` }, crowdObjects(before));
      case "full-sync":
        await this.#node.fullSync(this.#plan);
        return undefined;
      case "restart":
        if (this.#node.forgetsAtRestart) this.#forget();
        await this.#node.restart(this.#plan);
        return undefined;
      default:
        return this.#afterKubeProxy();
    }
  }

  /** @returns what is wrong */
  async connectAll(): Promise<string | undefined> {
    for (const client of this.#clients) {
      const wrong = await this.#connect(client);
      if (wrong !== undefined) return wrong;
    }
    return this.#rules.address.shares() ?? this.#rules.nodePort.shares();
  }

  async #connect(client: string): Promise<string | undefined> {
    const { connect, nodeAddress, sharesFrontends } = this.#node;
    const end = await connect.call(this.#node, client, { address: CROWD_ADDRESS, port: 80 });
    const wrong = this.#rules.address.met(client, end);
    if (wrong !== undefined) return wrong;
    const other = await connect.call(this.#node, client, { address: nodeAddress, port: CROWD_NODE_PORT });
    if (sharesFrontends)
      return other === end || !end.includes(":") ? undefined : `${client} came to ${end}, by the node port to ${other}`;
    const wrongThere = this.#rules.nodePort.met(client, other);
    return wrongThere && `by the node port: ${wrongThere}`;
  }

  get #clients(): readonly string[] {
    return CROWD_CLIENTS.slice(0, this.#node.clients);
  }

  get #plan(): ForwardingPlan {
    return this.#cluster.plan("IPv4");
  }

  #forget(): void {
    for (const rule of Object.values(this.#rules)) rule.forget();
  }

  async #remove(service: CrowdService): Promise<void> {
    this.#forget();
    this.#cluster.remove(...crowdObjects(service));
    await this.#apply();
  }

  async #change(after: CrowdService, gone = crowdObjects(this.#service)): Promise<void> {
    const objects = crowdObjects(after);
    const stays = new Set(objects.map(({ metadata }) => metadata.name));
    this.#cluster.remove(...gone.filter(({ metadata }) => !stays.has(metadata.name)));
    this.#cluster.put(...objects);
    this.#service = after;
    const usable = usableEndpoints(after);
    for (const rule of Object.values(this.#rules)) rule.endpoints(usable, weightsOf(after, usable));
    await this.#apply();
  }

  async #apply(): Promise<void> {
    const change = this.#cluster.replan().changes.get("IPv4");
    if (change !== undefined) await this.#node.apply(this.#plan, change);
  }

  /** It draws anew for every client. */
  async #afterKubeProxy(): Promise<void> {
    const { afterKubeProxy } = this.#node;
    const usable = usableEndpoints(this.#service);
    if (afterKubeProxy === undefined) return;
    const clients = new Map(
      usable.length === 0 ? [] : this.#clients.map((client, at) => [client, usable[(at * 7) % usable.length] ?? ""]),
    );
    for (const [client, endpoint] of clients) {
      for (const rule of Object.values(this.#rules)) rule.knows(client, endpoint);
    }
    await afterKubeProxy.call(this.#node, this.#plan, clients);
  }
}

const addressOf = (at: number) => `10.144.128.${at + 1}`;
const PORT = 8080;

const HALF = CROWD_ENDPOINTS / 2;

function crowdObjects({ name, portName, seconds, conditions, weights }: CrowdService): readonly RawObject[] {
  const endpoints = conditions.map((condition, at) =>
    condition === "none"
      ? []
      : [
          {
            address: addressOf(at),
            nodeName: "node-b",
            ready: condition === "ready",
            serving: condition !== "unready",
            terminating: condition === "terminating",
          },
        ],
  );
  return [
    service(name, {
      type: "NodePort",
      clusterIPs: [CROWD_ADDRESS],
      ports: [{ name: portName, port: 80, targetPort: PORT, nodePort: CROWD_NODE_PORT }],
      affinitySeconds: seconds,
    }),
    ...[endpoints.slice(0, HALF), endpoints.slice(HALF)].map((half, at) =>
      endpointSlice(`${name}-${at}`, {
        ...{ service: name, family: "IPv4", ports: [{ name: portName, port: PORT }], endpoints: half.flat() },
        ...(weights && { annotations: { "fairlead.dev/weight": String(weights[at]) } }),
      }),
    ),
  ];
}

/** A slice's share is split among those of its endpoints that are usable. */
function weightsOf({ weights }: CrowdService, usable: readonly string[]): readonly number[] {
  if (weights === undefined) return [];
  const halves = usable.map(halfOf);
  return halves.map((half) => (weights[half] ?? 0) / halves.filter((one) => one === half).length);
}

function halfOf(endpoint: string): number {
  return Number(endpoint.split(/[.:]/)[3]) > HALF ? 1 : 0;
}

/** Those that packets may go to and that weigh anything: the ready ones, or if there is none those that still serve. */
function usableEndpoints({ conditions, weights }: CrowdService): readonly string[] {
  const of = (wanted: Condition) =>
    conditions
      .flatMap((condition, at) => (condition === wanted ? [`${addressOf(at)}:${PORT}`] : []))
      .filter((endpoint) => weights?.[halfOf(endpoint)] !== 0);
  const ready = of("ready");
  return ready.length > 0 ? ready : of("terminating");
}

/** The chance of a count at least as far from the mean, on its side. */
function tail(trials: number, chance: number, count: number): number {
  if (chance === 1) return count === trials ? 1 : 0;
  const above = count >= trials * chance;
  let sum = 0;
  for (let one = above ? count : 0; one <= (above ? trials : count); one++) {
    sum += Math.exp(logChoose(trials, one) + one * Math.log(chance) + (trials - one) * Math.log(1 - chance));
  }
  return sum;
}

function logChoose(n: number, k: number): number {
  let sum = 0;
  for (let one = 1; one <= k; one++) sum += Math.log(n - k + one) - Math.log(one);
  return sum;
}
