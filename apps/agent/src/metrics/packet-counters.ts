import type { PacketCounters } from "@fairlead/core";
import { Counter, type Registry } from "prom-client";

/**
 * Counters that the kernel keeps and that are read when the metrics are.
 *
 * @param names absent: the mode counts nothing, and the metric stays 0
 * @param read packets counted so far under a name; undefined: the kernel has no such counter
 */
export function addPacketCounters(
  registry: Registry,
  names: PacketCounters,
  read: (name: string) => Promise<number | undefined>,
): void {
  const add = (name: string, help: string, source: string | undefined) =>
    new Counter({
      name: `kubeproxy_iptables_${name}_packets_total`,
      help,
      registers: [registry],
      async collect() {
        const packets = source === undefined ? 0 : await read(source).catch(() => undefined);
        this.reset();
        this.inc(packets ?? 0);
      },
    });
  add("ct_state_invalid_dropped", "Packets dropped because conntrack found them invalid", names.invalidDropped);
  add("localhost_nodeports_accepted", "Packets accepted for node ports on loopback addresses", names.localhostAccepted);
}
