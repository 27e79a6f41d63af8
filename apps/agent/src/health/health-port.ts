import { errorChainText } from "@fairlead/base";
import type { HealthCheck } from "@fairlead/core";
import type { App } from "../http/app.ts";
import type { HostPort, Listener } from "../http/listen.ts";

export interface HealthPortOptions {
  readonly listen: (app: App, at: HostPort) => Promise<Listener>;
  readonly app: (check: () => HealthCheck) => App;
  /** @param wasRefused an attempt before this one failed */
  readonly onOpened: (check: HealthCheck, at: HostPort, wasRefused: boolean) => void;
  /** Told when an address cannot be bound, and again only when the reason is another one. */
  readonly onRefused: (check: HealthCheck, at: HostPort, error: unknown) => void;
}

/** One service's health-check node port: each address is bound for itself, whatever becomes of the others. */
export class HealthPort {
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
