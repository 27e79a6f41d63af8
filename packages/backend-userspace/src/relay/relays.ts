/** All relays of this process, group by group. */

import { errorCode, errorText } from "@fairlead/base";
import type { EndpointSetName, ServicePortGroup } from "@fairlead/core";
import type { PortRange, ResolvedOptions } from "../options.ts";
import type { RelayPorts } from "../plan/context.ts";
import { isRelayable } from "../plan/relays.ts";
import { Balancer } from "./balancer.ts";
import type { OpenRelay, RelayRequest, RelayService } from "./relay.ts";
import { SocketBudget } from "./traffic.ts";

/** Which sets of a group need a relay, and the port that would be best for it. */
interface RelayNeeds {
  sets(group: ServicePortGroup): readonly EndpointSetName[];
  /** Undefined: any. */
  preferredPort?(group: ServicePortGroup): number | undefined;
  /** The only port that will do; undefined: others will, too. */
  port?(group: ServicePortGroup): number | undefined;
}

/** Listening sockets that are opened at the same time. */
const AT_ONCE = 32;

/**
 * All relays of a family on one address. They are opened before rules lead to them and closed after none does; in
 * between `serve` says what is behind them.
 */
export class Relays {
  readonly address: string;
  readonly #options: ResolvedOptions;
  readonly #needs: RelayNeeds;
  readonly #picker: PortPicker;
  readonly #groups = new Map<string, GroupRelays>();
  /** Groups that could not get a socket. */
  readonly #failed = new Map<string, ServicePortGroup>();
  /** The last report of each group. */
  readonly #reported = new Map<string, string>();
  #failures = 0;

  constructor(address: string, options: ResolvedOptions, needs: RelayNeeds) {
    this.address = address;
    this.#options = options;
    this.#needs = needs;
    this.#picker = new PortPicker(options.portRange);
  }

  readonly port: RelayPorts = ({ id }, set) => this.#groups.get(id)?.port(set);

  ports({ id }: ServicePortGroup): readonly number[] {
    return this.#groups.get(id)?.ports ?? [];
  }

