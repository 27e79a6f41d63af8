import { parseAddressLeniently } from "@fairlead/base";
import { addressHex, type Hex, hexOf, hostHex, padded, portHex } from "../hex.ts";
import { DATA_TYPES, type DataType } from "../types.ts";
import { CT_STATES, PROTOCOLS, TCP_FLAGS } from "../words.ts";

/** What a listing has that is not known here; the part that has it is kept as its text. */
export class NotKnown extends Error {
  override readonly name = "NotKnown";
}

/** Values by how nft writes them, the reverse of `DATA_TYPES`' `text`. */
const READERS: Readonly<Record<DataType, (text: string) => Hex | undefined>> = {
  ipv4_addr: (text) => (familyOf(text) === "IPv4" ? addressHex(text) : undefined),
  ipv6_addr: (text) => (familyOf(text) === "IPv6" ? addressHex(text) : undefined),
  inet_proto: (text) => number(PROTOCOLS[text] ?? text, 0xff, (value) => hexOf([value])),
  inet_service: (text) => number(text, 0xffff, portHex),
  tcp_flag: (text) => flagsHex(text),
  mark: (text) => number(text, 0xffff_ffff, hostHex),
  integer: (text) => number(text, 0xffff_ffff, hostHex),
  ct_state: (text) => number(CT_STATES[text] ?? text, 0xffff_ffff, hostHex),
  ifname: (text) => nameHex(text),
};

/** @throws NotKnown when it is no value of these types */
export function valueHex(types: readonly DataType[], text: string): Hex {
  const parts = text.split(" . ");
  const [first] = types;
  if (parts.length !== types.length || first === undefined) throw new NotKnown(text);
  const hexes = types.map((type, at) => {
    const hex = READERS[type](parts[at] ?? "");
    if (hex === undefined) throw new NotKnown(text);
    return hex;
  });
  return types.length === 1 ? hexes.join("") : hexes.map(padded).join("");
}

function isDataType(name: string): name is DataType {
  return Object.hasOwn(DATA_TYPES, name);
}

/** @throws NotKnown for types that are not known here */
export function dataTypes(names: readonly string[]): readonly DataType[] {
  return names.map((name) => {
    if (!isDataType(name)) throw new NotKnown(name);
    return name;
  });
}

function familyOf(text: string) {
  return parseAddressLeniently(text)?.family;
}

function number(text: string | number, most: number, hex: (value: number) => Hex): Hex | undefined {
  const value = typeof text === "number" ? text : /^(0x[\da-f]+|\d+)$/i.test(text) ? Number(text) : undefined;
  return value === undefined || value > most ? undefined : hex(value);
}

/** `syn,ack`, or as the elements of a set have it, `syn | ack`. */
function flagsHex(text: string): Hex | undefined {
  const bits = text.split(/,| \| /).map((name) => TCP_FLAGS[name]);
  const known = bits.filter((bit) => bit !== undefined);
  if (known.length < bits.length) return number(text, 0xff, (value) => hexOf([value]));
  return hexOf([known.reduce((all, bit) => all | bit, 0)]);
}

function nameHex(text: string): Hex | undefined {
  const bytes = new TextEncoder().encode(text);
  return bytes.length > DATA_TYPES.ifname.length ? undefined : hexOf(bytes).padEnd(2 * DATA_TYPES.ifname.length, "0");
}
