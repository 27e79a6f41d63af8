/** A full sync: what is wanted, what the kernel holds, and what differs. */

import { inSlices, type Slicing } from "@fairlead/base";
import type { ForwardingPlan } from "@fairlead/core";
import { renderServerKey, type ServerCommand, type SetCommand, type VirtualServerState } from "@fairlead/netfilter";
import { collect, frameFacts, type Programmed } from "./apply.ts";
import type { CheckedRules } from "./checked-rules.ts";
import { Draining } from "./draining.ts";
import { type KernelState, type Owned, ownership, ownsNothing, readKernel } from "./kernel-state.ts";
import type { ResolvedOptions } from "./options.ts";
import type { PlanContext } from "./plan/context.ts";
import { sameFacts, unitedFacts } from "./plan/frame.ts";
import type { FrameFacts } from "./plan/frame-nat.ts";
import { groupObjects, type WantedServer } from "./plan/group.ts";
import { Ledger } from "./plan/ledger.ts";
import { newServer, serverChange } from "./plan/server-change.ts";
import { type Moves, SET_KEYS, type SetKey, setDefinition, setWork } from "./plan/sets.ts";
import type { IpvsPort } from "./port.ts";
import { carryOut, frameSections, type Work, type Written } from "./work.ts";

interface SyncInput {
  readonly plan: ForwardingPlan;
  readonly context: PlanContext;
  /** Keys of the virtual servers that this process has made; new ones are added. */
  readonly made: Set<string>;
  readonly rulesSeen: CheckedRules;
}

interface Synced {
  readonly programmed: Programmed;
  readonly draining: Draining;
  readonly written: Written;
}

/** Makes the kernel equal to the plan, whatever it holds. */
export async function fullSync(
  port: IpvsPort,
  { plan, context, made, rulesSeen }: SyncInput,
  options: ResolvedOptions,
): Promise<Synced> {
  const wanted = await wantedOf(plan, context, options);
  const facts = frameFacts(wanted.ledger, context);
  const kernel = await readKernel(port, await rulesSeen.stand(facts));
  const { excludeCIDRs, family } = options;
  const owned = ownership({ family, kernel, made: new Set(made), excludeCIDRs });
  const draining = new Draining();
  // A family without services is not worth the listing of all the other one's servers.
  const nothing = wanted.servers.size === 0 && ownsNothing({ kernel, made });
  const listing = nothing ? [] : port.servers.save();
  const difference = await compareServers(listing, wanted.servers, owned, draining, options);
  for (const key of wanted.servers.keys()) made.add(key);
  const work = { ...fullWork(wanted.ledger, kernel, facts), servers: differenceCommands(difference) };
  const written = await carryOut(port, work, options);
  const isWritten = written.refused.every(({ command }) => !isAboutServer(command));
  if (isWritten && !isEqual(difference)) await verify(port, wanted, owned, options);
  for (const key of made) if (!wanted.servers.has(key)) made.delete(key);
  return { programmed: { context, facts, ledger: wanted.ledger }, draining, written };
}

interface Wanted {
  readonly ledger: Ledger;
  readonly servers: ReadonlyMap<string, WantedServer>;
}

/** Works out a whole plan, with turns of the event loop between. */
export function wantedOf(plan: ForwardingPlan, context: PlanContext, slicing: Partial<Slicing>): Promise<Wanted> {
  return inSlices(collectGroups(plan, context), slicing);
}

/** How the kernel's virtual servers differ from those wanted. */
interface ServerDifference {
  /** Servers that are not there at all. */
  readonly missing: ReadonlyMap<string, WantedServer>;
  readonly additions: readonly ServerCommand[];
  readonly removals: readonly ServerCommand[];
}

/**
 * Compares as the listing is read; servers that are as they should be are not kept. Notes what drains, in the kernel or
 * by the removals.
 */
export async function compareServers(
  listing: AsyncIterable<VirtualServerState> | Iterable<VirtualServerState>,
  wanted: ReadonlyMap<string, WantedServer>,
  owned: Owned,
  draining: Draining,
  slicing: Partial<Slicing>,
): Promise<ServerDifference> {
  const missing = new Map(wanted);
  const additions: ServerCommand[] = [];
  const removals: ServerCommand[] = [];
  for await (const present of listing) {
    const key = renderServerKey(present);
    const server = wanted.get(key);
    if (server !== undefined) {
      const change = await inSlices(serverChange(server, present), slicing);
      missing.delete(key);
      await inSlices(collect(change.additions, additions), slicing);
      await inSlices(collect(change.removals, removals), slicing);
      draining.set(server.server, change.draining);
    } else if (owned(present)) {
      removals.push({ kind: "delete-server", server: present });
    }
  }
  return { missing, additions, removals };
}

