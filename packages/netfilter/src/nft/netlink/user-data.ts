import type { NftFamily } from "../family.ts";
import { bytesOf, type Hex, hexOf } from "../hex.ts";
import type { NftSet } from "../model.ts";
import type { DataType } from "../types.ts";

/**
 * What `nft` keeps with an object in the kernel, which hands it back unread: attributes of one byte each for type and
 * length (libnftnl's udata.h). Numbers are in the byte order of the machine, of which those that have kernels with
 * these tools are little-endian.
 */
type Field = readonly [type: number, content: Hex];

function fields(...list: readonly Field[]): Hex {
  return list.map(([type, content]) => hexOf([type, content.length / 2]) + content).join("");
}

function number(value: number): Hex {
  return hexOf([value & 0xff, (value >>> 8) & 0xff, (value >>> 16) & 0xff, value >>> 24]);
}

const COMMENT = { table: 0, chain: 0, rule: 0, element: 0, set: 7 } as const;

/** Longest comment that nft takes, bytes without its zero byte (NFTNL_UDATA_COMMENT_MAXLEN). */
const LONGEST_COMMENT = 128;

/** A comment as the field of an object; what is longer than nft takes is cut. */
export function commentData(of: keyof typeof COMMENT, comment: string): Hex {
  const bytes = new TextEncoder().encode(comment).subarray(0, LONGEST_COMMENT);
  return fields([COMMENT[of], `${hexOf(bytes)}00`]);
}

/** The comment in an object's user data; undefined where there is none. */
export function commentOf(of: keyof typeof COMMENT, data: Hex | undefined): string | undefined {
  const bytes = bytesOf(data ?? "");
  for (let at = 0; at + 2 <= bytes.length; at += 2 + (bytes[at + 1] ?? 0)) {
    if (bytes[at] !== COMMENT[of]) continue;
    const content = bytes.subarray(at + 2, at + 2 + (bytes[at + 1] ?? 0));
    const end = content.indexOf(0);
    return new TextDecoder().decode(end < 0 ? content : content.subarray(0, end));
  }
  return undefined;
}

/** enum nftnl_udata_set_types. */
const SET = { keyByteOrder: 0, dataByteOrder: 1, keyTypeof: 3, dataTypeof: 4, dataInterval: 6 } as const;
/** enum byteorder of nft. */
const BYTE_ORDER = { unknown: 0, host: 1 } as const;

/**
 * What a set needs alongside its types to be printed as it was meant. Keys that numgen draws are numbers of the
 * machine's byte order (else slot 1 is printed as 16777216); concatenations that have one get the expressions of which
 * they are made.
 */
export function setUserData(
  { key, data, comment, flags }: Pick<NftSet, "key" | "data" | "comment" | "flags">,
  family: NftFamily,
): Hex {
  const remark = comment === undefined ? "" : commentData("set", comment);
  if (!key.includes("integer")) return remark;
  if (flags.includes("anonymous")) {
    const order = fields([SET.keyByteOrder, number(BYTE_ORDER.host)], [SET.dataByteOrder, number(BYTE_ORDER.unknown)]);
    return order + fields([SET.dataInterval, number(0)]) + remark;
  }
  const values: readonly Field[] =
    data === undefined
      ? []
      : [[SET.dataTypeof, data === "verdict" ? expression(EXPRESSIONS.verdict, "") : typeOf(data, family)]];
  return (
    fields(
      [SET.keyByteOrder, number(key.length === 1 ? BYTE_ORDER.host : BYTE_ORDER.unknown)],
      [SET.dataByteOrder, number(BYTE_ORDER.unknown)],
      [SET.keyTypeof, typeOf(key, family)],
      ...values,
      [SET.dataInterval, number(0)],
    ) + remark
  );
}

/** enum expr_types of nft. */
const EXPRESSIONS = { verdict: 1, payload: 7, meta: 9, concat: 13, numgen: 23 } as const;
/** enum proto_desc_id, and the place of the field in the protocol's template. */
const PAYLOADS = {
  ip: { protocol: 12, daddr: 12 },
  ip6: { protocol: 13, daddr: 9 },
  // "th" for what a map gives, and nft 1.0.6 takes no rule for a table that has such a map.
  tcp: { protocol: 8, dport: 2 },
} as const;
const META_L4PROTO = 16;
/** Any modulus does: it is only of which kind the number is. */
const NUMGEN = { random: 1, modulus: 0x1_0000 } as const;

function typeOf(types: readonly DataType[], family: NftFamily): Hex {
  const [only] = types;
  if (only !== undefined && types.length === 1) return part(only, family);
  const parts = types.map((type, at): Field => [at, part(type, family)]);
  return expression(EXPRESSIONS.concat, fields(...parts));
}

function expression(type: number, content: Hex): Hex {
  return fields([0, number(type)], [1, content]);
}

function part(type: DataType, family: NftFamily): Hex {
  switch (type) {
    case "ipv4_addr":
    case "ipv6_addr":
      return payload(PAYLOADS[family].protocol, PAYLOADS[family].daddr);
    case "inet_service":
      return payload(PAYLOADS.tcp.protocol, PAYLOADS.tcp.dport);
    case "inet_proto":
      return expression(EXPRESSIONS.meta, fields([0, number(META_L4PROTO)]));
    case "integer":
      return expression(
        EXPRESSIONS.numgen,
        fields([0, number(NUMGEN.random)], [1, number(NUMGEN.modulus)], [2, number(0)]),
      );
    default:
      throw new RangeError(`a set's key with a number that was drawn can't have ${type} in it`);
  }
}

function payload(protocol: number, field: number): Hex {
  return expression(EXPRESSIONS.payload, fields([0, number(protocol)], [1, number(field)]));
}
