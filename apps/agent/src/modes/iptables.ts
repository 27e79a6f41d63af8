/** iptables mode. */

import {
  COUNTERS,
  configuredOptions,
  createIptablesBackend,
  iptablesFacts,
  removeIptablesMode,
  requiredSysctls,
} from "@fairlead/backend-iptables";
import type { AgentConfig } from "@fairlead/config";
import type { NodePlan } from "@fairlead/core";
import { selectsIPv4Loopback } from "@fairlead/intake";
import type { Nfacct } from "@fairlead/kernel";
import type { Kernel } from "../kernel.ts";
import type { Log } from "../log.ts";
import {
  atOnce,
  type Mode,
  type ModeContext,
  type ModeNotice,
  type ModeRuntime,
  openedTables,
  openTables,
  setSysctls,
  watchRules,
} from "./mode.ts";

const TCP_BE_LIBERAL = "net/netfilter/nf_conntrack_tcp_be_liberal";

/** Milliseconds for which a counter is taken to be there as it was: both families' first syncs ask within them. */
const KNOWN_MS = 3_000;

/** Makes the nfacct counters that rules name. Where the kernel has none, one line says so for all of them. */
export class CounterMaker {
  readonly #nfacct: Nfacct;
  readonly #log: Log;
  readonly #now: () => number;
  readonly #known = new Map<string, { readonly asked: number; readonly exists: Promise<boolean> }>();
  #reported = false;

  /** @param now milliseconds of a clock that never goes back */
  constructor(nfacct: Nfacct, log: Log, now: () => number = () => performance.now()) {
    this.#nfacct = nfacct;
    this.#log = log;
    this.#now = now;
  }

  /** @returns those that exist now */
  async ensure(names: readonly string[]): Promise<ReadonlySet<string>> {
    const existing = new Set<string>();
    // One after the other: the start of a process holds the event loop for milliseconds.
    for (const name of names) if (await this.#ensure(name)) existing.add(name);
    return existing;
  }

  #ensure(name: string): Promise<boolean> {
    const known = this.#known.get(name);
    const asked = this.#now();
    if (known !== undefined && asked - known.asked < KNOWN_MS) return known.exists;
    const exists = this.#make(name);
    this.#known.set(name, { asked, exists });
    return exists;
  }

  async #make(name: string): Promise<boolean> {
    const result = await this.#nfacct.ensure(name);
    if (!result.ok) this.#report(result.reason);
    return result.ok;
  }

  #report(reason: string): void {
    if (this.#reported) return;
    this.#reported = true;
    this.#log.info("nfacct unavailable; packet counters disabled", { reason });
  }
}

export const iptablesMode: Mode = {
  facts: iptablesFacts,
  notice,
  open: (kernel, family) => openTables(kernel, family, iptablesFacts.needs.iptables),
  prepare,
  serve,
  async removeRules(_, rules, keep) {
    await removeIptablesMode(rules, keep && { keep });
    return undefined;
  },
};

/** Upstream: cmd/kube-proxy/app/server_linux.go, createProxier (KEP-5343). */
function notice({ mode, provenance }: AgentConfig): ModeNotice | undefined {
  // Where it stands in for another mode, that one was asked for.
  if (provenance["mode"] !== undefined || mode !== iptablesFacts.name) return undefined;
  const message =
    "No proxy mode is set: using iptables. The default of kube-proxy becomes nftables in Kubernetes 1.40, and that of Fairlead " +
    "in the release that follows it. To keep iptables, set mode: iptables in the configuration file or --proxy-mode=iptables";
  return { type: "Warning", reason: "KubeProxyDefaultMode", message };
}

function prepare(config: AgentConfig, kernel: Kernel, log: Log): Promise<void> {
  // Of the node-port addresses only loopback ones count here; which of them the node has may change later.
  const addresses = selectsIPv4Loopback(config.nodePortAddresses) ? ["127.0.0.1"] : [];
  const node: NodePlan = { detector: { kind: "none" }, nodePortAddresses: { kind: "list", addresses } };
  const { localhostNodePorts } = config.iptables;
  return setSysctls(requiredSysctls({ family: "IPv4", localhostNodePorts }, node), kernel, log);
}

async function serve({ config, families, kernel, log, progress }: ModeContext): Promise<ModeRuntime> {
  const ports = await openedTables(kernel, families);
  const tcpBeLiberal = ((await kernel.sysctl.read(TCP_BE_LIBERAL)) ?? "0") !== "0";
  if (tcpBeLiberal) log.info("Packets in state INVALID are accepted; nf_conntrack_tcp_be_liberal is set");
  const counters = new CounterMaker(kernel.nfacct, log);
  // In parallel with the lists: the first sync does not wait for it. What is wrong is reported to that sync.
  counters.ensure(COUNTERS).catch(() => {});
  const backends = Array.from(
    ports,
    ([family, port]) =>
      [
        family,
        createIptablesBackend(port, {
          ...configuredOptions(config, { tcpBeLiberal }),
          counters: (names) => counters.ensure(names),
          turn: progress.turnOf(family),
          onProblem: (problem) => log.warn("Problem in iptables mode", { ipFamily: family, problem }),
        }),
      ] as const,
  );
  return {
    backends: new Map(backends),
    familiesAtOnce: atOnce(iptablesFacts, ports),
    watchForeign: watchRules(ports, iptablesFacts),
  };
}
