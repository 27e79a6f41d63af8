import { FAMILY_NUMBERS, type NftFamily } from "../family.ts";
import type { ExpressionKind } from "./kind.ts";
import { type Register, registerNumber, registerOf } from "./registers.ts";

/** Translates the destination, for the connection that the packet begins. */
export interface Nat {
  readonly kind: "nat";
  readonly family: NftFamily;
  /** Where the address is. */
  readonly address: Register;
  /** Where the port is; absent: it stays. */
  readonly port?: Register;
}

/** NFT_NAT_DNAT. */
const DNAT = 1;
const DATA = { type: 1, family: 2, addressMin: 3, addressMax: 4, portMin: 5, portMax: 6, flags: 7 } as const;
/** NF_NAT_RANGE_PROTO_SPECIFIED, which the kernel adds by itself where there is a port. */
const PORT_GIVEN = 0x2;
/** NF_NAT_RANGE_MAP_IPS, likewise. */
const ADDRESS_GIVEN = 0x1;

export const nat: ExpressionKind<Nat> = {
  name: "nat",
  encode({ family, address, port }, writer) {
    writer.u32(DATA.type, DNAT).u32(DATA.family, FAMILY_NUMBERS[family]).u32(DATA.addressMin, registerNumber(address));
    if (port !== undefined) writer.u32(DATA.portMin, registerNumber(port)).u32(DATA.flags, PORT_GIVEN);
  },
  decode(data) {
    const [address, port, flags = 0] = [data.u32(DATA.addressMin), data.u32(DATA.portMin), data.u32(DATA.flags)];
    const family = data.u32(DATA.family) === FAMILY_NUMBERS.ip ? "ip" : "ip6";
    if (data.u32(DATA.type) !== DNAT || address === undefined || (flags & ~(PORT_GIVEN | ADDRESS_GIVEN)) !== 0) {
      return undefined;
    }
    const ranged = (data.u32(DATA.addressMax) ?? address) !== address || (data.u32(DATA.portMax) ?? port) !== port;
    if (ranged) return undefined;
    return { kind: "nat", family, address: registerOf(address), ...(port !== undefined && { port: registerOf(port) }) };
  },
  print: ({ family, address, port }, printer) => printer.translate(family, address, port),
};
