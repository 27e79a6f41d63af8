import type { ReplyViaSettings } from "@fairlead/config";
import { type BaseChain, type NftBatch, type NftRule, type NftTable, statements } from "@fairlead/netfilter/nft";
import type { Uplink } from "./uplinks.ts";

/** NF_IP_PRI_MANGLE: behind connection tracking, before routing and translation. */
const MANGLE = -150;

/** Behind NF_IP_PRI_NAT_DST, before routing: what routing reports of a first packet has its connection's mark. */
const TRANSLATED = -90;

/** The chains of the table, by name. */
export type ReplyChains = ReadonlyMap<string, { readonly base: BaseChain; readonly rules: readonly NftRule[] }>;

/**
 * The same in both families. The first packet from outside gives its connection the mark of the interface; answers get
 * it as their own before they are routed.
 *
 * @param translates whether the mode translates by DNAT, so that other connections stay as they are; else all that come
 *   to the node itself get a mark as well: IPVS takes what is for services from there
 */
export function replyChains(
  uplinks: readonly Uplink[],
  { markMask }: Pick<ReplyViaSettings, "markMask">,
  translates: boolean,
): ReplyChains {
  const { answer, connectionMarkIs, interfaceIs, newConnection, translatedConnection } = statements;
  const { setConnectionMark, setMarkWithin } = statements;
  const marking = (which: NftRule["expressions"]) =>
    uplinks.map(({ interface: name, mark }): NftRule => {
      const arriving = [...interfaceIs("iifname", name), ...newConnection, ...which];
      return { expressions: [...arriving, ...setConnectionMark(mark, markMask)] };
    });
  const restoring = uplinks.map(({ mark }): NftRule => {
    const answering = [...answer, ...connectionMarkIs(mark, markMask)];
    return { expressions: [...answering, ...setMarkWithin(mark, markMask)] };
  });
  const base = (type: BaseChain["type"], hook: BaseChain["hook"], priority = MANGLE): BaseChain => ({
    type,
    hook,
    priority,
    policy: "accept",
  });
  return new Map([
    ["translated", { base: base("filter", "prerouting", TRANSLATED), rules: marking(translatedConnection) }],
    ...(translates ? [] : [["input", { base: base("filter", "input"), rules: marking([]) }] as const]),
    ["prerouting", { base: base("filter", "prerouting"), rules: restoring }],
    // Of type route: a mark that is set here routes the packet again.
    ["output", { base: base("route", "output"), rules: restoring }],
  ]);
}

/** Has the table made anew, whatever is there, in one transaction. */
export function writeChains(batch: NftBatch, chains: ReplyChains): NftBatch {
  batch.addTable().deleteTable().addTable("answers leave by the interface that the client came in by");
  for (const [name, { base }] of chains) batch.addChain({ name, base });
  for (const [name, { rules }] of chains) for (const rule of rules) batch.addRule(name, rule);
  return batch;
}

/** Whether a table has just these chains. */
export function hasChains(table: NftTable, chains: ReplyChains): boolean {
  const plain = (rules: readonly NftRule[]) => rules.map(({ expressions }) => expressions);
  const text = (all: Iterable<readonly [string, { readonly base?: BaseChain; readonly rules: readonly NftRule[] }]>) =>
    JSON.stringify(
      [...all].map(([name, { base, rules }]) => [name, base?.type, base?.hook, base?.priority, plain(rules)]).sort(),
    );
  return table.dormant === undefined && text(table.chains) === text(chains);
}
