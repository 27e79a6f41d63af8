import { type Clock, toEnd } from "@fairlead/base";
import type { ServicesView } from "../services/view.ts";
import { Admission } from "./admission.ts";
import type { Claim } from "./claim.ts";
import { ClaimTable } from "./claim-table.ts";
import type { ResourceState } from "./facts.ts";
import { Filters } from "./filters.ts";
import { FollowedSources } from "./followed.ts";
import { type LastKnown, NOTHING_KNOWN } from "./last-known.ts";
import { Namespaces, type RulesNow } from "./namespaces.ts";
import { NodeAddresses } from "./node-addresses.ts";
import { occupation } from "./occupied.ts";
import { refusals } from "./refusals.ts";
import { type NetworksReport, report } from "./report.ts";
import { type ResolvedCIDRs, resolve } from "./resolve.ts";
import { resultOf } from "./result.ts";
import { touchedBy } from "./touched.ts";
import type { NetworksDecision, NetworksSettings } from "./types.ts";

/** Milliseconds that a start waits for first lists where nothing is known from before. */
const START_WAIT_MS = 10_000;
/** Milliseconds between two looks at what waits for services to change. */
const LOOK_MS = 60_000;

/**
 * The networks of a cluster as their objects tell them: takes single events in any order, and decides when asked. Does
 * no I/O and sets no timer: `due` says when to ask again.
 */
export class Networks {
  readonly #settings: NetworksSettings;
  readonly #clock: Pick<Clock, "now" | "monotonic">;
  readonly #claims = new ClaimTable();
  readonly #sources: FollowedSources;
  readonly #admission: Admission;
  readonly #nodes = new NodeAddresses();
  readonly #namespaces: Namespaces;
  readonly #filters = new Filters();
  readonly #startedAt: number;
  #serviceCIDRs: readonly string[] = [];
  #rule: RulesNow["rule"];
  /** Monotonic milliseconds of the first event since the last decision that took them in. */
  #changedAt: number | undefined;
  #last: NetworksDecision | undefined;

  constructor(settings: NetworksSettings, clock: Pick<Clock, "now" | "monotonic">, known: LastKnown = NOTHING_KNOWN) {
    this.#settings = settings;
    this.#clock = clock;
    this.#startedAt = clock.monotonic();
    this.#sources = new FollowedSources(settings.sources, this.#claims, known);
    this.#admission = new Admission(this.#claims, known.turned);
    this.#namespaces = new Namespaces(settings.rules ?? [], known.namespaces);
  }

  /**
   * An object is so now.
   *
   * @param resource its place in the source's `resources`
   * @param object how people call it: `Subnet/ovn-default`
   * @param raw straight from JSON, untrusted
   * @returns what is wrong with it and was not told before
   */
  upsert(source: string, resource: number, object: string, raw: unknown): readonly string[] {
    this.#changed();
    return this.#sources.facts(source).upsert(resource, object, raw);
  }

  delete(source: string, resource: number, object: string): void {
    this.#changed();
    this.#sources.facts(source).delete(resource, object);
  }

  /** `listed` comes after the first list's objects, and again after what interrupted it. */
  setState(source: string, resource: number, state: Exclude<ResourceState, "waiting">): void {
    this.#changed();
    this.#sources.facts(source).setState(resource, state);
  }

  /** @param cidrs canonical, all of them */
  setServiceCIDRs(cidrs: readonly string[]): void {
    this.#serviceCIDRs = cidrs;
    this.#changed();
  }

