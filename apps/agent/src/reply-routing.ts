/** Keeps answers on the interface that their client came in by. */

import { attemptAll, errorChainText, errorCode, IP_FAMILIES, type IPFamily, sleep, type Timers } from "@fairlead/base";
import { mostUplinks, REPLY_TABLE, type ReplyViaSettings } from "@fairlead/config";
import type {
  MarkRule,
  NftablesClient,
  RouteEntry,
  Routing,
  RoutingCommand,
  RoutingState,
  TableRoute,
} from "@fairlead/kernel";
import { type BaseChain, NFT_FAMILY, NftBatch, type NftRule, type NftTable, statements } from "@fairlead/netfilter/nft";
import type { Log } from "./log.ts";

interface ReplyRoutingParts {
  readonly settings: ReplyViaSettings;
  readonly families: readonly IPFamily[];
  /** As `replyChains` has it. */
  readonly translates: boolean;
  readonly routing: Routing;
  readonly nftables: Pick<NftablesClient, "commit" | "table">;
  /** Milliseconds between two looks whether all is as it has to be. */
  readonly intervalMs: number;
  readonly timers: Timers;
  readonly log: Log;
}

/** An interface that answers leave by when their client came in by it. */
interface Uplink {
  readonly interface: string;
  /** The connection mark of its clients, within the mask. */
  readonly mark: number;
  readonly table: number;
  /** Whether the table is Fairlead's, which copies the routes of the table `main` by that interface. */
  readonly ours: boolean;
}

/** Keeps answers on the interface that their client came in by. */
export class ReplyRouting {
  readonly #parts: ReplyRoutingParts;
  readonly #numbers = new Map<string, number>();
  #uplinks: readonly Uplink[] = [];
  #said = "";

  constructor(parts: ReplyRoutingParts) {
    this.#parts = parts;
  }

  /** Writes and compares until the signal aborts; what was written stays. Failures are logged. */
  async run(signal: AbortSignal): Promise<void> {
    const { timers, intervalMs } = this.#parts;
    let wake = () => {};
    const watching = this.#watch(signal, () => wake());
    while (!signal.aborted) {
      const changed = new AbortController();
      wake = () => changed.abort();
      await this.#attempt();
      await sleep(timers, intervalMs, AbortSignal.any([signal, changed.signal]));
    }
    await watching;
  }

  /** Writes what differs. Of what cannot be written all else is: other routes, the marks, the other family. */
  async sync(): Promise<void> {
    const { settings, families, routing } = this.#parts;
    const states = new Map<IPFamily, RoutingState>();
    for (const family of families) states.set(family, await routing.read(family));
    this.#remember(states);
    const main = [...states.values()].flatMap((state) => state.main);
    const { uplinks, leftOut } = chooseUplinks(settings, main, this.#numbers);
    this.#uplinks = uplinks;
    this.#report(uplinks, leftOut);
    const works = [...states].flatMap(([family, state]) => [
      () => routing.write(family, routingCommands(uplinks, settings, state)),
      () => this.#mark(family, uplinks),
    ]);
    await attemptAll(works, "");
  }

  /** What an earlier process gave: connections have its marks. */
  #remember(states: ReadonlyMap<IPFamily, RoutingState>): void {
    if (this.#numbers.size > 0) return;
    const { firstTable } = this.#parts.settings;
    for (const { own } of states.values()) {
      for (const route of own)
        if (route.table >= firstTable) this.#numbers.set(route.interface, route.table - firstTable);
    }
  }

  async #mark(family: IPFamily, uplinks: readonly Uplink[]): Promise<void> {
    const { settings, translates, nftables } = this.#parts;
    const chains = replyChains(uplinks, settings, translates);
    const there = await nftables.table(NFT_FAMILY[family], REPLY_TABLE).catch(() => undefined);
    if (there !== undefined && hasChains(there, chains)) return;
    await nftables.commit(writeChains(new NftBatch(NFT_FAMILY[family], REPLY_TABLE), chains));
  }

