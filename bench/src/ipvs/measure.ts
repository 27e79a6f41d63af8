import { setTimeout as sleep } from "node:timers/promises";
import { waitUntil } from "@fairlead/lab/agent/wait-until";
import { type ApiClient, objectPath } from "@fairlead/lab/control-plane/api-client";
import type { Daemon } from "@fairlead/lab/support/daemon";
import { residentMiB } from "@fairlead/lab/support/memory";
import { moveEndpoints } from "../cluster/load.ts";
import { endpointList, movedAddress, NODE_NAME, sliceObject, TARGET_PORT } from "../cluster/objects.ts";
import type { ProxyMeasurement, WorkMeasurement } from "../measure/ipvs-figures.ts";
import { cpuSeconds } from "../measure/process-figures.ts";
import type { ProxyName } from "../proxy/measured-proxy.ts";
import type { Accounting } from "./accounting.ts";
import { type MeasuredNode, openNode } from "./measured-node.ts";
import type { GuestSettings } from "./settings.ts";

const PATIENCE_MS = 1_800_000;
/** After a step, until nobody does anything about it anymore. */
const QUIET_MS = 4_000;

export interface Measuring {
  readonly settings: GuestSettings;
  readonly api: ApiClient;
  readonly accounting: Accounting;
  readonly folder: string;
}

/** Takes one proxy through the whole work on a kernel that holds nothing, and leaves the API's objects as they were. */
export async function measure(proxy: ProxyName, measuring: Measuring): Promise<ProxyMeasurement> {
  const node = await openNode(proxy, measuring.settings, measuring.folder);
  const work = new IpvsMeasurement(node, measuring);
  try {
    const fullSync = await work.start();
    const changes: WorkMeasurement[] = [];
    for (let count = 0; count < measuring.settings.changes; count++) {
      changes.push(await work.change(count));
    }
    const firstLocal = await work.change(measuring.settings.changes, NODE_NAME);
    const restart = await work.start();
    const residentMiB = await work.residentMiB();
    const kernel = await heldBy(node);
    return { proxy, fullSync, restart, changes, firstLocal, residentMiB, kernel };
  } finally {
    await work.end();
    await node.dispose();
  }
}

class IpvsMeasurement {
  readonly #node: MeasuredNode;
  readonly #measuring: Measuring;
  readonly #changed = new Set<number>();
  #proxy: Daemon | undefined;

  constructor(node: MeasuredNode, measuring: Measuring) {
    this.#node = node;
    this.#measuring = measuring;
  }

  /** Ends the proxy if it runs, and starts it. */
  async start(): Promise<WorkMeasurement> {
    await this.#proxy?.stop("SIGKILL");
    return this.#step(async () => {
      this.#proxy = await this.#node.start();
      await waitUntil("the first complete sync", PATIENCE_MS, () => this.#isComplete());
    });
  }

  /** One endpoint of a service gives way to another, on another node where one is given. */
  async change(index: number, nodeName?: string): Promise<WorkMeasurement> {
    const { api, settings } = this.#measuring;
    const address = movedAddress(index);
    const [first, ...others] = endpointList(index, settings.endpoints, 0, new Map([[0, address]]));
    this.#changed.add(index);
    const wanted = hexadecimal(address);
    return this.#step(async () => {
      const path = objectPath(sliceObject(index, settings.endpoints));
      await api.patch(path, { endpoints: [{ ...first, ...(nodeName !== undefined && { nodeName }) }, ...others] });
      await waitUntil(`${address} among the destinations`, PATIENCE_MS, async () =>
        (await this.#node.virtualServers()).includes(wanted) ? true : undefined,
      );
    });
  }

  async residentMiB(): Promise<number> {
    return this.#proxy === undefined ? 0 : Math.round(await residentMiB(this.#proxy.pid));
  }

  /** Ends the proxy; the services are as they were. */
  async end(): Promise<void> {
    await this.#proxy?.stop("SIGKILL");
    const { api, settings } = this.#measuring;
    for (const index of this.#changed) await moveEndpoints(api, index, settings.endpoints, new Map());
  }

  async #step(work: () => Promise<void>): Promise<WorkMeasurement> {
    const before = await this.#cpuSeconds();
    await this.#measuring.accounting.since();
    const started = performance.now();
    await work();
    const seconds = (performance.now() - started) / 1000;
    await sleep(QUIET_MS);
    const cpuSeconds = (await this.#cpuSeconds()) - before;
    return { seconds, cpuSeconds, processes: await this.#measuring.accounting.since() };
  }

  /**
   * Of the running proxy and those of its children that have ended; a proxy that was not there before counts from 0.
   */
  async #cpuSeconds(): Promise<number> {
    return this.#proxy === undefined ? 0 : cpuSeconds(this.#proxy.pid).catch(() => 0);
  }

  /** It says itself that it has synced, and the kernel has every virtual server and destination. */
  async #isComplete(): Promise<true | undefined> {
    await sleep(200);
    const { services, endpoints } = this.#measuring.settings;
    const lines = (await this.#node.virtualServers()).split("\n").filter((line) => / (?:rr|Masq) /.test(line));
    if (lines.length < services * (1 + endpoints)) return undefined;
    // Asked last: an answer may cost the proxy processes.
    const synced = /^kubeproxy_sync_proxy_rules_last_timestamp_seconds(?:\{.*\})? [1-9]/m;
    return synced.test(await this.#node.metrics()) ? true : undefined;
  }
}

/** `10.152.1.0` → `0A980100:1F90`, as /proc/net/ip_vs has it with the port of the pods */
function hexadecimal(address: string): string {
  const bytes = address.split(".").map((part) => Number(part).toString(16).padStart(2, "0"));
  return `${bytes.join("")}:${TARGET_PORT.toString(16)}`.toUpperCase();
}

/** Virtual servers, destinations that serve, set members and rules. */
async function heldBy({ runner }: MeasuredNode): Promise<readonly string[]> {
  const listings = [["ipvsadm", "--save", "-n"], ["ipset", "save"], ["iptables-save"]] as const;
  const texts = await Promise.all(listings.map(async (argv) => (await runner.run(argv)).stdout));
  return texts
    .flatMap((text) => text.split("\n"))
    .filter((line) => /^(?:-[Aa]|add) /.test(line) && !line.endsWith(" -w 0"))
    .sort();
}
