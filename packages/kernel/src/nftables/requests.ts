import { AttributeWriter } from "@fairlead/netfilter/netlink";
import { FAMILY_NUMBERS, type Hex, type NftFamily, nftNumbers } from "@fairlead/netfilter/nft";
import { encodeRequest } from "../netlink/messages.ts";

const { CHAIN, ELEMENT, ELEMENTS, DATA_VALUE, FLAGS, LIST_ITEM, MESSAGES, RULE, SUBSYSTEM } = nftNumbers;

/** Attributes of a table's name in requests for it, its chains, rules and sets: the same number in each. */
const TABLE_NAME = 1;
/** NFPROTO_UNSPEC. */
const UNSPECIFIED = 0;

/** Asks for one object, or for all of a kind. */
export function encodeGet(message: keyof typeof MESSAGES, family: NftFamily, table?: string, dump = true): Buffer {
  const attributes = new AttributeWriter(64);
  if (table !== undefined) attributes.text(TABLE_NAME, table);
  return request(message, family, FLAGS.request | (dump ? FLAGS.dump : 0), attributes);
}

/** Asks for all tables, of any family. */
export function encodeGetTables(): Buffer {
  return requestOf("getTable", UNSPECIFIED, FLAGS.request | FLAGS.dump, new AttributeWriter(0));
}

/** Asks for one chain only. */
export function encodeGetChain(family: NftFamily, table: string, chain: string): Buffer {
  return request(
    "getChain",
    family,
    FLAGS.request,
    new AttributeWriter(128).text(TABLE_NAME, table).text(CHAIN.name, chain),
  );
}

/** Asks for all elements of a set. */
export function encodeDumpOfSet(family: NftFamily, table: string, set: string): Buffer {
  const attributes = new AttributeWriter(64).text(ELEMENTS.table, table).text(ELEMENTS.set, set);
  return request("getElement", family, FLAGS.request | FLAGS.dump, attributes);
}

/** Asks for all rules of a chain. */
export function encodeDumpOfChain(family: NftFamily, table: string, chain: string): Buffer {
  const attributes = new AttributeWriter(128).text(RULE.table, table).text(RULE.chain, chain);
  return request("getRule", family, FLAGS.request | FLAGS.dump, attributes);
}

/** Asks for the elements of these keys; the kernel answers ENOENT where one of them is not there. */
export function encodeLookUp(family: NftFamily, table: string, set: string, keys: readonly Hex[]): Buffer {
  const attributes = new AttributeWriter(4096).text(ELEMENTS.table, table).text(ELEMENTS.set, set);
  attributes.nest(ELEMENTS.list, (list) => {
    for (const key of keys) {
      list.nest(LIST_ITEM, (item) => item.nest(ELEMENT.key, (value) => value.hex(DATA_VALUE, key)));
    }
  });
  return request("getElement", family, FLAGS.request, attributes);
}

function request(
  message: keyof typeof MESSAGES,
  family: NftFamily,
  flags: number,
  attributes: AttributeWriter,
): Buffer {
  return requestOf(message, FAMILY_NUMBERS[family], flags, attributes);
}

function requestOf(
  message: keyof typeof MESSAGES,
  addressFamily: number,
  flags: number,
  attributes: AttributeWriter,
): Buffer {
  const type = (SUBSYSTEM << 8) | MESSAGES[message];
  return encodeRequest({ type, flags, addressFamily, attributes: attributes.bytes() });
}
