import { addressHex, type DataType, type Expression, type Hex, lengthOf, portHex } from "@fairlead/netfilter/nft";

/** An address or a port, as tables of nftables know packets by them. */
export type Mark = string;

const markOfAddress = (hex: Hex): Mark => `a${hex}`;
const markOfPort = (hex: Hex): Mark => `p${hex}`;

export const addressMark = (address: string): Mark => markOfAddress(addressHex(address));
export const portMark = (port: number): Mark => markOfPort(portHex(port));

/** Those in a key or a value. */
export function marksIn(types: readonly DataType[], hex: Hex): { addresses: readonly Mark[]; ports: readonly Mark[] } {
  const [addresses, ports]: [Mark[], Mark[]] = [[], []];
  let at = 0;
  for (const type of types) {
    const part = hex.slice(at, at + 2 * lengthOf([type]));
    if (type === "ipv4_addr" || type === "ipv6_addr") addresses.push(markOfAddress(part));
    if (type === "inet_service") ports.push(markOfPort(part));
    // Parts begin at multiples of four bytes.
    at += Math.ceil(part.length / 8) * 8;
  }
  return { addresses, ports };
}

/** What a constant may be that a rule translates to: an address, a port, or both of the same bytes. */
export function marksOfConstant(expression: Expression): readonly Mark[] {
  if (expression.kind !== "immediate" || !("value" in expression)) return [];
  return [markOfAddress(expression.value), markOfPort(expression.value.slice(0, 4))];
}
