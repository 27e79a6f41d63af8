/** A mode that this agent serves in, as one value. */

import type { RelayTraffic, UserspaceOptions } from "@fairlead/backend-userspace";
import { type Clock, sleep, systemClock, type Timers } from "@fairlead/base";
import type { AgentConfig } from "@fairlead/config";
import type { Backend, FrontendLookup, IPFamily, ModeFacts } from "@fairlead/core";
import type { ServiceDeviceChange } from "@fairlead/kernel";
import { BUILTIN_CHAINS, type IptablesPort, type Table } from "@fairlead/netfilter";
import type { Kernel } from "../kernel.ts";
import type { Log } from "../log.ts";
import type { MetricFactory } from "../metrics/registry.ts";
import type { Progress } from "../sync/follower.ts";

/**
 * A mode that this agent serves in, as one value. It has one file of this folder and one row in index.ts; nothing else
 * in the agent knows its name.
 */
export interface Mode extends ModeRemoval {
  readonly facts: ModeFacts;
  /**
   * Why this node cannot do the mode; undefined: it can. Loads kernel modules where that is needed. Absent: what `open`
   * finds is all that can be missing.
   */
  whyNot?(config: AgentConfig, kernel: Kernel): Promise<string | undefined>;
  /** What an operator should know of serving in the mode, reported at each start; absent, undefined: nothing. */
  notice?(config: AgentConfig): ModeNotice | undefined;
  /** What serves where the node cannot do the mode; absent: nothing does, the agent ends. */
  readonly fallback?: Fallback;
  /**
   * Looks whether a family can be programmed.
   *
   * @throws Error saying what is missing and how to get it
   */
  open(kernel: Kernel, family: IPFamily, config: OpenedFor): Promise<void>;
  /** Sets the kernel settings that the mode relies on. What cannot be set costs what it is for, and one line. */
  prepare?(config: AgentConfig, kernel: Kernel, log: Log): Promise<void>;
  /** Makes the backends of the families that were opened. Nothing is written yet. */
  serve(node: ModeContext): Promise<ModeRuntime>;
}

/** A line of the log and an Event on the Node, with kube-proxy's reason. */
export interface ModeNotice {
  readonly type: "Normal" | "Warning";
  readonly reason: string;
  readonly message: string;
}

/** What a mode's objects in the kernel are named after. */
export type OpenedFor = Pick<AgentConfig, "serviceProxyName">;

/** How what a mode left is removed while another one serves, and by --cleanup: kube-proxy's and ours. */
export interface ModeRemoval {
  readonly facts: Pick<ModeFacts, "name">;
  /**
   * Removes what it left in one family's iptables, and what belongs to that; absent: it leaves nothing there.
   *
   * @param keep chains that stay, with the jumps to them; default: none
   * @returns whether there was anything; undefined: it does not know
   * @throws AggregateError with what failed, after everything was tried
   */
  removeRules?(kernel: Pick<Kernel, "ipvs">, rules: IptablesPort, keep?: KeepsChain): Promise<boolean | undefined>;
  /**
   * Removes what it left elsewhere, of both families; absent: it leaves nothing there, and cannot run alongside another
   * proxy.
   *
   * @param serviceProxyName whose; empty: the first proxy's, kube-proxy or Fairlead
   * @returns the names of what was removed
   * @throws Error when something cannot be removed
   */
  removeTables?(kernel: Pick<Kernel, "removeNftTables">, serviceProxyName: string): Promise<readonly string[]>;
}

export type KeepsChain = (table: Table, chain: string) => boolean;

export interface ModeContext {
  readonly config: AgentConfig;
  readonly families: readonly IPFamily[];
  readonly kernel: Kernel;
  readonly log: Log;
  readonly progress: Progress;
  /** For tests: virtual time, and sockets in memory. */
  readonly system?: { readonly clock: Clock; readonly open: NonNullable<UserspaceOptions["open"]> };
}

