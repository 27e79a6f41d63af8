/** Transport protocols as nft prints them; others are numbers. */
export const PROTOCOLS: Readonly<Record<string, number>> = { icmp: 1, tcp: 6, udp: 17, "ipv6-icmp": 58, sctp: 132 };

export function protocolName(number: number): string {
  return Object.entries(PROTOCOLS).find(([, known]) => known === number)?.[0] ?? String(number);
}

/** NF_CT_STATE_BIT of each state (linux/netfilter/nf_conntrack_common.h). */
export const CT_STATES: Readonly<Record<string, number>> = {
  invalid: 0x1,
  established: 0x2,
  related: 0x4,
  new: 0x8,
  untracked: 0x40,
};

/** enum ip_conntrack_status of the same header. */
export const CT_STATUSES: Readonly<Record<string, number>> = {
  expected: 0x1,
  "seen-reply": 0x2,
  assured: 0x4,
  confirmed: 0x8,
  snat: 0x10,
  dnat: 0x20,
  dying: 0x200,
};

/** Bits of a TCP header's flags. */
export const TCP_FLAGS: Readonly<Record<string, number>> = {
  fin: 0x1,
  syn: 0x2,
  rst: 0x4,
  psh: 0x8,
  ack: 0x10,
  urg: 0x20,
  ecn: 0x40,
  cwr: 0x80,
};

export const tcpFlagsText = (bits: number): string => (bits === 0 ? "0x0" : bitsText(TCP_FLAGS, bits));
export const ctStateText = (bits: number): string => bitsText(CT_STATES, bits);
export const ctStatusText = (bits: number): string => bitsText(CT_STATUSES, bits);

function bitsText(names: Readonly<Record<string, number>>, bits: number): string {
  const known = Object.entries(names).filter(([, bit]) => (bits & bit) !== 0);
  const rest = known.reduce((left, [, bit]) => left & ~bit, bits);
  return [...known.map(([name]) => name), ...(rest === 0 ? [] : [`0x${rest.toString(16)}`])].join(",");
}
