import { bytesText } from "@fairlead/base";
import type { IPFamily } from "@fairlead/core";
import {
  bytesOf,
  type DataType,
  type Expression,
  type Hex,
  IP_FAMILY,
  lengthOf,
  type NftTable,
} from "@fairlead/netfilter/nft";
import { type Destination, protocolText } from "./destination.ts";

type Field = "address" | "protocol" | "port";

/** What a rule asks of the packets that it is for, by field. */
type DestinationMatch = Readonly<Partial<Record<Field, Hex>>>;

/** Where the destination address is in the header. */
const ADDRESSES = { ip: { offset: 16, length: 4 }, ip6: { offset: 24, length: 16 } } as const;

/**
 * Addresses and ports that rules compare packets with, by themselves or in sets; ports with no address are the node's.
 * What a map leads on is in its elements, not here.
 */
export function* destinationsInRules(table: NftTable, of: IPFamily): Generator<Destination> {
  if (IP_FAMILY[table.family] !== of) return;
  for (const { rules } of table.chains.values()) {
    for (const { expressions } of rules) {
      for (const { address, protocol, port } of askedBy(expressions, table)) {
        if (port === undefined) continue;
        yield {
          protocol: protocol === undefined ? "tcp" : protocolText(protocol),
          port: Number.parseInt(port, 16),
          ...(address !== undefined && { address: bytesText(bytesOf(address)) }),
        };
      }
    }
  }
}

/** Several where a set has several elements. */
function askedBy(expressions: readonly Expression[], table: NftTable): readonly DestinationMatch[] {
  const fields = new Map<number, Field>();
  let asked: readonly DestinationMatch[] = [{}];
  for (const one of expressions) {
    const more = alternatives(one, fields, table);
    if (more.length > 0) asked = asked.flatMap((before) => more.map((part) => ({ ...before, ...part })));
    if (!("to" in one) || typeof one.to !== "number") continue;
    const field = one.kind === "payload" || one.kind === "meta" ? fieldOf(one, table) : undefined;
    if (field === undefined) fields.delete(one.to);
    else fields.set(one.to, field);
  }
  return asked;
}

/** What an expression asks of the fields that were loaded; none where it asks for nothing that is looked for here. */
function alternatives(
  one: Expression,
  fields: ReadonlyMap<number, Field>,
  { sets }: Pick<NftTable, "sets">,
): readonly DestinationMatch[] {
  if (one.kind === "cmp") {
    const field = one.operator === "==" ? fields.get(one.from) : undefined;
    return field === undefined ? [] : [{ [field]: one.value }];
  }
  if (one.kind !== "lookup" || one.to !== undefined || one.inverted) return [];
  const set = sets.get(one.set);
  if (set === undefined) return [];
  const elements = [...set.elements.values()].filter(({ intervalEnd }) => !intervalEnd);
  return elements.map(({ key }) => partsOf(set.key, key, one.from, fields));
}

function fieldOf(one: Extract<Expression, { readonly kind: "payload" | "meta" }>, { family }: NftTable) {
  if (one.kind === "meta") return one.key === "l4proto" ? "protocol" : undefined;
  const { base, offset, length } = one;
  if (base === "transport") return offset === 2 && length === 2 ? "port" : undefined;
  const address = ADDRESSES[family];
  return offset === address.offset && length === address.length ? "address" : undefined;
}

function partsOf(
  types: readonly DataType[],
  key: Hex,
  from: number,
  fields: ReadonlyMap<number, Field>,
): DestinationMatch {
  const asked: Partial<Record<Field, Hex>> = {};
  let at = 0;
  for (const type of types) {
    const length = lengthOf([type]);
    const field = fields.get(from + at / 4);
    if (field !== undefined) asked[field] = key.slice(2 * at, 2 * (at + length));
    at += Math.ceil(length / 4) * 4;
  }
  return asked;
}
