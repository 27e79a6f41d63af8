import { hostCIDR } from "@fairlead/base";
import { NFT_FAMILY, NftBatch, PROTOCOLS, statements } from "@fairlead/netfilter/nft";
import type { Packet } from "@fairlead/trace";

/** Where iptables' raw is (NF_IP_PRI_RAW): before connection tracking and all that a proxy has. */
const RAW = -300;
const CHAIN = "watched";
const PREFIX = "trace-by-fairlead-";

/** The table of a process that follows packets. */
export function tracingTable(pid: number): string {
  return `${PREFIX}${pid}`;
}

/** Whether a table is of a process that follows packets; it goes with that process. */
export function isOfTracing(table: string): boolean {
  return table.startsWith(PREFIX);
}

/**
 * A table with one rule, which has the kernel tell the way of packets like this one; it belongs to the socket that it
 * is sent by.
 *
 * @param fromAnybody from every sender
 * @throws RangeError for a protocol without a number
 */
export function tracingBatch(name: string, packet: Packet, fromAnybody: boolean): NftBatch {
  const { family: ip, source, destination, protocol, dport, inInterface } = packet;
  const family = NFT_FAMILY[ip];
  const number = PROTOCOLS[protocol];
  if (number === undefined) throw new RangeError(`the protocol ${protocol} has no number here`);
  const hook = inInterface === undefined ? "output" : "prerouting";
  return new NftBatch(family, name)
    .addTable(undefined, true)
    .addChain({ name: CHAIN, base: { type: "filter", hook, priority: RAW, policy: "accept" } })
    .addRule(CHAIN, {
      expressions: [
        ...(fromAnybody ? [] : statements.addressIn(family, "saddr", hostCIDR(source))),
        ...statements.addressIn(family, "daddr", hostCIDR(destination)),
        ...statements.protocolIs(protocol),
        ...(dport === undefined ? [] : statements.destinationPortIs(dport)),
        ...statements.TRACED,
      ],
    });
}
