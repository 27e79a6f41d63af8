/** Chooses an endpoint, and connects to it. */

import { connect, type Socket } from "node:net";
import { nextTurn, socketText } from "@fairlead/base";
import type { EndpointSetName, PlanEndpoint, ServicePortGroup, SetWeights } from "@fairlead/core";
import type { RelayRequest } from "./relay.ts";

type Sets = Pick<ServicePortGroup, EndpointSetName | "affinitySeconds" | "weights">;

/** Endpoints by `endpointKey`: a service may have a hundred thousand, and is asked for one with each connection. */
type Index = ReadonlyMap<string, PlanEndpoint>;

interface Remembered {
  readonly endpoint: string;
  readonly at: number;
}

/** Clients that a service port remembers; the one that was away longest is forgotten first. */
const MAX_CLIENTS = 65_536;

/**
 * Which endpoint of a service port is whose: one after the other, and with ClientIP affinity always the same for a
 * client until it has stayed away for that time. Both sets share what is remembered.
 */
export class Balancer {
  readonly #now: () => number;
  #sets: Sets = { cluster: [], local: [] };
  #byKey: Readonly<Record<EndpointSetName, Index>> = { cluster: new Map(), local: new Map() };
  readonly #turn = { cluster: 0, local: 0 };
  #turns: Readonly<Partial<Record<EndpointSetName, Turns>>> = {};
  /** In the order of last use. */
  readonly #clients = new Map<string, Remembered>();

  /** @param now milliseconds that never go back */
  constructor(now: () => number) {
    this.#now = now;
  }

  get clients(): number {
    return this.#clients.size;
  }

  /**
   * Who was with an endpoint that is there no more chooses anew. Yields after each endpoint, of which the old ones are
   * chosen from until the last, and after each client that is remembered.
   */
  *update(sets: Sets): Generator<void, void, void> {
    const byKey = { cluster: yield* indexOf(sets.cluster), local: yield* indexOf(sets.local) };
    const { cluster, local } = sets.weights ?? {};
    this.#turns = { ...(cluster && { cluster: new Turns(cluster) }), ...(local && { local: new Turns(local) }) };
    this.#sets = sets;
    this.#byKey = byKey;
    if (sets.affinitySeconds === undefined) this.#clients.clear();
    for (const [client, { endpoint }] of this.#clients) {
      if (!byKey.cluster.has(endpoint) && !byKey.local.has(endpoint)) this.#clients.delete(client);
      yield;
    }
  }

  has(set: EndpointSetName, endpoint: PlanEndpoint): boolean {
    return this.#byKey[set].has(endpointKey(endpoint));
  }

  /**
   * @param client the address that packets come from
   * @param failed endpoints that this client could not be connected to just now, by `endpointKey`; taken again when all
   * failed
   * @returns undefined: there is none, or the connection is of the share that is refused
   */
  choose(set: EndpointSetName, client: string, failed: ReadonlySet<string>): PlanEndpoint | undefined {
    const chosen = this.#remembered(set, client, failed) ?? this.#next(set, failed);
    if (chosen !== undefined && this.#sets.affinitySeconds !== undefined) this.#remember(client, chosen);
    return chosen;
  }

  #next(set: EndpointSetName, failed: ReadonlySet<string>): PlanEndpoint | undefined {
    const endpoints = this.#sets[set];
    const start = this.#start(set, failed.size > 0);
    if (start === undefined) return undefined;
    // One more than there may be of those that failed is enough.
    const tries = Math.min(endpoints.length, failed.size + 1);
    const order = Array.from({ length: tries }, (_, step) => (start + step) % endpoints.length);
    const index = order.find((at) => !failed.has(endpointKey(endpoints[at]))) ?? order[0];
    if (index === undefined) return undefined;
    if (this.#turns[set] === undefined) this.#turn[set] = index + 1;
    return endpoints[index];
  }

  /** Where to begin; a client that was given to an endpoint is not refused because that failed. */
  #start(set: EndpointSetName, isGiven: boolean): number | undefined {
    const turns = this.#turns[set];
    if (turns === undefined) return this.#turn[set];
    for (;;) {
      const start = turns.at(this.#turn[set]++);
      if (start !== undefined || !isGiven) return start;
    }
  }

  #remembered(set: EndpointSetName, client: string, failed: ReadonlySet<string>): PlanEndpoint | undefined {
    this.#forget();
    const known = this.#clients.get(client);
    if (known === undefined || failed.has(known.endpoint)) return undefined;
    return this.#byKey[set].get(known.endpoint);
  }