  async #attempt(): Promise<void> {
    const { log, intervalMs } = this.#parts;
    try {
      // A link that goes between the look and the write has its routes refused: a second look does not see them.
      await this.sync().catch(() => this.sync());
    } catch (error) {
      log.error("Failed to write reply routing; answers may leave by another interface, retrying", {
        error: errorChainText(error),
        seconds: intervalMs / 1000,
      });
    }
  }

  async #watch(signal: AbortSignal, wake: () => void): Promise<void> {
    const { routing, log, intervalMs } = this.#parts;
    const matters = (name: string) => this.#uplinks.some((uplink) => uplink.interface === name);
    try {
      for await (const _ of routing.watch({ signal, matters })) wake();
    } catch (error) {
      log.warn("Cannot follow routes; changes take effect at the next comparison", {
        error: errorChainText(error),
        seconds: intervalMs / 1000,
      });
    }
  }

  #report(uplinks: readonly Uplink[], leftOut: readonly string[]): void {
    const { log } = this.#parts;
    const names = uplinks.map((uplink) => uplink.interface);
    const said = JSON.stringify([names, leftOut]);
    if (said === this.#said) return;
    this.#said = said;
    log.info("Answers leave by the interface that their client came in by", { interfaces: names });
    if (leftOut.length === 0) return;
    log.warn("replyRouting.markMask has too few bits; answers to clients of these interfaces leave as routed", {
      interfaces: leftOut,
    });
  }
}

/**
 * Removes marks, rules and routes of both families.
 *
 * @param nftables absent: there are no marks
 * @returns whether there was anything
 * @throws Error when something cannot be removed
 */
export async function removeReplyRouting(
  routing: Pick<Routing, "read" | "write">,
  nftables: Pick<NftablesClient, "commit"> | undefined,
): Promise<boolean> {
  let found = false;
  for (const family of IP_FAMILIES) {
    const commands = removal(await routing.read(family));
    await routing.write(family, commands);
    found ||= commands.length > 0;
    try {
      await nftables?.commit(new NftBatch(NFT_FAMILY[family], REPLY_TABLE).deleteTable());
      found ||= nftables !== undefined;
    } catch (error) {
      if (errorCode(error) !== "ENOENT") throw error;
    }
  }
  return found;
}

interface ChosenUplinks {
  readonly uplinks: readonly Uplink[];
  /** Interfaces for which the mask has no mark left. */
  readonly leftOut: readonly string[];
}

/**
 * The uplinks that there are now. A number once given stays an interface's until another interface needs it, so that
 * connections keep their way when an interface goes and returns.
 *
 * @param main the routes of both families
 * @param numbers of interfaces that had one; it is kept up
 */
export function chooseUplinks(
  settings: ReplyViaSettings,
  main: readonly RouteEntry[],
  numbers: Map<string, number>,
): ChosenUplinks {
  const { uplinks, markMask, firstTable } = settings;
  if (uplinks !== "auto") {
    const listed = uplinks.map(({ interface: name, table }, at): Uplink => {
      const mark = markOf(at, markMask);
      return { interface: name, mark, table: table ?? firstTable + at, ours: table === undefined };
    });
    return { uplinks: listed, leftOut: [] };
  }
  const names = [...new Set(main.filter(isDefault).map((route) => route.interface))].sort();
  const most = mostUplinks(markMask);
  const leftOut = names.filter((name) => !giveNumber(name, names, numbers, most));
  const chosen = names.flatMap((name): Uplink[] => {
    const at = numbers.get(name);
    return at === undefined
      ? []
      : [{ interface: name, mark: markOf(at, markMask), table: firstTable + at, ours: true }];
  });
  return { uplinks: chosen, leftOut };
}

/**
 * What takes the routes and rules of one family from what they are to what they have to be: routes come before the
 * rules that lead to them, and go after them.
 */
function routingCommands(
  uplinks: readonly Uplink[],
  { markMask, rulePriority }: Pick<ReplyViaSettings, "markMask" | "rulePriority">,
  state: RoutingState,
): readonly RoutingCommand[] {
  const routes = uplinks.flatMap((uplink) => routesOf(uplink, state));
  const rules = uplinks
    .filter(({ ours, table }) => !ours || routes.some((route) => route.table === table))
    .map(({ mark, table }): MarkRule => ({ priority: rulePriority, mark, mask: markMask, table }));
  const present = new Set(state.own.map(routeText));
  const wanted = new Set(routes.map(placeText));
  const wantedRules = new Set(rules.map(ruleText));
  const presentRules = new Set(state.rules.map(ruleText));
  return [
    ...routes
      .filter((route) => !present.has(routeText(route)))
      .map((route): RoutingCommand => ({ kind: "set-route", route })),
    ...rules
      .filter((rule) => !presentRules.has(ruleText(rule)))
      .map((rule): RoutingCommand => ({ kind: "add-rule", rule })),
    ...state.rules
      .filter((rule) => !wantedRules.has(ruleText(rule)))
      .map((rule): RoutingCommand => ({ kind: "delete-rule", rule })),
    ...state.own
      .filter((route) => !wanted.has(placeText(route)))
      .map((route): RoutingCommand => ({ kind: "delete-route", route })),
  ];
}

