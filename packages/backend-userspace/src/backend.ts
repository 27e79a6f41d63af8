import { inSlices } from "@fairlead/base";
import type {
  Backend,
  Difference,
  ForwardingPlan,
  PlanChange,
  PlanEndpoint,
  ServicePortGroup,
  SyncReport,
} from "@fairlead/core";
import { type Programmed, report, writeChange } from "./apply.ts";
import { removeUserspaceMode } from "./cleanup.ts";
import { userspaceSemantics } from "./facts.ts";
import { differentChains, renderAll, writeAll } from "./full-sync.ts";
import { type ResolvedOptions, resolveOptions, type UserspaceOptions } from "./options.ts";
import { type RenderContext, rendersAlike } from "./plan/context.ts";
import { hostAddress, relayedSets } from "./plan/relays.ts";
import type { RulesPort } from "./port.ts";
import { Relays } from "./relay/relays.ts";

/** Milliseconds until a service that got no socket is tried again. */
const RETRY = 30_000;

/** A backend that serves by sockets of this process. */
export interface RelayingBackend extends Required<Omit<Backend, "prepare">> {
  /** Where the relays of a group listen: to the kernel these are its endpoints. */
  relays(group: ServicePortGroup): readonly PlanEndpoint[];
  /** Closes the listening sockets. Rules stay; connections go on until `RelayTraffic.end`. */
  close(): void;
}

/**
 * The userspace mode of one IP family. Starts nothing until it is called.
 *
 * @throws RangeError when an option is out of range
 */
export function createUserspaceBackend(port: RulesPort, options: UserspaceOptions = {}): RelayingBackend {
  return new UserspaceBackend(port, resolveOptions(port.family, options));
}

class UserspaceBackend implements RelayingBackend {
  readonly semantics = userspaceSemantics;
  readonly #port: RulesPort;
  readonly #options: ResolvedOptions;
  #relays: Relays | undefined;
  #retryAt = 0;
  /** Undefined until a full sync was accepted, and after anything was not. */
  #programmed: Programmed | undefined;

  constructor(port: RulesPort, resolved: ResolvedOptions) {
    this.#port = port;
    this.#options = resolved;
  }

  async sync(plan: ForwardingPlan): Promise<SyncReport> {
    this.#programmed = undefined;
    const old = this.#relays;
    const context = this.#context(plan);
    const relays = old?.address === context.host ? old : new Relays(context.host, this.#options, { sets: relayedSets });
    this.#relays = relays;
    await this.#open(relays, plan.groups.values());
    const rules = await renderAll(plan, context, relays, this.#options);
    const written = await writeAll(this.#port, rules, context, this.#options);
    relays.retain(plan.groups);
    await inSlices(relays.serve(plan.groups.values()), this.#options);
    if (old !== relays) old?.close();
    this.#programmed = { context, relays, rules };
    return report("full", this.#programmed, written);
  }

  async apply(plan: ForwardingPlan, change: PlanChange): Promise<SyncReport> {
    const before = this.#programmed;
    const context = before && this.#context(plan);
    if (before === undefined || context === undefined || !rendersAlike(before.context, context)) return this.sync(plan);
    const groups = new Map(Array.from(change.groups, ([id, { after }]) => [id, after]));
    return this.#write(before, context, groups);
  }

  async #write(
    before: Programmed,
    context: RenderContext,
    groups: ReadonlyMap<string, ServicePortGroup | undefined>,
  ): Promise<SyncReport> {
    this.#programmed = undefined;
    const { relays, rules } = before;
    const present = [...groups.values()].filter((group) => group !== undefined);
    await this.#open(relays, present);
    const changed = await writeChange(this.#port, { before, context, groups }, this.#options);
    for (const [id, group] of groups) {
      if (group === undefined) {
        rules.delete(id);
        relays.drop(id);
      } else {
        rules.set(id, changed.rules.get(id) ?? []);
      }
    }
    await inSlices(relays.serve(present), this.#options);
    this.#programmed = { context, relays, rules };
    return report("partial", this.#programmed, changed.written);
  }

  async difference(): Promise<Difference | undefined> {
    const what = this.#programmed === undefined ? [] : await differentChains(this.#port, this.#programmed);
    return what.length === 0 ? undefined : { what, repaired: false };
  }

  /** Services that got no socket may get one later. */
  async maintain(): Promise<number | undefined> {
    const programmed = this.#programmed;
    if (programmed === undefined || programmed.relays.failed.length === 0) return undefined;
    const wait = this.#retryAt - this.#options.clock.monotonic();
    if (wait > 0) return wait;
    const groups = new Map(programmed.relays.failed.map((group) => [group.id, group]));
    await this.#write(programmed, programmed.context, groups);
    return programmed.relays.failed.length === 0 ? undefined : RETRY;
  }

  relays(group: ServicePortGroup): readonly PlanEndpoint[] {
    const relays = this.#relays;
    if (relays === undefined) return [];
    return relays.ports(group).map((port) => ({ address: relays.address, port, local: true }));
  }

  close(): void {
    this.#programmed = undefined;
    this.#relays?.close();
    this.#relays = undefined;
  }

  async cleanup(): Promise<void> {
    await removeUserspaceMode(this.#port);
    this.close();
  }

  async #open(relays: Relays, groups: Iterable<ServicePortGroup>): Promise<void> {
    await relays.open(groups);
    this.#retryAt = this.#options.clock.monotonic() + RETRY;
  }

  #context(plan: ForwardingPlan): RenderContext {
    const { family, address, localhostNodePorts } = this.#options;
    const host = address ?? hostAddress(family, plan, this.#relays?.address);
    return { family, host, node: plan.node, localhostNodePorts };
  }
}
