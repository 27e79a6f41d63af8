import { type Clock, toEnd } from "@fairlead/base";
import { CIDRSides, filterBySides, type OptionsBesideCIDRs } from "@fairlead/endpoint-filter";
import type { ServicesView } from "../services/view.ts";
import { Admission } from "./admission.ts";
import type { Claim } from "./claim.ts";
import { ClaimTable } from "./claim-table.ts";
import { Conflicts } from "./conflicts.ts";
import { CountingCIDRs } from "./counting.ts";
import { expire, handOver } from "./expiry.ts";
import type { ResourceState } from "./facts.ts";
import { Filters } from "./filters.ts";
import { FollowedSources } from "./followed.ts";
import { type LastKnown, NOTHING_KNOWN } from "./last-known.ts";
import { Namespaces, type RulesNow } from "./namespaces.ts";
import { ClaimChanges, type NetworksNews } from "./news.ts";
import { NodeAddresses } from "./node-addresses.ts";
import { occupation } from "./occupied.ts";
import { Refusals } from "./refusals.ts";
import { type NetworksReport, report, sourceReports } from "./report.ts";
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
  readonly #refusals: Refusals;
  readonly #admission: Admission;
  readonly #counting: CountingCIDRs;
  readonly #conflicts: Conflicts;
  readonly #changes: ClaimChanges;
  readonly #nodes = new NodeAddresses();
  readonly #namespaces: Namespaces;
  readonly #filters = new Filters();
  readonly #startedAt: number;
  #rule: RulesNow["rule"];
  /** Monotonic milliseconds of the first event since the last decision that took them in. */
  #changedAt: number | undefined;
  #last: NetworksDecision | undefined;

  constructor(settings: NetworksSettings, clock: Pick<Clock, "now" | "monotonic">, known: LastKnown = NOTHING_KNOWN) {
    this.#settings = settings;
    this.#clock = clock;
    this.#startedAt = clock.monotonic();
    this.#sources = new FollowedSources(settings.sources, this.#claims, known);
    this.#refusals = new Refusals(this.#claims, settings.written);
    this.#admission = new Admission(this.#claims, known.turned);
    this.#counting = new CountingCIDRs(this.#claims, settings.written);
    this.#conflicts = new Conflicts(this.#claims, settings.written);
    this.#changes = new ClaimChanges(this.#claims);
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
    this.#refusals.setServiceCIDRs(cidrs);
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
    for (const { gone } of this.#claims.gone()) {
      const emptySince = gone?.emptySince;
      times.push(emptySince === undefined ? now + LOOK_MS : emptySince + this.#settings.removalDelayMs);
    }
    if (this.#claims.waiting().length > 0) times.push(now + LOOK_MS);
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
    yield* this.#refusals.settle();
    const { rule, changed } = this.#namespaces.take();
    this.#rule = rule;
    yield* this.#admit(services);
    this.#last = yield* this.#result(services, changed);
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
    const { heldBack } = this.#admission;
    return report(this.#sources.all(), this.#rulesState, this.#claims.all(), heldBack, this.#last?.conflicts ?? []);
  }

  /** What is new since the last call. */
  takeNews(): NetworksNews {
    const sources = sourceReports(this.#sources.all(), this.#rulesState);
    const { heldBack } = this.#admission;
    return { sources, changes: this.#changes.take(), counts: this.#counting.counts, heldBack };
  }

  get #rulesState(): ResourceState | undefined {
    return this.#namespaces.followed ? this.#namespaces.state : undefined;
  }

  #changed(): void {
    this.#changedAt ??= this.#clock.monotonic();
  }

  *#expire(services: ServicesView, now: number): Generator<void, void> {
    const isOccupied = occupation(this.#claims, services);
    yield* expire(this.#claims, isOccupied, now, this.#settings.removalDelayMs);
  }

  *#admit(services: ServicesView): Generator<void, void> {
    const now = () => this.#clock.now();
    this.#admission.free(now);
    if (yield* handOver(this.#claims)) yield* this.#refusals.settle();
    yield* this.#counting.update();
    const { maxForeignPercent } = this.#settings;
    // Only asked, not in force: these are not kept.
    const filterWith = (claims: Iterable<Claim>) => filterBySides(this.#counting.with(claims), this.#besides);
    yield* this.#admission.guard({ filterWith, services, maxForeignPercent, now });
    yield* this.#counting.update();
  }

  *#result(services: ServicesView, namespaces: ReadonlySet<string>): Generator<void, NetworksDecision> {
    const cidrs = this.#counting.takeChanged();
    yield* this.#conflicts.update(cidrs);
    const { sides, clusterCIDRs } = this.#counting;
    const now = { sides, neutralAddresses: this.#nodes.all };
    const touched = yield* touchedBy(this.#last ?? NOTHING_YET, now, cidrs, services);
    for (const namespace of namespaces) {
      for (const key of services.inNamespace(namespace)) touched.add(key);
      yield;
    }
    return {
      ...now,
      get excludeCIDRs() {
        return sides.all("excluded");
      },
      get ownCIDRs() {
        return sides.all("own");
      },
      filter: this.#filters.get(sides, this.#besides),
      clusterCIDRs,
      touched,
      conflicts: this.#conflicts.all,
    };
  }

  get #besides(): OptionsBesideCIDRs {
    const rule = this.#rule && { rule: this.#rule };
    return { ...this.#settings.filter, ...rule, neutralAddresses: this.#nodes.all };
  }
}

const NOTHING_YET = { sides: CIDRSides.none, neutralAddresses: new Set<string>() };
