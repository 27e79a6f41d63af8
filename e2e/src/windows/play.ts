/** Plays cases of kernelspace mode to a service proxy under Wine: kube-proxy, or the built agent. */

import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import type { WindowsProgram, Wine } from "@fairlead/lab/wine/wine";
import { endpointSlice, node, service, serviceCIDR } from "@fairlead/testkit";
import { LightApiServer } from "@fairlead/testkit/api-server";
import { hcnOf } from "@fairlead/testkit/hcn";
import { WINDOWS_NODE, type WindowsCase } from "@fairlead/testkit/windows";
import { FENCE, HcnState, readLog } from "./hcn-log.ts";

/** A service proxy's command line, given where its API server and its ports are. */
export interface ServiceProxy {
  readonly name: string;
  command(of: WindowsCase, at: ProxyPlace): Promise<readonly [string, ...string[]]>;
}

export interface ProxyPlace {
  readonly folder: string;
  readonly wine: Wine;
  /** `http://127.0.0.1:PORT` */
  readonly apiServer: string;
  /** Unlike that of other proxies that run. */
  readonly number: number;
}

/** What HCN has after a step. */
interface PlayedStep {
  readonly what: string;
  readonly objects: readonly string[];
}

/** Milliseconds between two looks at the log. */
const LOOK_MS = 50;

let numbers = 0;
let fences = 0;

/** A node under Wine with its service proxy, and an API server of its own. */
export class PlayedNode {
  readonly server: LightApiServer;
  readonly #of: WindowsCase;
  readonly #proxy: ServiceProxy;
  readonly #wine: Wine;
  readonly #folder: string;
  readonly #name: string;
  readonly #number = ++numbers;
  #child: WindowsProgram | undefined;
  #starts = 0;

  constructor(of: WindowsCase, proxy: ServiceProxy, wine: Wine, folder: string, server = new LightApiServer()) {
    this.#of = of;
    this.#proxy = proxy;
    this.#wine = wine;
    this.#folder = folder;
    this.#name = `${proxy.name}-${of.name}-${this.#number}`;
    this.server = server;
  }

  get log(): string {
    return join(this.#folder, `${this.#name}.hcn`);
  }

  /**
   * Starts the proxy on what HCN has.
   *
   * @param proxy default: that of this node
   */
  async start(apiServer: string, proxy = this.#proxy): Promise<void> {
    const { version, networks, endpoints } = { version: this.#of.hns, ...hcnOf(this.#of) };
    const fixture = join(this.#folder, `${this.#name}.fixture`);
    const lines = [
      `version ${JSON.stringify(version)}`,
      ...networks.map((one) => `network ${JSON.stringify(one)}`),
      ...endpoints.map((one) => `endpoint ${JSON.stringify(one)}`),
      ...this.#of.others.map((one) => `loadbalancer ${JSON.stringify(one)}`),
      ...this.#of.fails.map(({ call, code, times }) => `fail ${call} 0x${code.toString(16)} ${times}`),
    ];
    await writeFile(fixture, `${lines.join("\n")}\n`);
    this.#starts += 1;
    const place = { folder: this.#folder, wine: this.#wine, apiServer, number: this.#number };
    this.#child = this.#wine.start(this.#name, await proxy.command(this.#of, place), {
      HCN_FIXTURE: this.#wine.path(fixture),
      HCN_LOG: this.#wine.path(this.log),
      HCN_KEPT: "1",
      HCN_RUN: String(this.#starts),
    });
  }

  /**
   * Starts the proxy on the objects of a case's first step, and makes the changes of the others.
   *
   * @param end ends the proxy; default: it is killed
   */
  async *play(steps: WindowsCase["steps"], end = () => this.kill()): AsyncGenerator<PlayedStep> {
    putNode(this.server);
    const url = await this.server.start();
    for (const [at, { what, restart, put = [], delete: gone = [] }] of steps.entries()) {
      if (restart) await this.kill();
      this.server.remove(gone);
      this.server.put(put);
      if (restart || at === 0) await this.start(url);
      yield { what, objects: (await this.settled()).describe() };
    }
    await end();
    await this.server.stop();
  }

  async kill(): Promise<void> {
    const child = this.#child;
    this.#child = undefined;
    if (child?.running) child.kill();
    await child?.ended;
  }

  /** @returns the exit code of the proxy, which ends by itself; undefined: it was killed */
  async ended(): Promise<number | undefined> {
    return this.#child?.ended;
  }

  async state(): Promise<HcnState> {
    return new HcnState(this.#of, await readLog(this.log));
  }

  /** Waits until the proxy has written all that the API server has: the second fence is after the sync of the first. */
  async settled(): Promise<HcnState> {
    await this.#fence();
    return this.#fence();
  }

  async #fence(): Promise<HcnState> {
    fences += 1;
    const port = 1000 + (fences % 60_000);
    const [family = "IPv4"] = this.#of.families;
    const { address, endpoint } = FENCE[family];
    this.server.put([
      service("fence", { clusterIPs: [address], ports: [{ name: "p", port, targetPort: port }] }),
      endpointSlice("fence-1", {
        service: "fence",
        family,
        ports: [{ name: "p", port }],
        endpoints: [{ address: endpoint, nodeName: "win-2" }],
      }),
    ]);
    for (;;) {
      const state = await this.state();
      if (state.fence === port) return state;
      const child = this.#child;
      if (child?.running !== true) throw new Error(`${this.#name} has ended: see ${this.#name}.err`);
      await wait(LOOK_MS);
    }
  }
}

/** What every cluster has: the node, and what ClusterIPs are allocated from. */
export function putNode(server: LightApiServer): void {
  server.put([
    node(WINDOWS_NODE.name, { addresses: [WINDOWS_NODE.address, WINDOWS_NODE.address6], zone: "a" }),
    serviceCIDR("kubernetes", ["10.96.0.0/16", "fd00:96::/112"]),
  ]);
}
