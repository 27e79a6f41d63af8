import { Counter, type Registry } from "prom-client";

/** Names of the kernel's counters (nfacct), which the backend chooses. */
export interface PacketCounterNames {
  readonly invalidDropped: string;
  readonly localhostAccepted: string;
}

/**
 * Counters that the kernel keeps and that are read when the metrics are.
 *
 * @param read packets counted so far under a name; undefined: the kernel has no such counter
 */
export function addPacketCounters(
  registry: Registry,
  names: PacketCounterNames,
  read: (name: string) => Promise<number | undefined>,
): void {
  const add = (name: string, help: string, source: string) =>
    new Counter({
      name: `kubeproxy_iptables_${name}_packets_total`,
      help,
      registers: [registry],
      async collect() {
        const packets = await read(source).catch(() => undefined);
        this.reset();
        this.inc(packets ?? 0);
      },
    });
  add("ct_state_invalid_dropped", "Packets dropped because conntrack found them invalid", names.invalidDropped);
  add("localhost_nodeports_accepted", "Packets accepted for node ports on loopback addresses", names.localhostAccepted);
}
