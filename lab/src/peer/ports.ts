import { readFileSync } from "node:fs";

/** From the first to the last. */
export type PortRange = readonly [first: number, last: number];

/** Nothing listens on these: kubelets and proxies are below them, node ports between them. */
const HIGH: PortRange = [33_000, 60_999];
const LOW: PortRange = [11_000, 29_999];

/**
 * Where a peer's source ports come from.
 *
 * @param kernel where the kernel takes those of everybody else in this namespace (`net.ipv4.ip_local_port_range`): one
 * that
 *   somebody has cannot be bound
 */
export function portsBeside([first, last]: PortRange): PortRange {
  return first <= HIGH[1] && last >= HIGH[0] ? LOW : HIGH;
}

function kernelRange(): PortRange {
  const [first = 0, last = 0] = readFileSync("/proc/sys/net/ipv4/ip_local_port_range", "utf8").split(/\s+/).map(Number);
  return [first, last];
}

let range: PortRange | undefined;
let next = 0;

/**
 * A source port that this peer has not used for a long while. Left to itself the kernel may take one again for another
 * address, and where two frontends have one endpoint the connections are the same but for the frontend: connection
 * tracking then changes a port, which looks like masquerading, and ip_vs takes the one's answer for the other's.
 */
export function sourcePort(): number {
  range ??= portsBeside(kernelRange());
  const [first, last] = range;
  next = next < first || next >= last ? first : next + 1;
  return next;
}
