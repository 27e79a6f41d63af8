import { Counter, type Registry } from "prom-client";

/** Counters that the kernel keeps and that are read when the metrics are. */
export const packetCounters = {
  kubeproxy_iptables_ct_state_invalid_dropped_packets_total: {
    nfacct: "ct_state_invalid_dropped_pkts",
    help: "Packets dropped because conntrack found them invalid",
  },
  kubeproxy_iptables_localhost_nodeports_accepted_packets_total: {
    nfacct: "localhost_nps_accepted_pkts",
    help: "Packets accepted for node ports on loopback addresses",
  },
} as const;

/**
 * @param read packets counted so far under an nfacct name; undefined: the kernel has no such counter
 */
export function addPacketCounters(registry: Registry, read: (name: string) => Promise<number | undefined>): void {
  for (const [name, { nfacct, help }] of Object.entries(packetCounters)) {
    new Counter({
      name,
      help,
      registers: [registry],
      async collect() {
        const packets = await read(nfacct).catch(() => undefined);
        this.reset();
        this.inc(packets ?? 0);
      },
    });
  }
}