/** Everything that is there, away. */
function removal({ rules, own }: Pick<RoutingState, "rules" | "own">): readonly RoutingCommand[] {
  return [
    ...rules.map((rule): RoutingCommand => ({ kind: "delete-rule", rule })),
    ...own.map((route): RoutingCommand => ({ kind: "delete-route", route })),
  ];
}

/** Of several routes to one place with one metric the kernel takes the first. */
function routesOf({ interface: name, table, ours }: Uplink, { main }: RoutingState): readonly TableRoute[] {
  if (!ours) return [];
  const routes = new Map<string, TableRoute>();
  for (const route of main) {
    if (route.interface !== name || MULTICAST.test(route.destination)) continue;
    const copied = { ...route, table };
    if (!routes.has(placeText(copied))) routes.set(placeText(copied), copied);
  }
  return [...routes.values()];
}

/** No reply goes there. Link-local routes stay: without one a reply to a link-local client goes to the gateway. */
const MULTICAST = /^ff[0-9a-f]{2}:/i;

/** What makes a route another one, and not another version of it. */
function placeText({ destination, table, metric }: TableRoute): string {
  return `${destination} ${table} ${metric}`;
}

function routeText(route: TableRoute): string {
  const { gateway = "", source = "", onLink = false } = route;
  return `${placeText(route)} ${route.interface} ${gateway} ${source} ${onLink}`;
}

function ruleText({ priority, mark, mask, table }: MarkRule): string {
  return `${priority} ${mark}/${mask} ${table}`;
}

/** NF_IP_PRI_MANGLE: behind connection tracking, before routing and translation. */
const MANGLE = -150;

/** Behind NF_IP_PRI_NAT_DST, before routing: what routing reports of a first packet has its connection's mark. */
const TRANSLATED = -90;

type ReplyChains = ReadonlyMap<string, { readonly base: BaseChain; readonly rules: readonly NftRule[] }>;

/**
 * The same in both families. The first packet from outside gives its connection the mark of the interface; answers get
 * it as their own before they are routed.
 *
 * @param translates whether the mode translates by DNAT, so that other connections stay as they are; else all that come
 *   to the node itself get a mark as well: IPVS takes what is for services from there
 */
function replyChains(
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
function writeChains(batch: NftBatch, chains: ReplyChains): NftBatch {
  batch.addTable().deleteTable().addTable("answers leave by the interface that the client came in by");
  for (const [name, { base }] of chains) batch.addChain({ name, base });
  for (const [name, { rules }] of chains) for (const rule of rules) batch.addRule(name, rule);
  return batch;
}

function hasChains(table: NftTable, chains: ReplyChains): boolean {
  const plain = (rules: readonly NftRule[]) => rules.map(({ expressions }) => expressions);
  const text = (all: Iterable<readonly [string, { readonly base?: BaseChain; readonly rules: readonly NftRule[] }]>) =>
    JSON.stringify(
      [...all].map(([name, { base, rules }]) => [name, base?.type, base?.hook, base?.priority, plain(rules)]).sort(),
    );
  return table.dormant === undefined && text(table.chains) === text(chains);
}

function isDefault({ destination }: RouteEntry): boolean {
  return destination === "default";
}

/** Those that are there come before those that have gone. */
function giveNumber(name: string, present: readonly string[], numbers: Map<string, number>, most: number): boolean {
  if (numbers.has(name)) return true;
  const taken = new Map(Array.from(numbers, ([one, at]) => [at, one]));
  const all = Array.from({ length: most }, (_, at) => at);
  const free = all.find((at) => !taken.has(at)) ?? all.find((at) => !present.includes(taken.get(at) ?? ""));
  if (free === undefined) return false;
  const before = taken.get(free);
  if (before !== undefined) numbers.delete(before);
  numbers.set(name, free);
  return true;
}

/**
 * The mark of a number: the mask's lowest bit, which all of them have, so that another program's bits within the mask
 * are not taken for one, and the number in the other bits.
 */
function markOf(number: number, mask: number): number {
  const [lowest = 0, ...others] = bitsOf(mask);
  const set = others.filter((_, at) => Math.floor(number / 2 ** at) % 2 === 1);
  return [lowest, ...set].reduce((mark, bit) => mark + 2 ** bit, 0);
}

function bitsOf(mask: number): readonly number[] {
  return Array.from({ length: 32 }, (_, bit) => bit).filter((bit) => Math.floor(mask / 2 ** bit) % 2 === 1);
}
