import type { HealthCheck, IPFamily, ServiceKey } from "@fairlead/core";
import type { App } from "../http/app.ts";
import type { HostPort, Listener } from "../http/listen.ts";
import { serviceHealthApp } from "./service-app.ts";

export interface ServiceHealthOptions {
  readonly family: IPFamily;
  readonly listen: (app: App, at: HostPort, ipv6Only: boolean) => Promise<Listener>;
  readonly proxyHealthy: () => boolean;
  readonly onOpened: (check: HealthCheck) => void;
  /** Called for each failed attempt, with the address that could not be bound. */
  readonly onError: (check: HealthCheck, at: HostPort, error: unknown) => void;
}

interface OpenCheck {
  check: HealthCheck;
  readonly hosts: readonly string[];
  readonly listeners: readonly Listener[];
}

/**
 * The health-check node ports of one family's Services: opened, followed and closed as the plan says, on the node-port
 * addresses. A port that cannot be opened is tried again with each call of `update`.
 */
export class ServiceHealthServers {
  readonly #options: ServiceHealthOptions;
  readonly #open = new Map<ServiceKey, OpenCheck>();

  constructor(options: ServiceHealthOptions) {
    this.#options = options;
  }

  /** @param hosts addresses to listen on; undefined: all of the family */
  async update(checks: ReadonlyMap<ServiceKey, HealthCheck>, hosts: readonly string[] | undefined): Promise<void> {
    const on = hosts ?? [this.#options.family === "IPv4" ? "0.0.0.0" : "::"];
    for (const [service, open] of this.#open) {
      const wanted = checks.get(service);
      if (wanted?.port === open.check.port && sameHosts(on, open.hosts)) open.check = wanted;
      else await this.#close(service, open);
    }
    for (const [service, check] of checks) {
      if (!this.#open.has(service)) await this.#listen(service, check, on);
    }
  }

  async close(): Promise<void> {
    for (const [service, open] of this.#open) await this.#close(service, open);
  }

  async #listen(service: ServiceKey, check: HealthCheck, hosts: readonly string[]): Promise<void> {
    const listeners: Listener[] = [];
    const open: OpenCheck = { check, hosts, listeners };
    const app = serviceHealthApp(() => open.check, this.#options.proxyHealthy);
    let at: HostPort = { host: "", port: check.port };
    try {
      for (const host of hosts) {
        at = { host, port: check.port };
        listeners.push(await this.#options.listen(app, at, this.#options.family === "IPv6"));
      }
      this.#open.set(service, open);
      this.#options.onOpened(check);
    } catch (error) {
      await Promise.all(listeners.map((listener) => listener.close()));
      this.#options.onError(check, at, error);
    }
  }

  async #close(service: ServiceKey, open: OpenCheck): Promise<void> {
    this.#open.delete(service);
    await Promise.all(open.listeners.map((listener) => listener.close()));
  }
}

function sameHosts(a: readonly string[], b: readonly string[]): boolean {
  return a.length === b.length && a.every((host, i) => host === b[i]);
}
