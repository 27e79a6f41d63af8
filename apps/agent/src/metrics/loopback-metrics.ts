import type { NodePortRelays } from "@fairlead/backend-userspace";
import type { IPFamily } from "@fairlead/core";
import { Counter, Gauge } from "prom-client";
import type { MetricFactory } from "./registry.ts";

/** Packets that rules have refused so far; undefined: unknown now. */
export interface RefusedPackets {
  readonly family: IPFamily;
  readonly protocol: string;
  read(): Promise<number | undefined>;
}

/** Node ports on loopback addresses, with upstream's names and labels (pkg/proxy/metrics). Read on request. */
export function addLoopbackMetrics(
  { registry }: MetricFactory,
  relays: ReadonlyMap<IPFamily, Pick<NodePortRelays, "listeners" | "failures">>,
  refused: readonly RefusedPackets[],
): void {
  const registers = [registry];
  new Gauge({
    name: "kubeproxy_nftables_localhost_nodeport_listeners",
    help: "Node-port relays that listen on loopback addresses",
    labelNames: ["ip_family"],
    registers,
    collect() {
      for (const [ip_family, { listeners }] of relays) this.set({ ip_family }, listeners);
    },
  });
  new Counter({
    name: "kubeproxy_nftables_localhost_nodeport_listener_creation_failures_total",
    help: "Failures of a node-port relay to listen on a loopback address",
    labelNames: ["ip_family"],
    registers,
    collect() {
      this.reset();
      for (const [ip_family, { failures }] of relays) this.inc({ ip_family }, failures);
    },
  });
  // A full sync writes the rules anew, and the kernel counts from 0.
  const last = new Map<RefusedPackets, number>(refused.map((one) => [one, 0]));
  new Counter({
    name: "kubeproxy_nftables_localhost_nodeport_rejected_packets_total",
    help: "UDP and SCTP packets refused at node ports on loopback addresses, and TCP packets without a relay",
    labelNames: ["ip_family", "protocol"],
    registers,
    async collect() {
      for (const [one, before] of last) {
        const packets = (await one.read().catch(() => undefined)) ?? before;
        this.inc({ ip_family: one.family, protocol: one.protocol }, packets < before ? packets : packets - before);
        last.set(one, packets);
      }
    },
  });
}
