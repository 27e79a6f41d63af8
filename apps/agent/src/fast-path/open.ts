import type { Devices } from "@fairlead/backend-nftables";
import { errorChainText, type IPFamily, systemClock } from "@fairlead/base";
import { type AgentConfig, fastPathNetworks, whyNotAuto } from "@fairlead/config";
import type { NftablesClient } from "@fairlead/kernel";
import { NFT_FAMILY, NftBatch } from "@fairlead/netfilter/nft";
import type { Kernel } from "../host/kernel.ts";
import type { Log } from "../log/log.ts";
import { FastPathDevices } from "./devices.ts";
import { type TestedNode, testedKernel } from "./verdict.ts";

/** What nftables mode needs of it. */
export interface FastPath {
  readonly devices: Devices;
  /** The name that a device of the node has now; undefined: it is gone. */
  nameOf(index: number): string | undefined;
  /** Has `update` called after each change of the devices, until the signal aborts. */
  follow(update: () => Promise<void>, signal: AbortSignal): Promise<void>;
}

export interface OpenedFastPath {
  /** Absent: it is not configured, or it is disabled. */
  readonly fastPath?: FastPath;
  /** Why it is disabled. */
  readonly notice?: FastPathNotice;
}

/** For the log, and for an Event on the Node. */
interface FastPathNotice {
  readonly type: "Warning";
  readonly reason: string;
  readonly message: string;
}

export interface FastPathNode {
  readonly config: AgentConfig;
  readonly families: readonly IPFamily[];
  readonly kernel: Pick<Kernel, "devices" | "sysctl" | "testFlowtable">;
  readonly log: Log;
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
