import type { ModeFinding } from "./finding.ts";
import { factsOfSide, hasTables, type ModeChange } from "./sides.ts";

/** The oldest kernel for nftables mode (upstream: pkg/proxy/nftables, README of KEP-3866). */
const NFTABLES_KERNEL = [5, 13] as const;

/**
 * The first kernel that does not take packets out of a TCP connection's window for invalid
 * (kubernetes.io/docs/reference/networking/virtual-ips, "Conntrack bug workarounds").
 */
const INVALID_FIXED = [6, 1] as const;

/** Whether the node's kernel can do it, and a bug of old ones that only iptables mode works around. */
export function kernelFindings({ before, after, seen }: ModeChange): readonly ModeFinding[] {
  const topic = "kernel";
  const { kernel } = seen;
  if (!hasTables(after) || kernel === undefined) return [];
  if (isOlder(kernel, NFTABLES_KERNEL)) {
    const advice = "nftables mode needs Linux 5.13; keep this node's mode, or update its kernel first";
    return [{ topic, state: "blocks", found: `Linux ${kernel}`, advice }];
  }
  const dropsInvalid = factsOfSide(before).packetCounters.invalidDropped !== undefined;
  const worksAround = dropsInvalid && !before.config.conntrack.tcpBeLiberal;
  if (!worksAround || !isOlder(kernel, INVALID_FIXED)) return [{ topic, state: "fits", found: `Linux ${kernel}` }];
  return [invalidFinding(kernel, seen.invalidPackets)];
}

function invalidFinding(kernel: string, packets: number | undefined): ModeFinding {
  const topic = "kernel";
  const counted =
    packets === undefined
      ? "kubeproxy_iptables_ct_state_invalid_dropped_packets_total counts such packets"
      : `${packets} such packets were dropped so far`;
  const found = `Linux ${kernel}: before 6.1 long connections may be reset; iptables mode drops the packets that cause it, and nftables mode does not; ${counted}`;
  if (packets === 0) return { topic, state: "fits", found };
  return { topic, state: "differs", found, advice: "set conntrack.tcpBeLiberal: true, which avoids it in every mode" };
}

function isOlder(release: string, [major, minor]: readonly [number, number]): boolean {
  const [, first, second] = /^(\d+)\.(\d+)/.exec(release) ?? [];
  if (first === undefined || second === undefined) return false;
  return Number(first) < major || (Number(first) === major && Number(second) < minor);
}
