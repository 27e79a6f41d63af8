/** The networks of a cluster, kept up with events of objects: what a caller uses. */
import { type Clock, toEnd } from "@fairlead/base";
import type { EndpointFilter, ServiceKey } from "@fairlead/core";
import {
  API_SERVER,
  type CIDRSides,
  filterBySides,
  type NeutralAddresses,
  type OtherOptions,
  type Protection,
} from "@fairlead/endpoint-filter";
import { authority } from "./authority.ts";
import { ConsentFacts } from "./consent.ts";
import { type Claim, type Claims, claimKey, type DecideSettings, decide, type SourceNow } from "./decide.ts";
import { NodeAddresses, ObjectEvents } from "./events.ts";
import { SourceFacts } from "./facts.ts";
import { type LastKnown, NOTHING_KNOWN } from "./last-known.ts";
import {
  type NetworksReport,
  type NetworksUpdate,
  networksReport,
  networksUpdate,
  type OtherStates,
} from "./report.ts";
import { Namespaces, type RulesNow } from "./rules.ts";
import type { ServicesView } from "./services.ts";
import { type NetworksSettings, type Side, writtenSides } from "./settings.ts";
import { type Conflict, type CountingCIDRs, countingCIDRs, NO_CIDRS, touchedBy, type WrittenCIDRs } from "./sides.ts";
import type { NetworkSource } from "./source.ts";

/** What holds now. */
export interface NetworksDecision {
  /** The CIDRs that count; the longest prefix decides. The same ones as before where nothing changed. */
  readonly sides: CIDRSides;
  /** Those of each side, in canonical order; made when they are asked for. */
  readonly excludeCIDRs: readonly string[];
  /** Those of this cluster's own network. */
  readonly ownCIDRs: readonly string[];
  /** Decides by all this; the same one as before where nothing changed. */
  readonly filter: EndpointFilter;
  /** All of our own CIDRs, to recognize local traffic; the same list while they are the same. */
  readonly clusterCIDRs: readonly string[];
  /** Addresses that are in no network, whatever the CIDRs say. */
  readonly neutralAddresses: NeutralAddresses;
  /** Services with an endpoint where something changed with this decision, or in a namespace whose labels did. */
  readonly touched: ReadonlySet<ServiceKey>;
  /** CIDRs within one of the other side. */
  readonly conflicts: readonly Conflict[];
}

/**
 * The networks of a cluster as their objects define them: takes single events (`objects`) in any order, and decides
 * when asked. Does no I/O and sets no timer: `due` says when to ask again.
 */
export class Networks {
  /** Where events of objects go. */
  readonly objects: ObjectEvents;
  readonly #settings: NetworksSettings;
  readonly #clock: Pick<Clock, "now" | "monotonic">;
  readonly #sources: ReadonlyMap<string, Followed>;
  readonly #consent: ConsentFacts;
  readonly #nodes = new NodeAddresses();
  readonly #namespaces: Namespaces;
  readonly #written: WrittenCIDRs;
  readonly #decideSettings: DecideSettings;
  readonly #startedAt: number;
  /** What the sources' objects defined when they were read last. */
  #defined: ReadonlyMap<string, Pick<SourceNow, "defined" | "complete">> = new Map();
  #claims: Claims;
  #counting: CountingCIDRs = NO_CIDRS;
  /** The claims of the last update. */
  #reported: Claims = new Map();
  #rule: RulesNow["rule"];
  #protection: Protection;
  #options: OtherOptions | undefined;
  #last: NetworksDecision | undefined;
  /** Milliseconds that changes are gathered for: more than the configured ones where a decision takes long. */
  #gatherMs: number;

