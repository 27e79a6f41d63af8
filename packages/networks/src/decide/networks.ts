import { type Clock, toEnd } from "@fairlead/base";
import { API_SERVER, CIDRSides, type OptionsBesideCIDRs, type Protection } from "@fairlead/endpoint-filter";
import type { ServicesView } from "../services/view.ts";
import { authoritySettings } from "./authority.ts";
import type { Claim } from "./claim.ts";
import { ClaimTable } from "./claim-table.ts";
import { Conflicts } from "./conflicts.ts";
import { ConsentFacts } from "./consent.ts";
import { CountingCIDRs } from "./counting.ts";
import { Filters } from "./filters.ts";
import { FollowedSources } from "./followed.ts";
import { forget } from "./kept.ts";
import { type LastKnown, NOTHING_KNOWN } from "./last-known.ts";
import { Namespaces, type RulesNow } from "./namespaces.ts";
import { NodeAddresses } from "./node-addresses.ts";
import { ObjectEvents } from "./object-events.ts";
import { type BesideStates, type NetworksReport, report, sourceReports } from "./report.ts";
import { touchedBy } from "./touched.ts";
import type { NetworksDecision, NetworksSettings } from "./types.ts";
import { ClaimChanges, type NetworksUpdate } from "./update.ts";
import { Verdicts } from "./verdicts.ts";

/** Milliseconds that a start waits for first lists where nothing is known from before. */
const START_WAIT_MS = 10_000;

/**
 * The networks of a cluster as their objects define them: takes single events (`objects`) in any order, and decides
 * when asked. Does no I/O and sets no timer: `due` says when to ask again.
 */
export class Networks {
  /** Where events of objects go. */
  readonly objects: ObjectEvents;
  readonly #settings: NetworksSettings;
  readonly #clock: Pick<Clock, "now" | "monotonic">;
  readonly #claims = new ClaimTable();
  readonly #sources: FollowedSources;
  readonly #consent: ConsentFacts;
  readonly #verdicts: Verdicts;
  readonly #counting: CountingCIDRs;
  readonly #conflicts: Conflicts;
  readonly #changes: ClaimChanges;
  readonly #nodes = new NodeAddresses();
  readonly #namespaces: Namespaces;
  readonly #filters = new Filters();
  readonly #startedAt: number;
  #rule: RulesNow["rule"];
  #protection: Protection;
  #last: NetworksDecision | undefined;

