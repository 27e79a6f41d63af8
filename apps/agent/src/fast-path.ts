/** The fast path: whether this kernel has it, and over which devices. */

import { readFile } from "node:fs/promises";
import { chooseDevices, type Devices } from "@fairlead/backend-nftables";
import { errorChainText, type IPFamily, sleep, stringOf, systemClock, type Timers, valueAt } from "@fairlead/base";
import { type AgentConfig, type FastPathSettings, fastPathNetworks, whyNotAuto } from "@fairlead/config";
import {
  type DeviceFollower,
  type FlowtableTest,
  kernelVersion,
  type NetworkDevice,
  type NftablesClient,
  type Sysctl,
} from "@fairlead/kernel";
import { NFT_FAMILY, NftBatch } from "@fairlead/netfilter/nft";
import type { Kernel } from "./kernel.ts";
import type { Log } from "./log.ts";
import { readStateFile, replaceFile, stateFile } from "./ownership.ts";

export interface FastPath {
  readonly devices: Devices;
  /** The name that a device of the node has now; undefined: it is gone. */
  nameOf(index: number): string | undefined;
  /** Has `update` called after each change of the devices, until the signal aborts. */
  follow(update: () => Promise<void>, signal: AbortSignal): Promise<void>;
}

interface FastPathNode {
  readonly config: AgentConfig;
  readonly families: readonly IPFamily[];
  readonly kernel: Pick<Kernel, "devices" | "sysctl" | "testFlowtable">;
  readonly log: Log;
}

interface OpenedFastPath {
  /** Absent: it is not configured, or it is disabled. */
  readonly fastPath?: FastPath;
  readonly notice?: FastPathNotice;
}

/** The fast path of the configuration, where the kernel has passed its test. */
export async function openFastPath(
  client: Pick<NftablesClient, "check">,
  { config, families, kernel, log }: FastPathNode,
): Promise<OpenedFastPath> {
  const settings = config.nftables.fastPath;
  if (settings === undefined) return {};
  const why = whyNotAuto(config) ?? (await whyRefused(client, families)) ?? (await whyUnfit({ config, kernel, log }));
  if (why !== undefined) return { notice: disabled(why) };
  const { devices: follower, sysctl } = kernel;
  const networks = fastPathNetworks(config);
  const parts = { wanted: settings.devices, ...networks, follower, sysctl, timers: systemClock, log };
  return { fastPath: new FastPathDevices(parts) };
}

interface FastPathDevicesParts {
  readonly wanted: FastPathSettings["devices"];
  /** Canonical CIDRs of this cluster's pods, and of excluded networks. */
  readonly pods: readonly string[];
  readonly excluded: readonly string[];
  readonly follower: DeviceFollower;
  readonly sysctl: Pick<Sysctl, "read">;
  readonly timers: Timers;
  readonly log: Log;
}

/** Milliseconds until following is tried again after an error. */
const RESTART_MS = 1_000;

/** Whether bridged packets pass through the rules of a family. */
const BRIDGE_FILTERS = ["net/bridge/bridge-nf-call-iptables", "net/bridge/bridge-nf-call-ip6tables"];

export class FastPathDevices {
  readonly #parts: FastPathDevicesParts;
  #devices: Devices = new Map();
  /** Of all devices, by the kernel's number. */
  #names: ReadonlyMap<number, string> = new Map();
  /** Reported as left out. */
  #refused: ReadonlyMap<string, string> = new Map();

  constructor(parts: FastPathDevicesParts) {
    this.#parts = parts;
  }

  get devices(): Devices {
    return this.#devices;
  }

  nameOf(index: number): string | undefined {
    return this.#names.get(index);
  }

