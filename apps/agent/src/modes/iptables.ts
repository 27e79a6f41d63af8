import { COUNTERS, createIptablesBackend, type IptablesPort, requiredSysctls } from "@fairlead/backend-iptables";
import type { AgentConfig } from "@fairlead/config";
import type { Backend, IPFamily, NodePlan } from "@fairlead/core";
import { selectsIPv4Loopback } from "@fairlead/intake";
import type { Kernel } from "../host/kernel.ts";
import type { Log } from "../log/log.ts";
import type { Progress } from "../sync/progress.ts";
import { CounterMaker } from "./counters.ts";

export { iptablesSemantics } from "@fairlead/backend-iptables";

const beLiberal = "net/netfilter/nf_conntrack_tcp_be_liberal";

/** Sets the kernel settings that iptables mode relies on. What cannot be set costs what it is for, and one line. */
export async function prepareIptables(config: AgentConfig, kernel: Kernel, log: Log): Promise<void> {
  // Of the node-port addresses only loopback ones count here; which of them the node has may change later.
  const addresses = selectsIPv4Loopback(config.nodePortAddresses) ? ["127.0.0.1"] : [];
  const node: NodePlan = { detector: { kind: "none" }, nodePortAddresses: { kind: "list", addresses } };
  const { masqueradeBit, localhostNodePorts } = config.iptables;
  const settings = { family: "IPv4", masqueradeBit, localhostNodePorts, tcpBeLiberal: false } as const;
  for (const { name, value, reason } of requiredSysctls(settings, node)) {
    const result = await kernel.sysctl.set(name.replaceAll(".", "/"), value);
    if (result.outcome === "changed") log.info("Set a sysctl", { name, value, reason });
    else if (result.outcome !== "kept") {
      log.warn("A sysctl cannot be set", { name, value, neededFor: reason, reason: result.reason });
    }
  }
}

/** The backends of iptables mode, one a family. */
export async function iptablesBackends(
  config: AgentConfig,
  ports: ReadonlyMap<IPFamily, IptablesPort>,
  kernel: Kernel,
  log: Log,
  progress: Progress,
): Promise<ReadonlyMap<IPFamily, Backend>> {
  const { masqueradeBit, localhostNodePorts } = config.iptables;
  const tcpBeLiberal = ((await kernel.sysctl.read(beLiberal)) ?? "0") !== "0";
  if (tcpBeLiberal) log.info("Packets in state INVALID are let through (nf_conntrack_tcp_be_liberal is set)");
  const counters = new CounterMaker(kernel.nfacct, log);
  // Beside the reading of the lists: the first sync need not wait for it. What is wrong is told to that sync.
  counters.ensure(COUNTERS).catch(() => {});
  return new Map(
    Array.from(ports, ([family, port]) => [
      family,
      createIptablesBackend(port, {
        masqueradeBit,
        localhostNodePorts,
        tcpBeLiberal,
        counters: (names) => counters.ensure(names),
        breathe: progress.breathe(family),
        syncPeriod: config.syncPeriodMs,
        onProblem: (problem) => log.warn("iptables", { ipFamily: family, problem }),
      }),
    ]),
  );
}
