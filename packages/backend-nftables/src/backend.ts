/** The backend of nftables mode. */

import { errorText, inSlices, Pace } from "@fairlead/base";
import type { Backend, Difference, ForwardingPlan, PlanChange, ServicePortGroup, SyncReport } from "@fairlead/core";
import {
  NFT_FAMILY,
  NftBatch,
  type NftChain,
  type NftFamily,
  type NftFlowtable,
  type NftRule,
  type NftSet,
  type NftTable,
  type SetElement,
  UnreadableNft,
} from "@fairlead/netfilter/nft";
import { removeNftablesMode, StaleChains } from "./cleanup.ts";
import { type Damage, damageOf } from "./damage.ts";
import { nftablesSemantics } from "./facts.ts";
import { FlowtableDevices } from "./flowtable-devices.ts";
import { type NftablesOptions, type ResolvedOptions, resolveOptions } from "./options.ts";
import { changeTable } from "./plan/change-table.ts";
import { changesContext, planContext, tableName } from "./plan/context.ts";
import { sharesChains } from "./plan/frame-chains.ts";
import { addStructures, type Programmed, type Sizes, type TableWriter } from "./plan/programmed.ts";
import { Remembered, remembers } from "./plan/remembered.ts";
import { beginTable, TableInMemory, type Titled, writeTable } from "./plan/write-table.ts";
import type { NftablesPort, TableNews } from "./port.ts";

/**
 * The nftables mode of one IP family. Does nothing until it is called.
 *
 * @throws RangeError when an option is out of range
 */
export function createNftablesBackend(port: NftablesPort, options: NftablesOptions): NftablesModeBackend {
  return new NftablesBackend(port, resolveOptions(options));
}

/** The backend, and what it does alongside syncs. */
export interface NftablesModeBackend extends Required<Omit<Backend, "prepare">> {
  /** To be called when the devices of `NftablesOptions.devices` changed; a sync does that itself. */
  updateDevices(): Promise<void>;
}

/**
 * Sets and chains that services have in common and that nothing needs any more stay until there are more than this, and
 * twice as many as were needed: services whose affinity changes all the time would fill the kernel with them.
 */
const SPARE_STRUCTURES = 200;

/** Of a core, at most, for looks at a table without known changes. */
const SHARE_OF_LOOKS = 0.02;

class NftablesBackend implements NftablesModeBackend {
  readonly semantics = nftablesSemantics;
  readonly #port: NftablesPort;
  readonly #options: ResolvedOptions;
  readonly #stale: StaleChains;
  readonly #devices: FlowtableDevices;
  /** Undefined until a full sync was accepted, and after anything was not. */
  #programmed: Programmed | undefined;
  /** What was known of others' work when the table was written or looked at. */
  #news: TableNews | undefined;
  readonly #looks: Pace;
  #mostStructures = 0;

  constructor(port: NftablesPort, resolved: ResolvedOptions) {
    this.#port = port;
    this.#options = resolved;
    this.#looks = new Pace(resolved.clock, SHARE_OF_LOOKS);
    this.#stale = new StaleChains((batch) => port.commit(batch), resolved);
    this.#devices = new FlowtableDevices((batch) => port.commit(batch), resolved);
  }

