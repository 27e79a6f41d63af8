/** Health-check node ports of Services. */

import { type Clock, errorChainText } from "@fairlead/base";
import type { HealthCheck, IPFamily, ServiceKey } from "@fairlead/core";
import { type App, JSON_TYPE } from "./http/app.ts";
import type { HostPort, Listener } from "./http/listen.ts";
import { backoffDelay } from "./sync/backoff.ts";
import type { SyncFollower } from "./sync/follower.ts";

interface HealthPortOptions {
  readonly listen: (app: App, at: HostPort) => Promise<Listener>;
  readonly app: (check: () => HealthCheck) => App;
  /** @param wasRefused an attempt before this one failed */
  readonly onOpened: (check: HealthCheck, at: HostPort, wasRefused: boolean) => void;
  /** Called when an address cannot be bound, and again only when the reason changes. */
  readonly onRefused: (check: HealthCheck, at: HostPort, error: unknown) => void;
}

interface ServiceHealthOptions extends Pick<HealthPortOptions, "onOpened" | "onRefused"> {
  readonly family: IPFamily;
  readonly listen: (app: App, at: HostPort, ipv6Only: boolean) => Promise<Listener>;
  readonly proxyHealthy: () => boolean;
  readonly clock: Pick<Clock, "after">;
  /** A number in [0, 1). */
  readonly random?: (() => number) | undefined;
}

/**
 * Milliseconds until what could not be bound is tried again: an address that is new on a node takes a second or two.
 */
const RETRIES = { first: 1_000, most: 30_000 };

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

/** What a service's health-check node port answers on every path, byte for byte as upstream formats it. */
export function serviceHealthApp(check: () => HealthCheck, proxyHealthy: () => boolean): App {
  return () => () => {
    const { namespace, name, localEndpoints } = check();
    const serviceProxyHealthy = proxyHealthy();
    const status = localEndpoints > 0 && serviceProxyHealthy ? 200 : 503;
    const body = JSON.stringify({ service: { namespace, name }, localEndpoints, serviceProxyHealthy }, undefined, "\t");
    return { status, headers: { ...JSON_TYPE, "X-Load-Balancing-Endpoint-Weight": String(localEndpoints) }, body };
  };
}

/** Keeps the health-check node ports as the plan has them, whether or not the rules could be written. */
export function serviceHealthFollower(servers: ReadonlyMap<IPFamily, ServiceHealthServers>): SyncFollower {
  return {
    async ran({ family, plan }) {
      const { nodePortAddresses } = plan.node;
      const hosts = nodePortAddresses.kind === "all" ? undefined : nodePortAddresses.addresses;
      await servers.get(family)?.update(plan.healthChecks, hosts);
    },
  };
}

/** One service's health-check node port: each address is bound for itself, whatever becomes of the others. */
class HealthPort {
  check: HealthCheck;
  readonly #options: HealthPortOptions;
  readonly #app: App;
  readonly #listeners = new Map<string, Listener>();
  /** Why addresses could not be bound, as it was reported. */
  readonly #refused = new Map<string, string>();

  constructor(check: HealthCheck, options: HealthPortOptions) {
    this.check = check;
    this.#options = options;
    this.#app = options.app(() => this.check);
  }

  /** Whether it listens on all of these addresses. */
  isOpenOn(hosts: readonly string[]): boolean {
    return hosts.every((host) => this.#listeners.has(host));
  }

  /** Ends what is open on other addresses than these. */
  async release(hosts: ReadonlySet<string>): Promise<void> {
    for (const host of this.#refused.keys()) if (!hosts.has(host)) this.#refused.delete(host);
    const leaving = [...this.#listeners].filter(([host]) => !hosts.has(host));
    for (const [host] of leaving) this.#listeners.delete(host);
    await Promise.all(leaving.map(([, listener]) => listener.close()));
  }

  /**
   * Opens what is not open of these addresses, as far as it can be.
   *
   * @returns whether there is news of what cannot be
   */
  async open(hosts: readonly string[]): Promise<boolean> {
    let news = false;
    for (const host of hosts) {
      if (!this.#listeners.has(host) && (await this.#bind(host)) === "newly refused") news = true;
    }
    return news;
  }

  async #bind(host: string): Promise<"bound" | "refused" | "newly refused"> {
    const at = { host, port: this.check.port };
    let listener: Listener;
    try {
      listener = await this.#options.listen(this.#app, at);
    } catch (error) {
      const reason = errorChainText(error);
      if (this.#refused.get(host) === reason) return "refused";
      this.#refused.set(host, reason);
      this.#options.onRefused(this.check, at, error);
      return "newly refused";
    }
    this.#listeners.set(host, listener);
    this.#options.onOpened(this.check, at, this.#refused.delete(host));
    return "bound";
  }
}