  /**
   * Follows them until the signal aborts.
   *
   * @param update called after each change; one that fails is logged
   */
  async follow(update: () => Promise<void>, signal: AbortSignal): Promise<void> {
    const { follower, timers, log, wanted, excluded } = this.#parts;
    const networks = wanted === "auto" || excluded.length > 0;
    while (!signal.aborted) {
      try {
        for await (const all of follower.follow(signal, { networks })) if (await this.#take(all)) await update();
      } catch (error) {
        log.warn("Cannot follow network devices; new devices have no fast path, retrying", {
          error: errorChainText(error),
        });
        await sleep(timers, RESTART_MS, signal);
      }
    }
  }

  /** @returns whether the chosen ones changed */
  async #take(all: readonly NetworkDevice[]): Promise<boolean> {
    const { wanted, pods, excluded, sysctl, log } = this.#parts;
    const filters = await Promise.all(BRIDGE_FILTERS.map((key) => sysctl.read(key)));
    const bridgeFilter = filters.some((value) => value !== undefined && value !== "0");
    const { devices, refused } = chooseDevices(wanted, all, { bridgeFilter, pods, excluded });
    for (const [device, reason] of refused) {
      if (this.#refused.get(device) === reason) continue;
      log.warn("Device left out of the fast path; its packets meet all rules", { device, reason });
    }
    this.#refused = refused;
    this.#names = new Map(all.map(({ name, index }) => [index, name]));
    const same = sameDevices(devices, this.#devices);
    this.#devices = devices;
    return !same;
  }
}

interface TestedNode {
  readonly config: Pick<AgentConfig, "stateDir">;
  readonly kernel: Pick<Kernel, "testFlowtable">;
  readonly log: Log;
}

/**
 * How this kernel's flowtables did in their test: as it was noted since the boot, or by a test now, which is noted.
 */
export async function testedKernel({ config, kernel, log }: TestedNode): Promise<FlowtableTest> {
  const file = stateFile(config.stateDir, "fastPath");
  const subject = { release: kernelVersion().release, boot: await bootId() };
  const noted = file === undefined ? undefined : await readNoted(file, subject);
  if (noted !== undefined) return noted;
  const tested = await kernel.testFlowtable();
  log.info("Tested the kernel's flowtables", { ...tested });
  if (tested.outcome === "impossible" || file === undefined) return tested;
  try {
    await replaceFile(file, `${JSON.stringify({ ...subject, ...tested })}\n`);
  } catch (error) {
    log.warn("Cannot write the result of the flowtable test; the next start tests again", {
      file,
      error: errorChainText(error),
    });
  }
  return tested;
}

/** For the log, and for an Event on the Node. */
interface FastPathNotice {
  readonly type: "Warning";
  readonly reason: string;
  readonly message: string;
}

function disabled(why: string): FastPathNotice {
  const message = `The fast path (nftables.fastPath) is disabled; packets of all connections meet all rules: ${why}`;
  return { type: "Warning", reason: "FastPathDisabled", message };
}

async function whyRefused(
  client: Pick<NftablesClient, "check">,
  families: readonly IPFamily[],
): Promise<string | undefined> {
  const flowtable = { name: "fast-path", priority: 0, devices: [], counter: true } as const;
  const base = { type: "filter", hook: "forward", priority: 10, policy: "accept" } as const;
  for (const family of families) {
    const batch = new NftBatch(NFT_FAMILY[family], "fairlead-fast-path-probe").addTable().addFlowtable(flowtable);
    batch.addChain({ name: "forward", base });
    batch.addRule("forward", { expressions: [{ kind: "flow-offload", flowtable: flowtable.name }] });
    try {
      await client.check(batch);
    } catch (error) {
      return `the kernel refuses flowtables (it needs the modules nf_flow_table and nft_flow_offload): ${errorChainText(error)}`;
    }
  }
  return undefined;
}

async function whyUnfit(node: TestedNode): Promise<string | undefined> {
  const tested = await testedKernel(node);
  switch (tested.outcome) {
    case "passed":
      return undefined;
    case "failed":
      return `this kernel failed the test of its flowtables: ${tested.reason}`;
    case "impossible":
      return (
        `no test of this kernel's flowtables since it booted, and this process cannot run it (${tested.reason}); ` +
        "run fairlead-proxy --init-only with the same configuration in a privileged init container, with the same --state-dir"
      );
    default:
      return tested satisfies never;
  }
}

function sameDevices(a: Devices, b: Devices): boolean {
  return a.size === b.size && [...a].every(([name, index]) => b.get(name) === index);
}

/** Another number after each boot. */
const BOOT = "/proc/sys/kernel/random/boot_id";

type Subject = Readonly<Record<"release" | "boot", string>>;

/** @returns undefined: there is none of this kernel and this boot that can be read */
async function readNoted(file: string, subject: Subject): Promise<FlowtableTest | undefined> {
  // Whatever is wrong with the file, the test runs anew.
  const noted: unknown = await readStateFile(file)
    .then((text) => JSON.parse(text))
    .catch(() => undefined);
  const same = (Object.keys(subject) as (keyof Subject)[]).every((key) => valueAt(noted, key) === subject[key]);
  const outcome = valueAt(noted, "outcome");
  if (!same) return undefined;
  if (outcome === "passed") return { outcome };
  return outcome === "failed" ? { outcome, reason: stringOf(valueAt(noted, "reason")) ?? "unknown" } : undefined;
}

async function bootId(): Promise<string> {
  return (await readFile(BOOT, "utf8").catch(() => "")).trim();
}