  async sync(plan: ForwardingPlan): Promise<SyncReport> {
    const before = this.#programmed?.placements;
    this.#programmed = undefined;
    this.#devices.forget();
    const context = planContext(this.#options, plan);
    // What others do from here on may be in what is written, or not.
    const news = await this.#takeNews();
    const remembered = await this.#remembered(plan, before);
    const batch = new SplitBatch(this.#port, context, sizeOf(plan));
    const written = await this.#slowly(writeTable(plan.groups.values(), context, batch, remembered));
    for (const full of batch.takeFull()) await this.#port.commit(full);
    await this.#port.commit(batch.last);
    this.#news = news;
    this.#stale.forget();
    this.#mostStructures = SPARE_STRUCTURES + 2 * written.structures.size;
    this.#programmed = written;
    await this.#devices.fill();
    return report("full", written, written.sizes);
  }

  async apply(plan: ForwardingPlan, change: PlanChange): Promise<SyncReport> {
    const before = this.#programmed;
    if (before === undefined) return this.sync(plan);
    // Most changes are of groups: what there is of the node and of other networks is not gone through for each.
    const context = changesContext(change) ? planContext(this.#options, plan) : before.context;
    if (!sharesChains(before.context, context)) return this.sync(plan);
    if (before.structures.size > this.#mostStructures || before.numbers.usedUp) return this.sync(plan);
    this.#programmed = undefined;
    const batch = new NftBatch(context.family, context.table);
    const groups = Array.from(change.groups, ([id, { after }]) => [id, after] as const);
    const { programmed, stale, inUse, written } = await this.#slowly(changeTable(before, groups, context, batch));
    // As much as that goes in one transaction or, as a whole table, in several.
    if (batch.length > this.#port.roomFor(batch.length)) return this.sync(plan);
    if (batch.count > 0) await this.#port.commit(batch);
    this.#stale.change(stale, inUse);
    this.#programmed = programmed;
    return report("partial", programmed, written);
  }

  /** A table that others have touched is compared at once, one that they may have touched as often as that is cheap. */
  async difference(): Promise<Difference | undefined> {
    const programmed = this.#programmed;
    if (programmed === undefined) return undefined;
    const news = await this.#takeNews();
    const isTouched = news.touched !== this.#news?.touched;
    if (!isTouched && (news.unreported === this.#news?.unreported || !this.#looks.isDue)) return undefined;
    const damage = await this.#looks.run(() => this.#look(programmed));
    this.#news = news;
    if (damage === undefined) return undefined;
    const repaired = await this.#repair(damage);
    if (repaired) await this.#devices.fill();
    return { what: damage.what, by: news.by, repaired };
  }

  updateDevices(): Promise<void> {
    return this.#devices.update();
  }

  maintain(): Promise<number | undefined> {
    return this.#stale.remove();
  }

  async cleanup(): Promise<void> {
    this.#programmed = undefined;
    this.#devices.forget();
    await removeNftablesMode(this.#port, this.#options.family, this.#options.serviceProxyName);
  }

  /** Only services with affinity have something that is worth reading. */
  async #remembered({ family, groups }: ForwardingPlan, placements?: Programmed["placements"]): Promise<Remembered> {
    const sticky = [...groups.values()].some(({ affinitySeconds }) => affinitySeconds !== undefined);
    const sets = sticky ? await this.#readSets(NFT_FAMILY[family]) : new Map();
    return new Remembered(sets, placements);
  }

  /** What another program put there may be of kinds that are not known here: it goes, and the clients with it. */
  async #readSets(family: NftFamily): Promise<ReadonlyMap<string, NftSet>> {
    try {
      return await this.#port.sets(family, tableName(this.#options.serviceProxyName), remembers);
    } catch (error) {
      if (!(error instanceof UnreadableNft)) throw error;
      this.#options.onForgottenClients(error);
      return new Map();
    }
  }

  async #takeNews(): Promise<TableNews> {
    const news = this.#port.news?.(NFT_FAMILY[this.#options.family]);
    return news ?? { touched: await this.#port.generation(), unreported: 0, by: [] };
  }

  async #look(programmed: Programmed): Promise<Damage | undefined> {
    const wanted = await this.#slowly(tableOf(programmed));
    const damage = await this.#compare(wanted);
    // A listing of a set that was being changed meanwhile may lack elements: what differs, differs twice.
    return damage && this.#compare(wanted);
  }

  async #compare(wanted: NftTable): Promise<Damage | undefined> {
    try {
      const found = await this.#port.table(wanted.family, wanted.name);
      const damage = await this.#slowly(damageOf(wanted, found));
      const devices = found && this.#devices.difference(found);
      if (devices === undefined) return damage;
      const { what, repair } = damage ?? { what: [], repair: new NftBatch(wanted.family, wanted.name) };
      return { what: [...what, devices], ...(repair && { repair }) };
    } catch (error) {
      if (!(error instanceof UnreadableNft)) throw error;
      return { what: [errorText(error)] };
    }
  }

  /** @returns false: it takes a full sync */
  async #repair({ repair }: Damage): Promise<boolean> {
    if (repair === undefined || repair.length > this.#port.roomFor(repair.length)) return false;
    try {
      // Where only devices are missing there is nothing in it.
      if (repair.count > 0) await this.#port.commit(repair);
      return true;
    } catch {
      // It was changed again meanwhile, or is not what it was taken for: the full sync reports what is wrong with it.
      return false;
    }
  }

  #slowly<T>(steps: Generator<void, T>): Promise<T> {
    return inSlices(steps, this.#options);
  }
}

/** What was written: endpoints where they stand, without the clients that packets have added. */
function* tableOf({ context, placements, structures }: Programmed): Generator<void, NftTable> {
  const table = new TableInMemory(context);
  const groups = Array.from(placements.values(), ({ group }) => group);
  const before = { placed: ({ id }: ServicePortGroup) => placements.get(id), clients: () => [] };
  const written = yield* writeTable(groups, context, table, before);
  // Those that no service needs any more.
  addStructures(structures.values(), written, table);
  return table.table();
}

/** Bytes that a table will have in a transaction, about: a frontend and its endpoints, in both addresses' lengths. */
function sizeOf({ groups, endpointCount }: ForwardingPlan): number {
  return (1 << 14) + 256 * groups.size + 128 * endpointCount;
}

function report(kind: SyncReport["kind"], { sizes }: Programmed, written: Readonly<Sizes>): SyncReport {
  return {
    kind,
    objects: {
      services: { total: sizes.services, written: written.services },
      endpoints: { total: sizes.endpoints, written: written.endpoints },
    },
  };
}

/**
 * A table that is made anew, in one transaction where there is room for it: then no reader sees anything between the
 * old one and the new one. In a user namespace there may be too little; it goes in several then, each of at most half
 * the room, so that the message that comes last still fits.
 */
class SplitBatch implements TableWriter {
  readonly #port: Pick<NftablesPort, "roomFor">;
  readonly #titled: Titled;
  readonly #full: NftBatch[] = [];
  #last: NftBatch;
  #room: number;

  /** @param size bytes that the whole will have, about */
  constructor(port: Pick<NftablesPort, "roomFor">, titled: Titled, size: number) {
    this.#port = port;
    this.#titled = titled;
    this.#room = port.roomFor(size);
    this.#last = new NftBatch(titled.family, titled.table, Math.min(size, this.#room));
    beginTable(this.#last, titled);
  }

  addSet(set: Omit<NftSet, "elements">): void {
    this.#roomy().addSet(set);
  }

  addChain(chain: Pick<NftChain, "name" | "base" | "comment">): void {
    this.#roomy().addChain(chain);
  }

  addRule(chain: string, rule: NftRule): void {
    this.#roomy().addRule(chain, rule);
  }

  addFlowtable(flowtable: NftFlowtable): void {
    this.#roomy().addFlowtable(flowtable);
  }

  addElements(set: string, elements: Iterable<SetElement>): void {
    this.#roomy().addElements(set, elements);
  }

  /** Those that can be carried out, once each. */
  *takeFull(): Generator<NftBatch> {
    for (let batch = this.#full.shift(); batch !== undefined; batch = this.#full.shift()) yield batch;
  }

  get last(): NftBatch {
    return this.#last;
  }

  #roomy(): NftBatch {
    const { length } = this.#last;
    if (2 * length <= this.#room) return this.#last;
    this.#room = this.#port.roomFor(4 * length);
    if (2 * length <= this.#room) return this.#last;
    this.#full.push(this.#last);
    this.#last = new NftBatch(this.#titled.family, this.#titled.table, this.#room);
    return this.#last;
  }
}