  #remember(client: string, endpoint: PlanEndpoint): void {
    this.#clients.delete(client);
    this.#clients.set(client, { endpoint: endpointKey(endpoint), at: this.#now() });
    const [oldest] = this.#clients.keys();
    if (this.#clients.size > MAX_CLIENTS && oldest !== undefined) this.#clients.delete(oldest);
  }

  #forget(): void {
    const since = this.#now() - (this.#sets.affinitySeconds ?? 0) * 1000;
    for (const [client, { at }] of this.#clients) {
      if (at > since) return;
      this.#clients.delete(client);
    }
  }
}

/** Turns of endpoints that do not weigh alike: in a round each has as many as it weighs, far from each other. */
class Turns {
  /** What the endpoints weigh up to each of them, itself included. */
  readonly #ends: readonly number[];
  readonly #round: number;
  /** Has no divisor in common with the round, so that a round comes to each number once. */
  readonly #step: number;

  constructor({ endpoints, refused = 0 }: SetWeights) {
    let sum = 0;
    this.#ends = endpoints.map((weight) => (sum += weight));
    this.#round = sum + refused;
    let step = Math.round(this.#round * GOLDEN);
    while (divisor(step, this.#round) !== 1) step += 1;
    this.#step = step;
  }

  /** @returns the place of an endpoint; undefined: it is the turn of what is refused */
  at(turn: number): number | undefined {
    const number = ((turn % this.#round) * this.#step) % this.#round;
    let [low, high] = [0, this.#ends.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#ends[middle] ?? 0) > number) high = middle;
      else low = middle + 1;
    }
    return low < this.#ends.length ? low : undefined;
  }
}

/** Steps of this part of a round come back to where they have been as late as can be. */
const GOLDEN = (Math.sqrt(5) - 1) / 2;

function divisor(a: number, b: number): number {
  return b === 0 ? a : divisor(b, a % b);
}

export function endpointKey(endpoint: PlanEndpoint | undefined): string {
  return endpoint === undefined ? "" : socketText(endpoint.address, endpoint.port);
}

/**
 * Milliseconds that each try to connect may take, as kube-proxy had them; as many tries, whatever number of endpoints.
 */
export const DIAL_TIMEOUTS: readonly number[] = [250, 500, 1_000, 2_000];

/** Why a client could not be given to an endpoint. */
type DialFailure = "unreachable" | "no-endpoint";

/**
 * Connects to the endpoint whose turn it is, or to the next one where that cannot be connected.
 *
 * @param given aborts when the client has gone: nothing is tried anymore
 */
export async function dial(request: RelayRequest, client: string, given: AbortSignal): Promise<Socket | DialFailure> {
  const failed = new Set<string>();
  for (const timeout of DIAL_TIMEOUTS) {
    const endpoint = request.service.choose(client, failed);
    if (endpoint === undefined) return "no-endpoint";
    const socket = await connected(endpoint, timeout, request, given);
    if (socket !== undefined) return socket;
    if (given.aborted) return "unreachable";
    failed.add(endpointKey(endpoint));
    request.traffic.passedOver();
  }
  return "unreachable";
}

function* indexOf(endpoints: readonly PlanEndpoint[]): Generator<void, Index, void> {
  const index = new Map<string, PlanEndpoint>();
  for (const endpoint of endpoints) {
    index.set(endpointKey(endpoint), endpoint);
    yield;
  }
  return index;
}

function connected(
  { address: host, port }: PlanEndpoint,
  timeout: number,
  { clock }: RelayRequest,
  given: AbortSignal,
): Promise<Socket | undefined> {
  return new Promise((resolve) => {
    const socket = connect({ host, port, allowHalfOpen: true, noDelay: true, keepAlive: true });
    // It may break off between two owners; each of them has a handler of its own alongside this one.
    socket.on("error", () => {});
    let settled = false;
    const give = (result: Socket | undefined) => {
      if (settled) return;
      settled = true;
      cancel();
      given.removeEventListener("abort", abandon);
      socket.off("connect", succeed).off("error", abandon);
      if (result === undefined) socket.destroy();
      resolve(result);
    };
    const succeed = () => give(socket);
    const abandon = () => give(undefined);
    // A busy event loop is late for its timers, and sees a connection that was made in time only after them.
    const cancel = clock.after(timeout, () => void nextTurn().then(abandon));
    given.addEventListener("abort", abandon);
    socket.on("connect", succeed).on("error", abandon);
    if (given.aborted) abandon();
  });
}