  constructor(settings: NetworksSettings, clock: Pick<Clock, "now" | "monotonic">, known: LastKnown = NOTHING_KNOWN) {
    this.#settings = settings;
    this.#clock = clock;
    this.#startedAt = clock.monotonic();
    this.#gatherMs = settings.debounceMs;
    this.#sources = followedSources(settings, known);
    this.#claims = knownClaims(this.#sources.values(), known);
    this.#consent = new ConsentFacts(known.consent);
    this.#written = { lists: settings.written, sides: writtenSides(settings) };
    this.#decideSettings = { authority: authority(settings), removalDelayMs: settings.removalDelayMs };
    this.#protection = {
      services: new Set(settings.protectedServices),
      unprotected: new Set(this.#consent.unprotected),
      written: this.#written.sides,
    };
    this.#namespaces = new Namespaces(settings.rules ?? [], known.namespaces, known.defaultVPCs);
    const source = (id: string): SourceFacts => {
      const found = this.#sources.get(id);
      if (found === undefined) throw new RangeError(`unknown source ${id}`);
      return found.facts;
    };
    const facts = { source, consent: this.#consent, namespaces: this.#namespaces, nodes: this.#nodes };
    this.objects = new ObjectEvents(facts, clock);
  }

  /** Whether to decide at all: before that the kernel stays as it is. */
  get ready(): boolean {
    const waited = this.#clock.monotonic() - this.#startedAt >= START_WAIT_MS;
    const isSettled = ({ facts, wasComplete }: Followed) => wasComplete || facts.settled;
    const settled = [...this.#sources.values()].every(isSettled);
    return waited || (this.#namespaces.settled && settled && this.#consent.settled);
  }

  /** Milliseconds from now until `decide` may have something new; undefined: not before the next event. */
  get due(): number | undefined {
    const now = this.#clock.monotonic();
    if (this.#last === undefined) return this.ready ? 0 : Math.max(0, this.#startedAt + START_WAIT_MS - now);
    const { changedAt } = this.objects;
    const times = changedAt === undefined ? [] : [changedAt + this.#gatherMs];
    const { removalDelayMs } = this.#settings;
    const ends = [this.#consent.endsAt(removalDelayMs)];
    for (const { gone } of this.#claims.values()) if (gone?.at !== undefined) ends.push(gone.at + removalDelayMs);
    for (const end of ends) if (end !== undefined) times.push(now + end - this.#clock.now());
    return times.length === 0 ? undefined : Math.max(0, Math.min(...times) - now);
  }

  /** Takes in what is due. The services must be complete before the first call. */
  decide(services: ServicesView): NetworksDecision {
    return toEnd(this.deciding(services));
  }

  /** As `decide`, in steps: what comes between two of them counts with the next decision, which begins after this. */
  *deciding(services: ServicesView): Generator<void, NetworksDecision> {
    const steps = this.#steps(services);
    // Of its steps only: what others do between two of them is theirs.
    for (let tookMs = 0; ; ) {
      const beganAt = this.#clock.monotonic();
      const { done, value } = steps.next();
      tookMs += this.#clock.monotonic() - beganAt;
      if (done === true) {
        this.#gatherMs = Math.max(this.#settings.debounceMs, Math.min(SHARE * tookMs, MOST_GATHER_MS));
        return value;
      }
      yield;
    }
  }

  *#steps(services: ServicesView): Generator<void, NetworksDecision> {
    const { changedAt, serviceCIDRs } = this.objects;
    const isDue = changedAt !== undefined && this.#clock.monotonic() - changedAt >= this.#gatherMs;
    const now = this.#clock.now();
    if (isDue || this.#last === undefined) this.#readObjects();
    const consented = this.#consent.take(now, this.#settings.removalDelayMs);
    if (consented) this.#protection = { ...this.#protection, unprotected: new Set(this.#consent.unprotected) };
    const rules = this.#namespaces.take();
    this.#rule = rules.rule;
    const objects = { sources: [...this.#sourcesNow()], serviceCIDRs, consent: this.#consent.known };
    this.#claims = yield* decide(objects, this.#decideSettings, this.#claims, now);
    const effective = Array.from(this.#claims.values()).filter(({ stage }) => stage === "effective");
    this.#counting = yield* countingCIDRs(effective, this.#written, this.#counting);
    this.#last = yield* this.#result(services, rules, consented);
    return this.#last;
  }

  /** For a file that outlives the agent: what is in effect, of the sources that were complete once. */
  lastKnown(): LastKnown {
    const { known: namespaces, vpcs } = this.#namespaces;
    return {
      sources: knownSources(this.#sources.values(), this.#claims),
      consent: this.#consent.known,
      ...(namespaces && { namespaces }),
      defaultVPCs: [...vpcs.names],
    };
  }

  /** Everything that can be said of the sources and their CIDRs. */
  report(): NetworksReport {
    const { names } = this.#namespaces.vpcs;
    return networksReport(this.#sources.values(), this.#others, this.#claims, this.#counting.conflicts, names);
  }

  /** What changed since the last call. */
  takeUpdate(): NetworksUpdate {
    const update = networksUpdate(this.#sources.values(), this.#others, this.#claims, this.#reported);
    this.#reported = this.#claims;
    return update;
  }

  get #others(): OtherStates {
    const namespaces = this.#namespaces.followed ? this.#namespaces.state : undefined;
    const vpcs = this.#namespaces.asksForVPCs ? this.#namespaces.vpcs.state : undefined;
    return { namespaces, vpcs, consent: this.#consent.state };
  }

  /** All at once: what comes between two steps counts with the next decision, whole. */
  #readObjects(): void {
    this.objects.take();
    const read = Array.from(this.#sources, ([id, followed]) => {
      const { complete } = followed.facts;
      followed.wasComplete ||= complete;
      return [id, { defined: followed.facts.defined(), complete }] as const;
    });
    this.#defined = new Map(read);
  }

  *#sourcesNow(): Generator<SourceNow, void> {
    for (const [id, { side, facts }] of this.#sources) {
      const { defined, complete } = this.#defined.get(id) ?? { defined: new Map(), complete: false };
      yield { id, side, defined, complete, readable: facts.readable };
    }
  }

  *#result(services: ServicesView, rules: RulesNow, consented: boolean): Generator<void, NetworksDecision> {
    const { sides, changed, clusterCIDRs, conflicts } = this.#counting;
    const neutralAddresses = this.#nodes.all;
    const nodesBefore = this.#last?.neutralAddresses ?? new Map();
    const touched = yield* touchedBy(changed, nodesBefore, neutralAddresses, services);
    for (const namespace of rules.changed) {
      for (const key of services.inNamespace(namespace)) touched.add(key);
      yield;
    }
    if (consented) touched.add(API_SERVER);
    if (rules.all) for (const key of services.keys()) touched.add(key);
    return {
      sides,
      neutralAddresses,
      get excludeCIDRs() {
        return sides.all("excluded");
      },
      get ownCIDRs() {
        return sides.all("own");
      },
      filter: this.#filter(neutralAddresses),
      clusterCIDRs,
      touched,
      conflicts,
    };
  }

  /** The same one as before where nothing that it decides by changed. */
  #filter(neutralAddresses: NeutralAddresses): EndpointFilter {
    const rule = this.#rule && { rule: this.#rule };
    const { sides, clusterCIDRs } = this.#counting;
    const options = { ...this.#settings.filter, ...rule, clusterCIDRs, neutralAddresses, protection: this.#protection };
    const [last, before] = [this.#last, this.#options];
    this.#options = options;
    const same = last?.sides === sides && before !== undefined && sameFields(before, options);
    return same ? last.filter : filterBySides(sides, options);
  }
}

interface Followed {
  readonly side: Side;
  readonly source: NetworkSource;
  readonly facts: SourceFacts;
  /** Its first complete list was taken in, by this process or the one before. */
  wasComplete: boolean;
}

function followedSources({ sources }: NetworksSettings, known: LastKnown): ReadonlyMap<string, Followed> {
  const follow = (side: Side, source: NetworkSource): [string, Followed] => {
    const wasComplete = known.sources.has(scopeOf(side, source));
    return [source.id, { side, source, facts: new SourceFacts(source), wasComplete }];
  };
  return new Map((["excluded", "own"] as const).flatMap((side) => sources[side].map((source) => follow(side, source))));
}

/** What the process before this one knew; it counts at once. */
function knownClaims(sources: Iterable<Followed>, known: LastKnown): Claims {
  const claims = Array.from(sources).flatMap(({ side, source }) =>
    (known.sources.get(scopeOf(side, source)) ?? []).map((one): Claim => {
      return { ...one, side, source: source.id, stage: "effective" };
    }),
  );
  return new Map(claims.map((claim) => [claimKey(claim), claim]));
}

function knownSources(sources: Iterable<Followed>, claims: Claims): LastKnown["sources"] {
  const effective = Array.from(claims.values()).filter(({ stage }) => stage === "effective");
  const bySource = Map.groupBy(effective, ({ source }) => source);
  const complete = Array.from(sources).filter(({ wasComplete }) => wasComplete);
  return new Map(
    complete.map(({ side, source }) => {
      const kept = (bySource.get(source.id) ?? []).map(({ cidr, objects, since = 0, gone }) => {
        return { cidr, objects, since, ...(gone && { gone }) };
      });
      return [scopeOf(side, source), kept] as const;
    }),
  );
}

/** The text under which what a source defines is remembered. */
function scopeOf(side: Side, { scope }: NetworkSource): string {
  return `${side} ${scope}`;
}

function sameFields(a: object, b: object): boolean {
  const before = new Map(Object.entries(a));
  const after = Object.entries(b);
  return before.size === after.length && after.every(([name, value]) => before.get(name) === value);
}

/**
 * A decision looks at every CIDR, and users that may create objects decide how many there are: it takes a tenth of the
 * time at most.
 */
const SHARE = 10;
const MOST_GATHER_MS = 60_000;

/** Milliseconds that a start waits for first lists where nothing is known from before. */
const START_WAIT_MS = 10_000;
