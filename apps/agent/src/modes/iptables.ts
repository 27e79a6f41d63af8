/** iptables mode. */

import {
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

/**
 * Makes the nfacct counters that rules name, and gives those that exist. Where the kernel has none, one line says so
 * for all of them.
 */
export function counterMaker(nfacct: Nfacct, log: Log): (names: readonly string[]) => Promise<ReadonlySet<string>> {
  let reported = false;
  return async (names) => {
    const existing = new Set<string>();
    for (const name of names) {
      const result = await nfacct.ensure(name);
      if (result.ok) existing.add(name);
      else if (!reported) {
        reported = true;
        log.info("nfacct unavailable; packet counters disabled", { reason: result.reason });
      }
    }
    return existing;
  };
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

async function serve({ config, families, kernel, log, progress, system }: ModeContext): Promise<ModeRuntime> {
  const ports = await openedTables(kernel, families);
  const tcpBeLiberal = ((await kernel.sysctl.read(TCP_BE_LIBERAL)) ?? "0") !== "0";
  if (tcpBeLiberal) log.info("Packets in state INVALID are accepted; nf_conntrack_tcp_be_liberal is set");
  const counters = counterMaker(kernel.nfacct, log);
  const backends = Array.from(
    ports,
    ([family, port]) =>
      [
        family,
        createIptablesBackend(port, {
          ...configuredOptions(config, { tcpBeLiberal }),
          counters,
          turn: progress.turnOf(family),
          ...(system && { clock: system.clock }),
          onProblem: (problem) => log.warn("Problem in iptables mode", { ipFamily: family, problem }),
        }),
      ] as const,
  );
  return {
    backends: new Map(backends),
    familiesAtOnce: atOnce(iptablesFacts, ports),
    watchForeign: watchRules(ports, iptablesFacts, system?.clock),
  };
}
