import type { Attributes } from "@fairlead/netfilter/netlink";
import {
  decodeChain,
  decodeFlowtable,
  decodeRule,
  decodeSet,
  isDormant,
  type NftChain,
  type NftFamily,
  type NftRule,
  type NftSet,
  type NftTable,
  nftNumbers,
  tableCommentOf,
  UnreadableNft,
} from "@fairlead/netfilter/nft";
import { NetlinkError } from "../netlink/error.ts";
import type { NetlinkSocket } from "../netlink/socket.ts";
import { withElements } from "./elements.ts";
import { exchange } from "./exchange.ts";
import { attributes, listing } from "./listing.ts";
import { encodeGet } from "./requests.ts";

/** How what is not known here is taken. */
export interface Strictness {
  readonly chain: typeof decodeChain;
  readonly rule: typeof decodeRule;
  /** @returns none: it is left out */
  readonly set: (of: Attributes) => readonly Omit<NftSet, "elements">[];
  readonly elements: typeof withElements;
}

const STRICT: Strictness = {
  chain: decodeChain,
  rule: decodeRule,
  set: (of) => [decodeSet(of)],
  elements: withElements,
};

/** `NftablesClient.table` */
export function readTable(socket: NetlinkSocket, family: NftFamily, name: string): Promise<NftTable | undefined> {
  return readTableWith(STRICT, socket, family, name);
}

/** @returns undefined when there is no such table */
export async function readTableWith(
  { chain, rule, set, elements }: Strictness,
  socket: NetlinkSocket,
  family: NftFamily,
  name: string,
): Promise<NftTable | undefined> {
  const title = await titleOfTable(socket, family, name);
  if (title === undefined) return undefined;
  const all = <T>(
    what: "getChain" | "getRule" | "getSet" | "getFlowtable",
    tableAt: number,
    decode: (of: Attributes) => readonly T[],
  ) =>
    listing(socket, encodeGet(what, family, name), `reading table ${family} ${name}`, (of) =>
      of.text(tableAt) === name ? decode(of) : [],
    );
  const chains = await all("getChain", nftNumbers.CHAIN.table, (of) => [chain(of)]);
  const rules = await all("getRule", nftNumbers.RULE.table, (of) => [rule(of, family)]);
  const sets = await all("getSet", nftNumbers.SET.table, set);
  const flowtables = await all("getFlowtable", nftNumbers.FLOWTABLE.table, (of) => [decodeFlowtable(of)]);
  return {
    family,
    name,
    ...title,
    chains: withRules(chains, rules),
    sets: await elements(socket, family, name, sets),
    ...(flowtables.length > 0 && { flowtables: new Map(flowtables.map((one) => [one.name, one])) }),
  };
}

/** `NftablesClient.sets` */
export async function readSets(
  socket: NetlinkSocket,
  family: NftFamily,
  table: string,
  wanted: (set: Omit<NftSet, "elements">) => boolean,
): Promise<ReadonlyMap<string, NftSet>> {
  // Of a table that is not there the kernel lists nothing, or says so.
  if ((await titleOfTable(socket, family, table)) === undefined) return new Map();
  const request = encodeGet("getSet", family, table);
  const sets = await listing(socket, request, `reading the sets of table ${family} ${table}`, (of) =>
    of.text(nftNumbers.SET.table) === table ? knownSet(of) : [],
  );
  return withElements(socket, family, table, sets.filter(wanted));
}

/** @returns none where its types are not known here */
function knownSet(of: Attributes): readonly Omit<NftSet, "elements">[] {
  try {
    return [decodeSet(of)];
  } catch (error) {
    if (error instanceof UnreadableNft) return [];
    throw error;
  }
}

/** @returns undefined: there is no such table */
async function titleOfTable(
  socket: NetlinkSocket,
  family: NftFamily,
  name: string,
): Promise<Pick<NftTable, "comment" | "dormant"> | undefined> {
  for (const { reply, bytes } of await exchange(socket, encodeGet("getTable", family, name, false))) {
    if (reply.kind === "data") {
      const of = attributes(bytes, reply.attributes);
      const comment = tableCommentOf(of);
      return { ...(comment !== undefined && { comment }), ...(isDormant(of) && { dormant: true }) };
    }
    if (reply.kind !== "result" || reply.errno === 0) continue;
    const error = new NetlinkError(`reading table ${family} ${name}`, reply.errno);
    if (error.code === "ENOENT") return undefined;
    throw error;
  }
  throw new Error(`netlink: no reply about table ${family} ${name}`);
}

function withRules(
  chains: readonly Omit<NftChain, "rules">[],
  rules: readonly { readonly chain: string; readonly rule: NftRule }[],
): NftTable["chains"] {
  const byChain = Map.groupBy(rules, ({ chain }) => chain);
  return new Map(
    chains.map((chain) => [chain.name, { ...chain, rules: (byChain.get(chain.name) ?? []).map(({ rule }) => rule) }]),
  );
}