  /** @param raw a Namespace, straight from JSON and untrusted; undefined: it is gone */
  setNamespace(namespace: string, raw: unknown): void {
    if (this.#namespaces.set(namespace, raw)) this.#changed();
  }

  /** `listed` comes after the first list's namespaces, and again after what interrupted it. */
  setNamespacesState(state: Exclude<ResourceState, "waiting">): void {
    this.#namespaces.setState(state);
    this.#changed();
  }

  /** @param addresses canonical; none: the node is gone */
  setNode(node: string, addresses: readonly string[]): void {
    if (this.#nodes.set(node, addresses)) this.#changed();
  }

  /** An operator lets through what is held now; returns how many CIDRs these are. What is held later is held. */
  accept(): number {
    this.#changed();
    return this.#admission.accept();
  }

  /** Whether to decide at all: before that the kernel stays as it is. */
  get ready(): boolean {
    const waited = this.#clock.monotonic() - this.#startedAt >= START_WAIT_MS;
    return waited || (this.#namespaces.settled && this.#sources.settled);
  }

  /** Milliseconds from now until `decide` may have something new; undefined: not before the next event. */
  get due(): number | undefined {
    const now = this.#clock.monotonic();
    if (this.#last === undefined) return this.ready ? 0 : Math.max(0, this.#startedAt + START_WAIT_MS - now);
    const times = this.#changedAt === undefined ? [] : [this.#changedAt + this.#settings.debounceMs];
    for (const { gone, stage } of this.#claims.all()) {
      if (gone?.emptySince !== undefined) times.push(gone.emptySince + this.#settings.removalDelayMs);
      else if (gone !== undefined || stage === "held") times.push(now + LOOK_MS);
    }
    return times.length === 0 ? undefined : Math.max(0, Math.min(...times) - now);
  }

  /** Takes in what is due. The services must be complete before the first call. */
  decide(services: ServicesView): NetworksDecision {
    return toEnd(this.deciding(services));
  }

  /** As `decide`, in steps: what comes between two of them counts with the next decision, which begins after this. */
  *deciding(services: ServicesView): Generator<void, NetworksDecision> {
    const now = this.#clock.monotonic();
    const isDue = this.#changedAt !== undefined && now - this.#changedAt >= this.#settings.debounceMs;
    if (isDue || this.#last === undefined) {
      this.#changedAt = undefined;
      yield* this.#sources.hear(now);
    }
    yield* this.#expire(services, now);
    yield* this.#refuse();
    const { rule, changed } = this.#namespaces.take();
    this.#rule = rule;
    yield* this.#admit(services);
    const before = this.#last;
    const { written } = this.#settings;
    const decider = (cidrs: ResolvedCIDRs) => this.#decider(cidrs);
    const after = yield* resultOf({ written, claims: this.#claims.effective(), decider });
    const touched = new Set(yield* touchedBy(before, after, services));
    for (const namespace of changed) {
      for (const key of services.inNamespace(namespace)) touched.add(key);
      yield;
    }
    this.#last = { ...after, touched };
    return this.#last;
  }

  /** For a file that outlives the agent. */
  lastKnown(): LastKnown {
    const { known: namespaces } = this.#namespaces;
    const turned = [...this.#admission.turned];
    return { sources: this.#sources.known(), turned, ...(namespaces && { namespaces }) };
  }

  /** Everything that can be said of the sources and their CIDRs. */
  report(): NetworksReport {
    const rules = this.#namespaces.followed ? this.#namespaces.state : undefined;
    return report(
      this.#sources.all(),
      rules,
      this.#claims.all(),
      this.#admission.heldBack,
      this.#last?.conflicts ?? [],
    );
  }

  #changed(): void {
    this.#changedAt ??= this.#clock.monotonic();
  }

  *#expire(services: ServicesView, now: number): Generator<void, void> {
    const own = this.#claims.effective().flatMap(({ side, cidr }) => (side === "own" ? [cidr] : []));
    yield* this.#claims.expire(occupation(own, services), now, this.#settings.removalDelayMs);
  }

  *#refuse(): Generator<void, void> {
    const usable = this.#claims.all().filter(({ unusable }) => unusable !== true);
    this.#claims.refuse(yield* refusals(this.#settings.written, usable, this.#serviceCIDRs));
  }

  *#admit(services: ServicesView): Generator<void, void> {
    const now = () => this.#clock.now();
    this.#admission.free(now);
    if (yield* this.#claims.handOver()) yield* this.#refuse();
    const { maxForeignPercent, written } = this.#settings;
    const effective = this.#claims.effective();
    const filterWith = (claims: Iterable<Claim>) => this.#decider(resolve(written, [...effective, ...claims])).filter;
    yield* this.#admission.guard({ filterWith, services, maxForeignPercent, now });
  }

  #decider(cidrs: ResolvedCIDRs) {
    const rule = this.#rule && { rule: this.#rule };
    const neutralAddresses = this.#nodes.all;
    return {
      filter: this.#filters.get(cidrs, { ...this.#settings.filter, ...rule, neutralAddresses }),
      neutralAddresses,
    };
  }
}
