import type { Backend, Difference, ForwardingPlan, NodePlan, PlanChange, SyncReport } from "@fairlead/core";
import { applyChange, type Programmed, report } from "./apply.ts";
import { CheckedRules } from "./checked-rules.ts";
import { removeIpvsMode } from "./cleanup.ts";
import { Draining } from "./draining.ts";
import { ipvsSemantics } from "./facts.ts";
import { fullSync } from "./full-sync.ts";
import { DrainClock, endDrained, findDifference } from "./intact.ts";
import { isServiceAddress } from "./kernel-state.ts";
import { type IpvsOptions, type ResolvedOptions, resolveOptions, Schedulers } from "./options.ts";
import { nodeContext, type PlanContext } from "./plan/context.ts";
import type { IpvsPort } from "./port.ts";
import { type RefusedMembers, refusedMembers } from "./work.ts";

/** What came to the service device or went from it; without an address it is the device itself. */
export interface DeviceChange {
  /** The canonical address that came or went. */
  readonly address?: string;
  /** Whether it went; otherwise it came. */
  readonly gone: boolean;
}

/**
 * The backend of ipvs mode: it also drains servers, and distinguishes its own changes of the service device from
 * others'.
 */
export interface IpvsModeBackend extends Required<Omit<Backend, "prepare">> {
  /** Whether a change of the service device is another program's: that is not what the last sync has left there. */
  isStrange(change: DeviceChange): boolean;
}

/**
 * The ipvs mode of one IP family. Starts nothing until it is called.
 *
 * @throws RangeError when an option is out of range
 */
export function createIpvsBackend(port: IpvsPort, options: IpvsOptions = {}): IpvsModeBackend {
  return new IpvsBackend(port, resolveOptions(port.rules.family, options));
}

class IpvsBackend implements IpvsModeBackend {
  readonly semantics = ipvsSemantics;
  readonly #port: IpvsPort;
  readonly #options: ResolvedOptions;
  readonly #schedulers: Schedulers;
  readonly #clock = new DrainClock();
  readonly #rulesSeen: CheckedRules;
  /** Keys of the virtual servers that this process has made: ours whatever CIDRs are excluded. */
  readonly #made = new Set<string>();
  #draining = new Draining();
  /** Undefined until a full sync was accepted, and after anything was not. */
  #programmed: Programmed | undefined;
  #refused: RefusedMembers = new Map();
  /** Kept while the node is the same: it has the addresses of all other nodes, which are many in a large cluster. */
  #ofNode: { readonly node: NodePlan; readonly context: ReturnType<typeof nodeContext> } | undefined;

  constructor(port: IpvsPort, resolved: ResolvedOptions) {
    this.#port = port;
    this.#options = resolved;
    this.#schedulers = new Schedulers(resolved);
    this.#rulesSeen = new CheckedRules(port.rules, resolved.clock);
  }

  async sync(plan: ForwardingPlan): Promise<SyncReport> {
    if (this.#programmed === undefined) this.#rulesSeen.forget();
    this.#programmed = undefined;
    this.#schedulers.forgetLacking();
    await this.#schedulers.loadAll(plan.groups.values());
    const input = { plan, context: this.#context(plan), made: this.#made, rulesSeen: this.#rulesSeen };
    const synced = await fullSync(this.#port, input, this.#options);
    this.#draining = synced.draining;
    this.#clock.note(this.#draining, this.#options.clock.monotonic());
    this.#programmed = synced.programmed;
    this.#refused = refusedMembers(synced.written);
    return report("full", synced.programmed, synced.written);
  }

  async apply(plan: ForwardingPlan, change: PlanChange): Promise<SyncReport> {
    const before = this.#programmed;
    if (before === undefined) return this.sync(plan);
    this.#programmed = undefined;
    await this.#schedulers.loadAll(Array.from(change.groups.values(), ({ after }) => after));
    const input = { plan, change, before, context: this.#context(plan), draining: this.#draining, made: this.#made };
    const applied = await applyChange(this.#port, input, this.#options);
    if (applied === undefined) return this.sync(plan);
    this.#clock.note(this.#draining, this.#options.clock.monotonic());
    this.#programmed = applied.programmed;
    this.#refused = refusedMembers(applied.written, this.#refused);
    return report("partial", applied.programmed, applied.written);
  }

  async difference(plan: ForwardingPlan): Promise<Difference | undefined> {
    const context = this.#context(plan);
    const [seen, refused] = [this.#rulesSeen, this.#refused];
    const what = await findDifference(this.#port, plan, context, this.#draining, seen, refused, this.#options);
    return what === undefined ? undefined : { what: [what], repaired: false };
  }

  isStrange({ address, gone }: DeviceChange): boolean {
    // Undefined while something is written: then it is most likely that.
    const left = this.#programmed?.ledger.addresses;
    if (left === undefined) return false;
    if (address === undefined) return gone;
    return isServiceAddress(address, this.#options.family) && left.has(address) === gone;
  }

  async maintain(): Promise<number | undefined> {
    const programmed = this.#programmed;
    if (programmed === undefined) return undefined;
    const now = this.#options.clock.monotonic();
    const due = this.#clock.due(this.#draining, now);
    if (due.length > 0) {
      this.#programmed = undefined;
      await endDrained(this.#port, due, this.#draining, this.#options);
      this.#clock.checked(now);
      this.#clock.note(this.#draining, now);
      this.#programmed = programmed;
    }
    return this.#clock.next(now);
  }

  async cleanup(): Promise<void> {
    this.#programmed = undefined;
    await removeIpvsMode(this.#port, { excludeCIDRs: this.#options.excludeCIDRs });
  }

  #context({ node }: ForwardingPlan): PlanContext {
    if (this.#ofNode?.node !== node) this.#ofNode = { node, context: nodeContext(this.#options, node) };
    return { ...this.#ofNode.context, lacking: this.#schedulers.lacking };
  }
}
