import { inSlices } from "@fairlead/base";
import type { Backend, ForwardingPlan, PlanChange, SyncReport } from "@fairlead/core";
import { NFT_FAMILY, NftBatch, type NftFamily, type NftSet, UnreadableNft } from "@fairlead/netfilter/nft";
import { removeNftablesMode } from "./cleanup.ts";
import { type NftablesOptions, type ResolvedOptions, resolveOptions } from "./options.ts";
import { changeTable } from "./plan/change-table.ts";
import { changesContext, planContext } from "./plan/context.ts";
import { sharesChains } from "./plan/frame-change.ts";
import { tableName } from "./plan/names.ts";
import type { Programmed, Sizes } from "./plan/programmed.ts";
import { Remembered, remembers } from "./plan/remembered.ts";
import { writeTable } from "./plan/write-table.ts";
import type { NftablesPort } from "./port.ts";
import { nftablesSemantics } from "./semantics.ts";
import { SplitBatch } from "./split-batch.ts";
import { StaleChains } from "./stale-chains.ts";

/**
 * The nftables mode of one IP family. Does nothing until it is called.
 *
 * @throws RangeError when an option is out of range
 */
export function createNftablesBackend(
  port: NftablesPort,
  options: NftablesOptions,
): Required<Omit<Backend, "prepare">> {
  return new NftablesBackend(port, resolveOptions(options));
}

/**
 * Sets and chains that services have in common and that nobody needs any more stay until there are more than this, and
 * twice as many as were needed: services whose affinity changes all the time would fill the kernel with them.
 */
const SPARE_STRUCTURES = 1000;

class NftablesBackend implements Required<Omit<Backend, "prepare">> {
  readonly semantics = nftablesSemantics;
  readonly #port: NftablesPort;
  readonly #options: ResolvedOptions;
  readonly #stale: StaleChains;
  /** Undefined until a full sync was accepted, and after anything was not. */
  #programmed: Programmed | undefined;
  #generation = 0;
  #mostStructures = 0;

  constructor(port: NftablesPort, resolved: ResolvedOptions) {
    this.#port = port;
    this.#options = resolved;
    this.#stale = new StaleChains((batch) => this.#commit(batch), resolved);
  }

  async sync(plan: ForwardingPlan): Promise<SyncReport> {
    const before = this.#programmed?.placements;
    this.#programmed = undefined;
    const context = planContext(this.#options, plan);
    // What others do from here on may be in what is written, or not.
    const generation = await this.#port.generation();
    const remembered = await this.#remembered(plan, before);
    const batch = new SplitBatch(this.#port, context, sizeOf(plan));
    const written = await this.#slowly(writeTable(plan.groups.values(), context, batch, remembered));
    for (const full of batch.takeFull()) await this.#port.commit(full);
    await this.#port.commit(batch.last);
    this.#generation = this.#port.countsOthersOnly ? generation : await this.#port.generation();
    this.#stale.forget();
    this.#mostStructures = SPARE_STRUCTURES + 2 * written.structures.size;
    this.#programmed = written;
    return report("full", written, written.sizes);
  }

  async apply(plan: ForwardingPlan, change: PlanChange): Promise<SyncReport> {
    const before = this.#programmed;
    if (before === undefined) return this.sync(plan);
    // Most changes are of groups: what there is of the node and of other networks is not gone through for each.
    const context = changesContext(change) ? planContext(this.#options, plan) : before.context;
    if (!sharesChains(before.context, context)) return this.sync(plan);
    if (before.structures.size > this.#mostStructures) return this.sync(plan);
    this.#programmed = undefined;
    const batch = new NftBatch(context.family, context.table);
    const groups = Array.from(change.groups, ([id, { after }]) => [id, after] as const);
    const { programmed, stale, inUse, written } = await this.#slowly(changeTable(before, groups, context, batch));
    // As much as that goes in one transaction or, as a whole table, in several.
    if (batch.length > this.#port.roomFor(batch.length)) return this.sync(plan);
    if (batch.count > 0) await this.#commit(batch);
    this.#stale.change(stale, inUse);
    this.#programmed = programmed;
    return report("partial", programmed, written);
  }

  async intact(): Promise<boolean> {
    if (this.#programmed === undefined) return true;
    return (await this.#port.generation()) === this.#generation;
  }

  maintain(): Promise<number | undefined> {
    return this.#stale.remove();
  }

  async cleanup(): Promise<void> {
    this.#programmed = undefined;
    await removeNftablesMode(this.#port, this.#options.family, this.#options.serviceProxyName);
  }

  /** Only services with affinity have something that is worth reading. */
  async #remembered({ family, groups }: ForwardingPlan, placements?: Programmed["placements"]): Promise<Remembered> {
    const sticky = [...groups.values()].some(({ affinitySeconds }) => affinitySeconds !== undefined);
    const sets = sticky ? await this.#readSets(NFT_FAMILY[family]) : new Map();
    return new Remembered(sets, placements);
  }

  /** What somebody else put there may be of kinds that are not known here: it goes, and the clients with it. */
  async #readSets(family: NftFamily): Promise<ReadonlyMap<string, NftSet>> {
    try {
      return await this.#port.sets(family, tableName(this.#options.serviceProxyName), remembers);
    } catch (error) {
      if (!(error instanceof UnreadableNft)) throw error;
      this.#options.onForgottenClients(error);
      return new Map();
    }
  }

  async #commit(batch: NftBatch): Promise<void> {
    await this.#port.commit(batch);
    if (!this.#port.countsOthersOnly) this.#generation += 1;
  }

  #slowly<T>(steps: Generator<void, T>): Promise<T> {
    return inSlices(steps, this.#options);
  }
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
