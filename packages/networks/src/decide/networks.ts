import type { Clock } from "@fairlead/base";
import type { EndpointFilter, ServiceKey } from "@fairlead/core";
import type { ServicesView } from "../services/view.ts";
import type { NetworkSource } from "../sources/source.ts";
import type { Claim, Side } from "./claim.ts";
import { ClaimTable } from "./claim-table.ts";
import { conflicts } from "./conflicts.ts";
import { type ResourceState, SourceFacts } from "./facts.ts";
import { Filters } from "./filters.ts";
import { type Followed, scopeOf } from "./followed.ts";
import { admit } from "./guard.ts";
import { type LastKnown, NOTHING_KNOWN } from "./last-known.ts";
import { Namespaces, type RulesNow } from "./namespaces.ts";
import { NodeAddresses } from "./node-addresses.ts";
import { refusals } from "./refusals.ts";
import { type NetworksReport, report } from "./report.ts";
import { type ResolvedCIDRs, resolve } from "./resolve.ts";
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
  readonly #sources: ReadonlyMap<string, Followed>;
  readonly #claims = new ClaimTable();
  readonly #nodes = new NodeAddresses();
  readonly #namespaces: Namespaces;
  readonly #filters = new Filters();
  readonly #startedAt: number;
  #serviceCIDRs: readonly string[] = [];
  #rule: RulesNow["rule"];
  #turned: ReadonlySet<ServiceKey>;
  #heldBack = 0;
  /** Monotonic milliseconds of the first event since the last decision that took them in. */
  #changedAt: number | undefined;
  #last: NetworksDecision | undefined;

  constructor(settings: NetworksSettings, clock: Pick<Clock, "now" | "monotonic">, known: LastKnown = NOTHING_KNOWN) {
    this.#settings = settings;
    this.#clock = clock;
    this.#startedAt = clock.monotonic();
    this.#turned = new Set(known.turned);
    this.#namespaces = new Namespaces(settings.rules ?? [], known.namespaces);
    this.#sources = new Map(
      (["excluded", "own"] as const).flatMap((side) =>
        settings.sources[side].map((source): [string, Followed] => [source.id, this.#follow(side, source, known)]),
      ),
    );
  }

  #follow(side: Side, source: NetworkSource, { sources }: LastKnown): Followed {
    const known = sources.get(scopeOf(side, source));
    for (const { cidr, objects, since, consented } of known ?? []) {
      this.#claims.put({ side, source: source.id, cidr, objects, since, consented, stage: "effective" });
    }
    return { side, source, facts: new SourceFacts(source), wasComplete: known !== undefined };
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
    return this.#followed(source).facts.upsert(resource, object, raw);
  }

  delete(source: string, resource: number, object: string): void {
    this.#changed();
    this.#followed(source).facts.delete(resource, object);
  }

  /** `listed` comes after the first list's objects, and again after what interrupted it. */
  setState(source: string, resource: number, state: Exclude<ResourceState, "waiting">): void {
    this.#changed();
    this.#followed(source).facts.setState(resource, state);
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
    const held = this.#claims.all().filter(({ stage }) => stage === "held");
    for (const claim of held) claim.consented = true;
    if (held.length > 0) this.#turned = new Set();
    this.#changed();
    return held.length;
  }

  /** Whether to decide at all: before that the kernel stays as it is. */
  get ready(): boolean {
    const waited = this.#clock.monotonic() - this.#startedAt >= START_WAIT_MS;
    if (waited) return true;
    return (
      this.#namespaces.settled &&
      [...this.#sources.values()].every(({ facts, wasComplete }) => wasComplete || facts.settled)
    );
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
    const now = this.#clock.monotonic();
    const isDue = this.#changedAt !== undefined && now - this.#changedAt >= this.#settings.debounceMs;
    if (isDue || this.#last === undefined) this.#hear();
    this.#claims.expire((cidr) => services.within(cidr).size === 0, now, this.#settings.removalDelayMs);
    this.#claims.refuse(refusals(this.#settings.written, this.#usable(), this.#serviceCIDRs));
    const { rule, changed } = this.#namespaces.take();
    this.#rule = rule;
    this.#admit(services);
    const before = this.#last;
    const after = this.#result();
    const ruled = [...changed].flatMap((namespace) => [...services.inNamespace(namespace)]);
    this.#last = { ...after, touched: new Set([...touchedBy(before, after, services), ...ruled]) };
    return this.#last;
  }

  /** For a file that outlives the agent. */
  lastKnown(): LastKnown {
    const sources = [...this.#sources.values()].filter(({ wasComplete }) => wasComplete);
    const known = ({ side, source }: Followed) =>
      this.#claims.effective().flatMap(({ cidr, objects, since = 0, consented, ...claim }) => {
        return claim.side === side && claim.source === source.id ? [{ cidr, objects, since, consented }] : [];
      });
    const entries = sources.map((one) => [scopeOf(one.side, one.source), known(one)] as const);
    const { known: namespaces } = this.#namespaces;
    return { sources: new Map(entries), turned: [...this.#turned], ...(namespaces && { namespaces }) };
  }

  /** Everything that can be said of the sources and their CIDRs. */
  report(): NetworksReport {
    const rules = this.#namespaces.followed ? this.#namespaces.state : undefined;
    return report(this.#sources.values(), rules, this.#claims.all(), this.#heldBack);
  }

  #changed(): void {
    this.#changedAt ??= this.#clock.monotonic();
  }

  #followed(source: string): Followed {
    const found = this.#sources.get(source);
    if (found === undefined) throw new RangeError(`there is no source ${source}`);
    return found;
  }

  #hear(): void {
    this.#changedAt = undefined;
    for (const followed of this.#sources.values()) {
      const { side, source, facts, wasComplete } = followed;
      this.#claims.hear(side, source.id, facts.said(), facts.complete, !wasComplete);
      followed.wasComplete ||= facts.complete;
    }
  }

  #usable(): readonly Claim[] {
    return this.#claims.all().filter(({ unusable }) => unusable !== true);
  }

  #admit(services: ServicesView): void {
    const waiting = this.#claims.all().filter(({ stage }) => stage === "pending" || stage === "held");
    const isFree = ({ side, consented }: Claim) => side === "own" || consented;
    for (const claim of waiting.filter(isFree)) this.#count(claim);
    const effective = this.#claims.effective();
    const { admitted, held, turned, heldBack } = admit({
      pending: waiting.filter((claim) => !isFree(claim)),
      filterWith: (claims) => this.#filter(resolve(this.#settings.written, [...effective, ...claims])),
      services,
      turned: new Set([...this.#turned].filter((key) => services.service(key) !== undefined)),
      maxForeignPercent: this.#settings.maxForeignPercent,
    });
    this.#turned = turned;
    this.#heldBack = heldBack;
    for (const claim of admitted) this.#count(claim);
    const limit = `at most ${this.#settings.maxForeignPercent} % may without consent`;
    for (const claim of held) {
      claim.stage = "held";
      claim.why = `with what came before, ${heldBack} of ${services.size} services would turn foreign; ${limit}`;
    }
  }

  #count(claim: Claim): void {
    claim.stage = "effective";
    claim.since = this.#clock.now();
    delete claim.why;
  }

  #filter(cidrs: ResolvedCIDRs): EndpointFilter {
    const rule = this.#rule && { rule: this.#rule };
    return this.#filters.get(cidrs, { ...this.#settings.filter, ...rule, neutralAddresses: this.#nodes.all });
  }

  #result(): Omit<NetworksDecision, "touched"> {
    const { written } = this.#settings;
    const effective = this.#claims.effective();
    const learnt = effective.filter(({ side }) => side === "own").map(({ cidr }) => cidr);
    const resolved = resolve(written, effective);
    return {
      ...resolved,
      filter: this.#filter(resolved),
      clusterCIDRs: [...new Set([...written.own, ...learnt.sort()])],
      neutralAddresses: this.#nodes.all,
      conflicts: conflicts(written, effective),
    };
  }
}
