import type { Attributes } from "../../netlink/reader.ts";
import { registerOf, VERDICT_REGISTER } from "../expressions/registers.ts";
import type { Unknown } from "../expressions/unknown.ts";

/** What is known of a kind of expressions that has no type here, by the kernel's name. */
interface ForeignKind {
  /** NFTA_*_DREG: where it leaves what it finds. */
  readonly to?: number;
  /** It only lets the packet on, or only says yes or no. */
  readonly effect?: Unknown["effect"];
  /** The attribute with a name that says more: an extension of iptables. */
  readonly named?: number;
}

/** linux/netfilter/nf_tables.h, and nf_tables_compat.h for `match` and `target`. */
const KINDS: ReadonlyMap<string, ForeignKind> = new Map<string, ForeignKind>([
  ["bitwise", { to: 2 }],
  ["byteorder", { to: 2 }],
  ["connlimit", { effect: "test" }],
  ["ct", { to: 1 }],
  ["exthdr", { to: 1 }],
  ["fib", { to: 1 }],
  ["hash", { to: 2 }],
  ["last", { effect: "none" }],
  ["limit", { effect: "test" }],
  ["log", { effect: "none" }],
  ["match", { effect: "test", named: 1 }],
  ["meta", { to: 1 }],
  ["numgen", { to: 1 }],
  ["osf", { to: 1 }],
  ["payload", { to: 1 }],
  ["quota", { effect: "test" }],
  ["range", { effect: "test" }],
  ["rt", { to: 1 }],
  ["socket", { to: 2 }],
  ["target", { named: 1 }],
  ["tunnel", { to: 2 }],
  ["xfrm", { to: 1 }],
]);

/** enum nft_meta_keys: setting them changes nothing that rules ask for (priority, pkttype). */
const META = { key: 2, harmless: new Set<number | undefined>([2, 19]) } as const;

/**
 * An expression of another program's rule that has no type here, as much as is known of it: its name, where it leaves a
 * value, and whether it can do anything else than let the packet on.
 *
 * @param data absent: the kernel says nothing but the name
 */
export function foreignExpression(name: string, data: Attributes | undefined): Unknown {
  const { to, effect, named } = KINDS.get(name) ?? {};
  const more = named === undefined ? undefined : data?.text(named);
  const text = `[ ${more === undefined ? name : `${name} ${more}`} ]`;
  const register = to === undefined ? undefined : data?.u32(to);
  if (register !== undefined && register !== VERDICT_REGISTER) {
    return { kind: "unknown", text, effect: "none", to: registerOf(register) };
  }
  const harmless = name === "meta" && META.harmless.has(data?.u32(META.key));
  const known = harmless ? "none" : effect;
  return { kind: "unknown", text, ...(known !== undefined && { effect: known }) };
}