export function isEqual({ missing, additions, removals }: ServerDifference): boolean {
  return missing.size + additions.length + removals.length === 0;
}

function isAboutServer(command: unknown): boolean {
  return typeof command === "object" && command !== null && "server" in command;
}

/** `ipvsadm --restore` skips what the kernel refuses; not all of that is worth a word on stderr. */
async function verify(port: IpvsPort, wanted: Wanted, owned: Owned, options: ResolvedOptions): Promise<void> {
  const difference = await compareServers(port.servers.save(), wanted.servers, owned, new Draining(), options);
  if (isEqual(difference)) return;
  const [first] = differenceCommands(difference);
  throw new Error(`virtual servers differ from what was written, the first: ${JSON.stringify(first)}`);
}

function fullWork(ledger: Ledger, kernel: KernelState, facts: FrameFacts): Omit<Work, "servers"> {
  const present = kernel.addresses ?? new Set<string>();
  const sets = setWork(setMoves(ledger, kernel), facts.family);
  const common = {
    setsFirst: [...missingSets(kernel, facts, ledger), ...sets.first],
    createDevice: kernel.addresses === undefined,
    addressAdditions: [...ledger.addresses.keys()].filter((address) => !present.has(address)),
    addressRemovals: [...present].filter((address) => !ledger.addresses.has(address)),
    setsLast: sets.last,
  };
  if (kernel.rules === "as wanted") return { ...common, rulesFirst: [], rulesLast: [] };
  const { builtin: found, iptablesModeServes, barred } = kernel.rules;
  const builtin = (table: string, chain: string) => found.get(`${table} ${chain}`) ?? [];
  // Iptables mode goes on serving until the virtual servers stand.
  if (iptablesModeServes) return { ...common, rulesFirst: [], rulesLast: frameSections(facts, builtin) };
  const united = unitedFacts({ ...facts, filled: filledSets(kernel), barred }, facts);
  const rulesLast = sameFacts(united, facts) ? [] : frameSections(facts);
  return { ...common, rulesFirst: frameSections(united, builtin), rulesLast };
}

function filledSets({ sets }: KernelState): ReadonlySet<SetKey> {
  return new Set(SET_KEYS.filter((set) => (sets.get(set)?.members.size ?? 0) > 0));
}

function missingSets({ sets }: KernelState, { family }: FrameFacts, ledger: Ledger): readonly SetCommand[] {
  const missing = SET_KEYS.filter((set) => !sets.has(set));
  return missing.map((set) => ({ kind: "create", set: setDefinition(set, family, ledger.members(set).size) }));
}

function setMoves(ledger: Ledger, { sets }: KernelState): ReadonlyMap<SetKey, Moves> {
  return new Map(
    SET_KEYS.map((key) => {
      const present = sets.get(key)?.members ?? new Set<string>();
      const wanted = ledger.members(key);
      const added = [...wanted.keys()].filter((member) => !present.has(member));
      return [key, { added, removed: [...present].filter((member) => !wanted.has(member)) }];
    }),
  );
}

function* collectGroups(plan: ForwardingPlan, context: PlanContext): Generator<void, Wanted> {
  const ledger = new Ledger();
  const servers = new Map<string, WantedServer>();
  for (const group of plan.groups.values()) {
    const objects = groupObjects(group, context);
    ledger.add(objects);
    for (const wanted of objects.servers) {
      const other = servers.get(wanted.key);
      if (other === undefined || (other.nodePort && !wanted.nodePort)) servers.set(wanted.key, wanted);
    }
    yield;
  }
  return { ledger, servers };
}

/** All that has to be done about a difference, what comes before what goes. */
function* differenceCommands({ missing, additions, removals }: ServerDifference): Generator<ServerCommand> {
  for (const server of missing.values()) yield* newServer(server);
  yield* additions;
  yield* removals;
}