export interface ModeRuntime {
  /** What an operator should know of how the mode runs on this node; absent: nothing. */
  readonly notice?: ModeNotice | undefined;
  readonly backends: ReadonlyMap<IPFamily, Backend>;
  /** Whether the families' tools can work side by side; those of legacy iptables share one lock. */
  readonly familiesAtOnce: boolean;
  /** Where this process itself carries the traffic. */
  readonly relaying?: Relaying | undefined;
  /** Adds metrics that only this mode has; absent: it has none. */
  readonly addMetrics?: ((make: MetricFactory) => void) | undefined;
  /**
   * Follows what other processes do to what this mode programs, from now on until `signal` aborts, then resolves;
   * absent: only checks notice it. Called before anything is written.
   */
  readonly watchForeign?: ((notify: ForeignChanges, signal: AbortSignal) => Promise<void>) | undefined;
  /** Whether another program has changed the service device; absent: the mode has none. */
  readonly isForeignChange?: ((change: ServiceDeviceChange) => boolean) | undefined;
}

export interface ForeignChanges {
  /** Something was changed, or may have been: a check finds what differs. */
  changed(): void;
}

/** What there is to look after where this process itself carries the traffic. */
export interface Relaying {
  readonly traffic: RelayTraffic;
  /** What connection tracking has for endpoints: the relays. Absent: it has the endpoints themselves. */
  lookup?(lookup: FrontendLookup): FrontendLookup;
  /** Accepts no connection, and ends what is open when `drained` resolves. */
  close(drained: Promise<void>): Promise<void>;
}

interface RequiredSysctl {
  /** With dots: `net.ipv4.ip_forward`. */
  readonly name: string;
  readonly value: string;
  readonly reason: string;
}

/** Sets kernel settings. A line names each that was changed and each that cannot be set. */
export async function setSysctls(
  required: readonly RequiredSysctl[],
  { sysctl }: Pick<Kernel, "sysctl">,
  log: Log,
): Promise<void> {
  for (const { name, value, reason } of required) {
    const result = await sysctl.set(name.replaceAll(".", "/"), value);
    if (result.outcome === "changed") log.info("Set a sysctl", { name, value, reason });
    else if (result.outcome !== "kept") {
      log.warn("Failed to set a sysctl; the kernel's value stays in effect", {
        name,
        value,
        neededFor: reason,
        reason: result.reason,
      });
    }
  }
}

/**
 * Finds the iptables of a family, and reads one rule of each table: only that finds missing permissions and kernel
 * parts. One rule, since the tables are full after a restart.
 */
export async function openTables(kernel: Kernel, family: IPFamily, tables: readonly Table[]): Promise<void> {
  const port = await kernel.iptables(family);
  for (const table of tables) await port.list(table, "OUTPUT", 1);
}

export async function openedTables(
  kernel: Kernel,
  families: readonly IPFamily[],
): Promise<ReadonlyMap<IPFamily, IptablesPort>> {
  return new Map(await Promise.all(families.map(async (family) => [family, await kernel.iptables(family)] as const)));
}

/** Milliseconds between two looks whether rules went: some system calls each. */
const LOOK_MS = 500;

/**
 * `ModeRuntime.watchForeign` of modes that program iptables: after a flush it is not the next check that finds it. The
 * kernel is asked for numbers of rules. To listen to nf_tables would make every program's transactions dearer, and the
 * legacy variant reports nothing.
 *
 * @param keeps the mode's chains of fixed names, by table
 */
export function watchRules(
  ports: ReadonlyMap<IPFamily, Pick<IptablesPort, "lost">>,
  { keeps }: Pick<ModeFacts, "keeps">,
  timers: Timers = systemClock,
): NonNullable<ModeRuntime["watchForeign"]> {
  const chains = Object.fromEntries(
    (["nat", "filter"] as const).map((table) => [table, [...BUILTIN_CHAINS[table], ...(keeps[table] ?? [])]]),
  );
  return async (notify, signal) => {
    while (!signal.aborted) {
      await sleep(timers, LOOK_MS, signal);
      let lost = false;
      for (const { lost: look } of ports.values()) if (await look?.(chains)) lost = true;
      if (lost && !signal.aborted) notify.changed();
    }
  };
}

/** Whether both families can be synced at once: tools of the legacy variant wait for one lock. */
export function atOnce({ familiesAtOnce }: ModeFacts, ports: ReadonlyMap<IPFamily, IptablesPort>): boolean {
  return familiesAtOnce && [...ports.values()].every(({ variant }) => variant === "nft");
}

/** The mode that serves in place of one that the node cannot do. */
interface Fallback {
  /** Its name. */
  readonly mode: string;
  /** The flag that allows it, as people write it. */
  readonly flag: string;
  allowed(config: AgentConfig): boolean;
}
