import type { Clock } from "@fairlead/base";
import type { HealthCheck, IPFamily, ServiceKey } from "@fairlead/core";
import type { App } from "../http/app.ts";
import type { HostPort, Listener } from "../http/listen.ts";
import { backoffDelay } from "../sync/backoff.ts";
import { HealthPort, type HealthPortOptions } from "./health-port.ts";
import { serviceHealthApp } from "./service-app.ts";

/**
 * Milliseconds until what could not be bound is tried again: an address that is new on a node takes a second or two.
 */
const RETRIES = { first: 1_000, most: 30_000 };

export interface ServiceHealthOptions extends Pick<HealthPortOptions, "onOpened" | "onRefused"> {
  readonly family: IPFamily;
  readonly listen: (app: App, at: HostPort, ipv6Only: boolean) => Promise<Listener>;
  readonly proxyHealthy: () => boolean;
  readonly clock: Pick<Clock, "after">;
  /** A number in [0, 1). */
  readonly random?: (() => number) | undefined;
}

/**
 * The health-check node ports of one family's Services: opened, followed and closed as the plan says, on the node-port
 * addresses or those of them that the Service chooses. What stays as it was is never closed. An address that cannot be
 * bound changes nothing for the others, and is tried again by itself and with each call of `update`; upstream closes
 * all addresses of the port, and tries with each sync.
 */
export class ServiceHealthServers {
  readonly #options: ServiceHealthOptions;
  readonly #port: HealthPortOptions;
  readonly #ports = new Map<ServiceKey, HealthPort>();
  #hosts: readonly string[] = [];
  #attempt = 0;
  #cancelRetry: () => void = () => {};
  /** Updates and retries, one after the other. */
  #turn: Promise<void> = Promise.resolve();
  #closed = false;

  constructor(options: ServiceHealthOptions) {
    const { family, listen, proxyHealthy, onOpened, onRefused } = options;
    this.#options = options;
    this.#port = {
      listen: (app, at) => listen(app, at, family === "IPv6"),
      app: (check) => serviceHealthApp(check, proxyHealthy),
      onOpened,
      onRefused,
    };
  }

  /** @param hosts addresses to listen on; undefined: all of the family */
  update(checks: ReadonlyMap<ServiceKey, HealthCheck>, hosts: readonly string[] | undefined): Promise<void> {
    return this.#next(async () => {
      this.#hosts = hosts ?? [this.#options.family === "IPv4" ? "0.0.0.0" : "::"];
      await this.#release(checks);
      for (const [service, check] of checks) {
        if (!this.#ports.has(service)) this.#ports.set(service, new HealthPort(check, this.#port));
      }
      await this.#open();
    });
  }

  async close(): Promise<void> {
    const ended = this.#next(() => this.#release(new Map()));
    this.#closed = true;
    this.#cancelRetry();
    await ended;
  }

  #next(work: () => Promise<void>): Promise<void> {
    if (this.#closed) return this.#turn;
    this.#turn = this.#turn.catch(() => {}).then(work);
    return this.#turn;
  }

  /** Closing comes before opening: a port may go from one service to another. */
  async #release(checks: ReadonlyMap<ServiceKey, HealthCheck>): Promise<void> {
    for (const [service, port] of this.#ports) {
      const wanted = checks.get(service);
      const stays = wanted?.port === port.check.port;
      if (stays) port.check = wanted;
      else this.#ports.delete(service);
      await port.release(new Set(stays ? this.#hostsOf(wanted) : []));
    }
  }

  #hostsOf({ addresses = this.#hosts }: HealthCheck): readonly string[] {
    return addresses;
  }

  async #open(): Promise<void> {
    let [complete, news] = [true, false];
    for (const port of this.#ports.values()) {
      const hosts = this.#hostsOf(port.check);
      if (port.isOpenOn(hosts)) continue;
      if (await port.open(hosts)) news = true;
      complete &&= port.isOpenOn(hosts);
    }
    this.#cancelRetry();
    if (complete || news) this.#attempt = 0;
    if (!complete && !this.#closed) this.#retryLater();
  }

  #retryLater(): void {
    const { clock, random = Math.random } = this.#options;
    this.#cancelRetry = clock.after(backoffDelay(this.#attempt + 1, RETRIES, random()), () => {
      this.#attempt++;
      void this.#next(() => this.#open());
    });
  }
}
