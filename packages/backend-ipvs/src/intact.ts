/** Whether the kernel still holds what was written, and the check from time to time. */

import { inSlices } from "@fairlead/base";
import type { ForwardingPlan } from "@fairlead/core";
import {
  type DestinationKey,
  type Rule,
  ruleKey,
  type ServerCommand,
  type TableState,
  type VirtualServerKey,
} from "@fairlead/netfilter";
import { frameFacts } from "./apply.ts";
import type { CheckedRules } from "./checked-rules.ts";
import type { Draining } from "./draining.ts";
import { compareServers, isEqual, wantedOf } from "./full-sync.ts";
import { readAddresses, readSets, readTables } from "./kernel-state.ts";
import type { ResolvedOptions } from "./options.ts";
import { IPVS_OUT_FILTER, type PlanContext } from "./plan/context.ts";
import { frameChains } from "./plan/frame.ts";
import { type ChainRules, type FrameFacts, type FrameTable, JUMPS, TABLES } from "./plan/frame-nat.ts";
import type { Ledger } from "./plan/ledger.ts";
import { SET_KEYS } from "./plan/sets.ts";
import type { IpvsPort } from "./port.ts";
import type { RefusedMembers } from "./work.ts";

/**
 * The first difference from what should be there: a change by hand shows in no event, and a virtual server or address
 * that is missing serves no client. Listings are read as they come, the rules' not at all while the kernel says that
 * their tables are as they were.
 *
 * @param refused members that the last sync could not write, which it has reported
 * @returns in words; undefined: everything of ours is there and as it should be
 */
export async function findDifference(
  port: IpvsPort,
  plan: ForwardingPlan,
  context: PlanContext,
  draining: Draining,
  rulesSeen: CheckedRules,
  refused: RefusedMembers,
  options: ResolvedOptions,
): Promise<string | undefined> {
  const { ledger, servers } = await wantedOf(plan, context, options);
  // By netlink, so the quickest check.
  if (servers.size > 0) {
    const listing = port.servers.save();
    const difference = await compareServers(listing, servers, () => false, draining, options);
    if (!isEqual(difference)) return "the virtual servers";
  }
  if (!(await hasAddresses(port, ledger))) return "the addresses of the service device";
  const set = await differentSet(port, ledger, refused);
  if (set !== undefined) return `the set ${set}`;
  return (await hasRules(port, frameFacts(ledger, context), rulesSeen)) ? undefined : "the rules of iptables";
}

/** Milliseconds from one look at all that drains to the next (upstream: rsCheckDeleteInterval). */
const PERIOD = 60_000;

const LITTLE = 4;

/** What has just begun to drain often has no connections at all: it is looked at once more, soon, if it is little. */
const FIRST_LOOK = 1_000;

export class DrainClock {
  #allAt: number | undefined;
  #freshAt: number | undefined;

  /** Something may have begun to drain, or ended. */
  note(draining: Draining, now: number): void {
    if (draining.size === 0) {
      this.#allAt = undefined;
      this.#freshAt = undefined;
      return;
    }
    this.#allAt ??= now + PERIOD;
    const fresh = draining.fresh().length;
    this.#freshAt = fresh > 0 && fresh <= LITTLE ? (this.#freshAt ?? now + FIRST_LOOK) : undefined;
  }

  due(draining: Draining, now: number): readonly VirtualServerKey[] {
    if (this.#allAt !== undefined && now >= this.#allAt) return draining.servers();
    return this.#freshAt !== undefined && now >= this.#freshAt ? draining.fresh() : [];
  }

  checked(now: number): void {
    if (this.#allAt !== undefined && now >= this.#allAt) this.#allAt = undefined;
    this.#freshAt = undefined;
  }

  /** Milliseconds until something is due; undefined: nothing drains. */
  next(now: number): number | undefined {
    const times = [this.#allAt, this.#freshAt].filter((at) => at !== undefined);
    return times.length === 0 ? undefined : Math.max(0, Math.min(...times) - now);
  }
}

interface ReleasedServer {
  readonly server: VirtualServerKey;
  readonly destinations: readonly DestinationKey[];
}

/** Deletes the destinations of these servers that drained and have no connection. */
export async function endDrained(
  port: IpvsPort,
  servers: readonly VirtualServerKey[],
  draining: Draining,
  options: ResolvedOptions,
): Promise<void> {
  const gone: ReleasedServer[] = [];
  for await (const server of port.servers.connections(servers)) {
    const destinations = await inSlices(draining.finished(server), options);
    if (destinations.length > 0) gone.push({ server, destinations });
  }
  draining.checked();
  if (gone.length === 0) return;
  await port.servers.change(deletions(gone), options.turn);
  for (const { server, destinations } of gone) await inSlices(draining.remove(server, destinations), options);
}

async function hasAddresses(port: IpvsPort, { addresses }: Ledger): Promise<boolean> {
  const present = await readAddresses(port, port.rules.family);
  return present !== undefined && sameMembers(present, addresses);
}

async function differentSet(port: IpvsPort, ledger: Ledger, refused: RefusedMembers): Promise<string | undefined> {
  const present = await readSets(port, port.rules.family);
  return SET_KEYS.find((key) => {
    const found = present.get(key);
    if (found === undefined) return true;
    const missing = new Set(refused.get(found.name));
    const wanted = new Set([...ledger.members(key).keys()].filter((member) => !missing.has(member)));
    return !sameMembers(found.members, wanted);
  });
}

function sameMembers(present: ReadonlySet<string>, wanted: { size: number; has(key: string): boolean }): boolean {
  return present.size === wanted.size && [...present].every((member) => wanted.has(member));
}

async function hasRules({ rules }: IpvsPort, facts: FrameFacts, seen: CheckedRules): Promise<boolean> {
  if (await seen.stand(facts)) return true;
  const reported = await seen.state();
  const chains = frameChains(facts);
  const states = await readTables(rules);
  for (const table of TABLES) {
    const state = states.get(table);
    if (state === undefined) return false;
    if (!chains[table].every((wanted) => sameRules(state.chains.get(wanted.chain)?.rules, wanted))) return false;
    if (!hasJumps(state, table)) return false;
  }
  seen.note(reported, facts);
  return true;
}

/** In their order, but for those that each name a virtual server and came as their services did. */
function sameRules(present: readonly Rule[] | undefined, { chain, rules: wanted }: ChainRules): boolean {
  if (present === undefined) return false;
  const [found, due] = [present.map(ruleKey), wanted.map(ruleKey)];
  if (chain === IPVS_OUT_FILTER) for (const keys of [found, due]) keys.sort();
  return found.join("\n") === due.join("\n");
}

function hasJumps(state: TableState, table: FrameTable): boolean {
  return JUMPS.every((jumps) => {
    if (jumps.table !== table) return true;
    const present = new Set(state.chains.get(jumps.chain)?.rules.map(ruleKey));
    return jumps.rules.every((rule) => present.has(ruleKey(rule)));
  });
}

function* deletions(gone: readonly ReleasedServer[]): Generator<ServerCommand, void, void> {
  for (const { server, destinations } of gone) {
    for (const destination of destinations) yield { kind: "delete-destination", server, destination };
  }
}