  /** Groups that have no relay for want of a socket: it may be there later. */
  get failed(): readonly ServicePortGroup[] {
    return [...this.#failed.values()];
  }

  /** Sockets that listen. */
  get listening(): number {
    let count = 0;
    for (const { ports } of this.#groups.values()) count += ports.length;
    return count;
  }

  /** Times that a group got no socket. */
  get failures(): number {
    return this.#failures;
  }

  /** Opens what is missing. A group that gets no socket is reported once, and no reason to leave out the others. */
  async open(groups: Iterable<ServicePortGroup>): Promise<void> {
    let batch: Promise<void>[] = [];
    for (const group of groups) {
      batch.push(this.#openGroup(group));
      if (batch.length < AT_ONCE) continue;
      await Promise.all(batch);
      batch = [];
      // To listen on an address takes no turn of the event loop by itself.
      await this.#options.turn();
    }
    await Promise.all(batch);
  }

  async #openGroup(group: ServicePortGroup): Promise<void> {
    const sets = this.#needs.sets(group);
    if (sets.length === 0) {
      this.#settled(group.id);
      return;
    }
    if (!isRelayable(group)) {
      this.#report(group, `${group.protocol} cannot be relayed in user space; rejecting its packets`);
      return;
    }
    const relays = this.#groups.get(group.id) ?? new GroupRelays(this.#options);
    this.#groups.set(group.id, relays);
    const only = this.#needs.port?.(group);
    const picker = only === undefined ? this.#picker : new PortPicker({ from: only, to: only });
    try {
      for (const set of sets) await relays.open(group, set, this.address, picker, this.#needs.preferredPort?.(group));
      this.#settled(group.id);
    } catch (error) {
      this.#failures += 1;
      this.#failed.set(group.id, group);
      this.#report(group, `failed to listen; rejecting its packets: ${messageOf(error)}`);
    }
  }

  #report(group: ServicePortGroup, reason: string): void {
    if (this.#reported.get(group.id) === reason) return;
    this.#reported.set(group.id, reason);
    this.#options.onProblem(`${group.name}: ${reason}`);
  }

  /**
   * Puts the groups' endpoints behind their relays; those that a group does not need anymore are closed. Yields after
   * each endpoint and group.
   */
  *serve(groups: Iterable<ServicePortGroup>): Generator<void, void, void> {
    for (const group of groups) {
      yield* this.#groups.get(group.id)?.serve(group, this.#needs.sets(group)) ?? [];
      yield;
    }
  }

  drop(id: string): void {
    this.#groups.get(id)?.close();
    this.#groups.delete(id);
    this.#settled(id);
  }

  #settled(id: string): void {
    this.#failed.delete(id);
    this.#reported.delete(id);
  }

  /** Closes the relays of all groups but these. */
  retain(ids: { has(id: string): boolean }): void {
    for (const id of this.#groups.keys()) if (!ids.has(id)) this.drop(id);
    for (const id of this.#failed.keys()) if (!ids.has(id)) this.drop(id);
  }

  close(): void {
    this.retain(new Set());
  }
}

function messageOf(error: unknown): string {
  return errorText(error);
}

/** The relays of one service port: one for each set that is used, with one memory of clients and one bound. */
class GroupRelays {
  readonly #options: ResolvedOptions;
  readonly #balancer: Balancer;
  readonly #sockets: SocketBudget;
  readonly #relays = new Map<EndpointSetName, OpenRelay>();

  constructor(options: ResolvedOptions) {
    this.#options = options;
    this.#balancer = new Balancer(() => options.clock.monotonic());
    this.#sockets = new SocketBudget(options.maxSocketsPerService);
  }

  port(set: EndpointSetName): number | undefined {
    return this.#relays.get(set)?.port;
  }

  get ports(): readonly number[] {
    return Array.from(this.#relays.values(), ({ port }) => port);
  }

  /** @throws the error of the last port that was tried */
  async open(
    { name, protocol }: ServicePortGroup,
    set: EndpointSetName,
    address: string,
    picker: PortPicker,
    first?: number,
  ): Promise<void> {
    if (protocol === "SCTP" || this.#relays.has(set)) return;
    const { traffic, clock, udpIdleTimeout, tcpIdleTimeout, onProblem, open } = this.#options;
    const request = {
      protocol,
      address,
      service: this.#service(name, set),
      traffic,
      clock,
      udpIdleTimeout,
      tcpIdleTimeout,
    };
    let problem: unknown = new Error("the port range is empty");
    for (const port of picker.ports(first)) {
      const attempt: RelayRequest = { ...request, port, onProblem };
      try {
        this.#relays.set(set, await open(attempt));
        return;
      } catch (error) {
        problem = error;
        if (!isTaken(error)) break;
      }
    }
    throw problem;
  }

  /**
   * In the end the endpoints are these, and relays of other sets are closed. Yields after each endpoint, client and
   * flow.
   */
  *serve(group: ServicePortGroup, sets: readonly EndpointSetName[]): Generator<void, void, void> {
    yield* this.#balancer.update(group);
    for (const [set, relay] of this.#relays) {
      if (sets.includes(set)) yield* relay.refresh();
      else this.#close(set, relay);
    }
  }

  close(): void {
    for (const [set, relay] of this.#relays) this.#close(set, relay);
  }

  #close(set: EndpointSetName, relay: OpenRelay): void {
    this.#relays.delete(set);
    relay.close();
  }

  #service(name: string, set: EndpointSetName): RelayService {
    return {
      name,
      sockets: this.#sockets,
      choose: (client, failed) => this.#balancer.choose(set, client, failed),
      has: (endpoint) => this.#balancer.has(set, endpoint),
    };
  }
}

/** Another port may do: this one is taken, or for root only. */
function isTaken(error: unknown): boolean {
  const code = errorCode(error);
  return code === "EADDRINUSE" || code === "EACCES";
}

/** Gives ports to try, each of a range once, beginning after the one that was given last; without a range 0: any. */
class PortPicker {
  readonly #range: PortRange | undefined;
  #next: number;

  constructor(range: PortRange | undefined) {
    this.#range = range;
    this.#next = range?.from ?? 0;
  }

  /** @param first tried before all others; 0 or undefined: none is better than another */
  *ports(first?: number): Generator<number> {
    if (first !== undefined && first !== 0) yield first;
    if (this.#range === undefined) {
      yield 0;
      return;
    }
    const { from, to } = this.#range;
    for (let count = from; count <= to; count++) {
      const port = this.#next;
      this.#next = port === to ? from : port + 1;
      yield port;
    }
  }
}
