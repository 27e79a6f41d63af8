import { bytesText } from "@fairlead/base";
import type { Attributes } from "../../netlink/reader.ts";
import { verdictIn } from "../expressions/immediate.ts";
import type { Verdict } from "../expressions/verdict.ts";
import { bytesOf } from "../hex.ts";
import { POLICIES, TRACE } from "./numbers.ts";

/** One step of a traced packet (`meta nftrace set 1`), as the kernel reports it (NFT_MSG_TRACE). */
export interface NftTraceEvent {
  /** The packet's, the same in all of its steps. */
  readonly id: number;
  /** NFPROTO_* of the table. */
  readonly family: number;
  /** The table's name. */
  readonly table: string;
  /** The chain's name. */
  readonly chain: string;
  /** rule: one that matched. return: the end of a chain that was jumped to. policy: the end of a base chain. */
  readonly kind: "rule" | "return" | "policy";
  /** Of the rule. */
  readonly handle?: bigint;
  /** Where the way goes on; absent: to a place that is not known here, such as a queue. */
  readonly verdict?: Verdict;
  /** At the first step in each base chain: what the packet is by then. */
  readonly packet?: TracedPacket;
}

/** A packet as far as its headers were reported. */
export interface TracedPacket {
  /** Numbers of network devices. */
  readonly inInterface?: number;
  /** As `inInterface`, of the device that it leaves by. */
  readonly outInterface?: number;
  /** Number of the transport protocol: 6 for TCP. */
  readonly protocol: number;
  /** Canonical address. */
  readonly source: string;
  /** Canonical address. */
  readonly destination: string;
  /** Of protocols that have ports. */
  readonly sport?: number;
  /** As `sport`, of the destination. */
  readonly dport?: number;
}

/** enum nft_trace_types. */
const KINDS: Readonly<Record<number, NftTraceEvent["kind"]>> = { 1: "policy", 2: "return", 3: "rule" };

/**
 * @param family of nfgenmsg
 * @returns undefined for a step of a kind that is not known, or of no rule
 */
export function decodeTrace(of: Attributes, family: number): NftTraceEvent | undefined {
  const kind = KINDS[of.u32(TRACE.type) ?? 0];
  const [id, table, chain] = [of.u32(TRACE.id), of.text(TRACE.table), of.text(TRACE.chain)];
  if (kind === undefined || id === undefined || table === undefined || chain === undefined) return undefined;
  const handle = of.u64(TRACE.handle);
  // Behind a chain's last rule that let the packet on the kernel reports a step of no rule.
  if (kind === "rule" && handle === undefined) return undefined;
  const verdict = kind === "policy" ? policyOf(of) : verdictIn(of.nested(TRACE.verdict));
  const packet = packetOf(of);
  return {
    id,
    family,
    table,
    chain,
    kind,
    ...(handle !== undefined && { handle }),
    ...(verdict !== undefined && { verdict }),
    ...(packet !== undefined && { packet }),
  };
}

function policyOf(of: Attributes): Verdict {
  return { kind: of.u32(TRACE.policy) === POLICIES.drop ? "drop" : "accept" };
}

/** Where the protocol and the addresses are in the headers of IP versions, and how long an address is. */
const HEADERS: Readonly<Record<number, { protocol: number; source: number; length: number }>> = {
  4: { protocol: 9, source: 12, length: 4 },
  6: { protocol: 6, source: 8, length: 16 },
};
/** TCP, UDP, UDP-Lite, SCTP. */
const WITH_PORTS: ReadonlySet<number> = new Set([6, 17, 132, 136]);

function packetOf(of: Attributes): TracedPacket | undefined {
  const network = bytesOf(of.hex(TRACE.network) ?? "");
  const header = HEADERS[(network[0] ?? 0) >> 4];
  if (header === undefined || network.length < header.source + 2 * header.length) return undefined;
  const addressAt = (start: number) => bytesText(network.slice(start, start + header.length));
  const protocol = network[header.protocol] ?? 0;
  const [inInterface, outInterface] = [of.u32(TRACE.inInterface), of.u32(TRACE.outInterface)];
  return {
    ...(inInterface !== undefined && { inInterface }),
    ...(outInterface !== undefined && { outInterface }),
    protocol,
    source: addressAt(header.source),
    destination: addressAt(header.source + header.length),
    ...(WITH_PORTS.has(protocol) && portsIn(bytesOf(of.hex(TRACE.transport) ?? ""))),
  };
}

function portsIn([a, b, c, d]: ArrayLike<number> & Iterable<number>): Pick<TracedPacket, "sport" | "dport"> {
  if (a === undefined || b === undefined || c === undefined || d === undefined) return {};
  return { sport: (a << 8) | b, dport: (c << 8) | d };
}
