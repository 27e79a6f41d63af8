import type { ExpressionKind } from "./kind.ts";

/** Ends the packet with an ICMP error or, where asked for, a TCP reset. */
export interface Reject {
  readonly kind: "reject";
  readonly with: "port-unreachable" | "tcp-reset";
  /** ICMP's code of "port unreachable": 3 in IPv4, 4 in IPv6. */
  readonly code: number;
}

/** enum nft_reject_types: NFT_REJECT_ICMP_UNREACH and NFT_REJECT_TCP_RST. */
const TYPES = { "port-unreachable": 0, "tcp-reset": 1 } as const;
const DATA = { type: 1, code: 2 } as const;

export const reject: ExpressionKind<Reject> = {
  name: "reject",
  encode(expression, writer) {
    writer.u32(DATA.type, TYPES[expression.with]);
    if (expression.with === "port-unreachable") writer.u8(DATA.code, expression.code);
  },
  decode(data, family) {
    const type = data.u32(DATA.type);
    if (type === TYPES["tcp-reset"]) return { kind: "reject", with: "tcp-reset", code: 0 };
    const code = data.u8(DATA.code) ?? 0;
    const known = type === TYPES["port-unreachable"] && code === PORT_UNREACHABLE[family];
    return known ? { kind: "reject", with: "port-unreachable", code } : undefined;
  },
  print: (expression, printer) => printer.say(expression.with === "tcp-reset" ? "reject with tcp reset" : "reject"),
};

/** ICMP_PORT_UNREACH and ICMPV6_PORT_UNREACH. */
export const PORT_UNREACHABLE = { ip: 3, ip6: 4 } as const;