  constructor(settings: NetworksSettings, clock: Pick<Clock, "now" | "monotonic">, known: LastKnown = NOTHING_KNOWN) {
    this.#settings = settings;
    this.#clock = clock;
    this.#startedAt = clock.monotonic();
    this.#sources = new FollowedSources(settings.sources, this.#claims, known);
    this.#consent = new ConsentFacts(known.consent);
    this.#verdicts = new Verdicts(
      this.#claims,
      authoritySettings(settings),
      (claim) => this.#consent.accepts(claim),
      () => clock.now(),
    );
    const theirs = settings.sources.excluded.flatMap(({ id }) => settings.within?.get(id) ?? []);
    this.#counting = new CountingCIDRs(this.#claims, settings.written, theirs);
    this.#protection = {
      services: new Set(settings.protectedServices),
      unprotected: new Set(this.#consent.unprotected),
      written: this.#counting.writtenSides,
    };
    this.#conflicts = new Conflicts(this.#claims, settings.written);
    this.#changes = new ClaimChanges(this.#claims);
    this.#namespaces = new Namespaces(settings.rules ?? [], known.namespaces, known.defaultVPCs);
    const [sources, consent, namespaces] = [this.#sources, this.#consent, this.#namespaces] as const;
    this.objects = new ObjectEvents(
      { sources, consent, namespaces, nodes: this.#nodes, verdicts: this.#verdicts },
      clock,
    );
  }

  /** Whether to decide at all: before that the kernel stays as it is. */
  get ready(): boolean {
    const waited = this.#clock.monotonic() - this.#startedAt >= START_WAIT_MS;
    return waited || (this.#namespaces.settled && this.#sources.settled && this.#consent.settled);
  }

  /** Milliseconds from now until `decide` may have something new; undefined: not before the next event. */
  get due(): number | undefined {
    const now = this.#clock.monotonic();
    if (this.#last === undefined) return this.ready ? 0 : Math.max(0, this.#startedAt + START_WAIT_MS - now);
    const { changedAt } = this.objects;
    const times = changedAt === undefined ? [] : [changedAt + this.#settings.debounceMs];
    const { removalDelayMs } = this.#settings;
    const ends = [
      this.#consent.endsAt(removalDelayMs),
      ...this.#claims.gone().map(({ gone }) => gone?.at && gone.at + removalDelayMs),
    ];
    for (const end of ends) if (end !== undefined) times.push(now + end - this.#clock.now());
    return times.length === 0 ? undefined : Math.max(0, Math.min(...times) - now);
  }

  /** Takes in what is due. The services must be complete before the first call. */
  decide(services: ServicesView): NetworksDecision {
    return toEnd(this.deciding(services));
  }

  /** As `decide`, in steps: what comes between two of them counts with the next decision, which begins after this. */
  *deciding(services: ServicesView): Generator<void, NetworksDecision> {
    const { changedAt } = this.objects;
    const isDue = changedAt !== undefined && this.#clock.monotonic() - changedAt >= this.#settings.debounceMs;
    const now = this.#clock.now();
    const { removalDelayMs } = this.#settings;
    if (isDue || this.#last === undefined) {
      this.objects.take();
      yield* this.#sources.hear(now);
    }
    const consented = this.#consent.take(now, removalDelayMs);
    if (consented) this.#takeConsent();
    const forgets = (cidr: string) => this.#consent.forgets(cidr, now);
    const readable = ({ source }: Claim) => this.#sources.facts(source).readable;
    forget(this.#claims, { readable, forgets, now, removalDelayMs });
    const rules = this.#namespaces.take();
    this.#rule = rules.rule;
    yield* this.#verdicts.settle();
    yield* this.#counting.update();
    this.#last = yield* this.#result(services, rules, consented);
    return this.#last;
  }

  /** For a file that outlives the agent. */
  lastKnown(): LastKnown {
    const { known: namespaces, vpcs } = this.#namespaces;
    return {
      sources: this.#sources.known(),
      consent: this.#consent.known,
      ...(namespaces && { namespaces }),
      defaultVPCs: [...vpcs.names],
    };
  }

  /** Everything that can be said of the sources and their CIDRs. */
  report(): NetworksReport {
    const { names } = this.#namespaces.vpcs;
    return report(this.#sources.all(), this.#beside, this.#claims.all(), this.#last?.conflicts ?? [], names);
  }

  /** What changed since the last call. */
  takeUpdate(): NetworksUpdate {
    const sources = sourceReports(this.#sources.all(), this.#beside);
    const { held } = this.#changes;
    return { sources, changes: this.#changes.take(), counts: this.#counting.counts, held };
  }

  get #beside(): BesideStates {
    const namespaces = this.#namespaces.followed ? this.#namespaces.state : undefined;
    const vpcs = this.#namespaces.asksForVPCs ? this.#namespaces.vpcs.state : undefined;
    return { namespaces, vpcs, consent: this.#consent.state };
  }

  #takeConsent(): void {
    this.#verdicts.judgeAll();
    this.#protection = { ...this.#protection, unprotected: new Set(this.#consent.unprotected) };
  }

  *#result(services: ServicesView, rules: RulesNow, consented: boolean): Generator<void, NetworksDecision> {
    const cidrs = this.#counting.takeChanged();
    yield* this.#conflicts.update(cidrs);
    const { sides, clusterCIDRs } = this.#counting;
    const now = { sides, neutralAddresses: this.#nodes.all };
    const touched = yield* touchedBy(this.#last ?? NOTHING_YET, now, cidrs, services);
    for (const namespace of rules.changed) {
      for (const key of services.inNamespace(namespace)) touched.add(key);
      yield;
    }
    if (consented) touched.add(API_SERVER);
    if (rules.all) for (const key of services.keys()) touched.add(key);
    return {
      ...now,
      get excludeCIDRs() {
        return sides.all("excluded");
      },
      get ownCIDRs() {
        return sides.all("own");
      },
      filter: this.#filters.get(sides, this.#options),
      clusterCIDRs,
      touched,
      conflicts: this.#conflicts.all,
    };
  }

  get #options(): OptionsBesideCIDRs {
    const rule = this.#rule && { rule: this.#rule };
    const protection = this.#protection;
    const { clusterCIDRs } = this.#counting;
    return { ...this.#settings.filter, ...rule, clusterCIDRs, neutralAddresses: this.#nodes.all, protection };
  }
}

const NOTHING_YET = { sides: CIDRSides.none, neutralAddresses: new Map() };
