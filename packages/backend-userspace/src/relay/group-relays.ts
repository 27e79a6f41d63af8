import { errorCode } from "@fairlead/base";
import type { EndpointSetName, ServicePortGroup } from "@fairlead/core";
import type { ResolvedOptions } from "../options.ts";
import { Balancer } from "./balancer.ts";
import type { PortPicker } from "./port-picker.ts";
import type { OpenRelay, RelayRequest, RelayService } from "./relay.ts";
import { SocketBudget } from "./traffic.ts";

/** The relays of one service port: one for each set that is used, with one memory of clients and one bound. */
export class GroupRelays {
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
