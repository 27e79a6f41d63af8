import type { Table } from "@fairlead/netfilter";
import type { CompiledRuleSet } from "./compile.ts";
import { type Refusal, routeAfterStage, routeAtStart } from "./decide-route.ts";
import { TraceError } from "./errors.ts";
import { enterChain, isAbove, leaveChain, loopText } from "./frames.ts";
import { matchesHeader } from "./header.ts";
import type { Host } from "./host.ts";
import { matchProbability } from "./matches.ts";
import { type Place, undecidable } from "./place.ts";
import { enterHook, nextHook, STAGES_AT } from "./route.ts";
import { serve, UNREACHABLE } from "./serve.ts";
import { applyTarget, isNeutral, type Step, translate } from "./targets.ts";
import type { Visit } from "./types.ts";
import { toArray, type Walk } from "./walk.ts";

/** How a way ended. */
export type End =
  | { readonly kind: "accept" | "drop" }
  | { readonly kind: "reject"; readonly with: string }
  /** No route takes it. */
  | Refusal;

const ACCEPT: End = { kind: "accept" };
const DROP: End = { kind: "drop" };

export interface RunnerOptions {
  /** Called with the other half of a random choice, or of an assumption. */
  readonly onFork: (other: Walk) => void;
  /** Takes both ways where a match can't be decided; else that is an error. */
  readonly assuming: boolean;
}

/** A way that takes more for granted than this tells nobody anything. */
const MAX_ASSUMPTIONS = 10;

/** Takes packets through a rule set on one host. */
export class Runner {
  readonly #ruleSet: CompiledRuleSet;
  readonly #host: Host;
  readonly #onFork: (other: Walk) => void;
  readonly #assuming: boolean;

  constructor(ruleSet: CompiledRuleSet, host: Host, { onFork, assuming }: RunnerOptions) {
    this.#ruleSet = ruleSet;
    this.#host = host;
    this.#onFork = onFork;
    this.#assuming = assuming;
  }

  /** Walks from where the packet is to the end of its way. */
  run(walk: Walk): End {
    const refusal = routeAtStart(walk, this.#host);
    if (refusal !== undefined) return refusal;
    for (;;) {
      const stage = STAGES_AT[walk.hook][walk.step];
      const end = stage === "ipvs" ? this.#askServers(walk) : this.#askTable(walk, stage);
      if (end.kind !== "accept") return end;
      const last = walk.step + 1 === STAGES_AT[walk.hook].length;
      const refused = routeAfterStage(walk, this.#host, last);
      if (refused !== undefined) return refused;
      if (!this.#advance(walk, last)) return end;
    }
  }

  #askServers(walk: Walk): End {
    if (serve(walk, this.#host, this.#onFork)) return ACCEPT;
    return { kind: "reject", with: UNREACHABLE[walk.family] };
  }

  #askTable(walk: Walk, table: Table | undefined): End {
    if (walk.frame === undefined && table !== undefined && (table !== "nat" || this.#asksNat(walk))) {
      const chain = this.#ruleSet.chain(table, walk.hook);
      if (chain !== undefined) enterChain(walk, { chain, returnTo: undefined, from: undefined }, 0);
    }
    return this.#walkTable(walk);
  }

  /**
   * Only the first packet of a connection asks the nat tables; the later ones go as it was told. One that a virtual
   * server sends on has had its turn before OUTPUT.
   */
  #asksNat(walk: Walk): boolean {
    if (walk.looped || (walk.server !== undefined && walk.hook === "OUTPUT")) return false;
    if (walk.state === "NEW") return true;
    const first = walk.hook === "PREROUTING" || walk.hook === "OUTPUT";
    if (first && walk.entry !== undefined) translate(walk, walk.entry.address, walk.entry.port);
    return false;
  }

  /** @returns false when the way is at its end */
  #advance(walk: Walk, last: boolean): boolean {
    walk.frame = undefined;
    if (!walk.sentOn && !last) {
      walk.step += 1;
      return true;
    }
    const hook = nextHook(walk, this.#host);
    if (hook === undefined) return false;
    enterHook(walk, hook);
    return true;
  }

  #walkTable(walk: Walk): End {
    while (walk.frame !== undefined) {
      const { chain } = walk.frame;
      walk.index = chain.next(walk.index, walk.destination.words);
      const rule = chain.rule(walk.index);
      const end = rule === undefined ? leave(walk) : this.#visit({ walk, host: this.#host, chain, rule });
      if (end !== undefined) return end;
    }
    return ACCEPT;
  }

  /** @returns how the table ended, if it did */
  #visit(place: Place): End | undefined {
    const { walk, rule } = place;
    if (!this.#matches(place)) {
      walk.index += 1;
      return undefined;
    }
    walk.visits = { item: visitOf(place), before: walk.visits };
    const { target } = rule.rule;
    return this.#follow(target === undefined ? { kind: "next" } : applyTarget(target, place), place);
  }

  /** Matches that can't be decided count only where all others match. */
  #matches(place: Place): boolean {
    const { walk, rule } = place;
    let open: TraceError | undefined;
    const decide = (question: () => number): number => {
      try {
        return question();
      } catch (error) {
        if (!this.#assuming || !(error instanceof TraceError)) throw error;
        open ??= error;
        return 1;
      }
    };
    if (decide(() => (matchesHeader(place) ? 1 : 0)) === 0) return false;
    for (const match of rule.rule.matches) {
      const probability = decide(() => matchProbability(match, place));
      if (probability === 0) return false;
      if (probability < 1) this.#choose(walk, probability);
    }
    return open === undefined || this.#assume(place, open);
  }

  /** Goes on with the packets that match; the others go on at the next rule. */
  #choose(walk: Walk, probability: number): void {
    this.#onFork({ ...walk, index: walk.index + 1, probability: walk.probability * (1 - probability) });
    walk.probability *= probability;
  }

  /** Goes on as if the rule matched, and on another way as if it did not. */
  #assume(place: Place, error: TraceError): boolean {
    const { walk, rule } = place;
    if (isNeutral(rule.rule.target)) return false;
    if (toArray(walk.assumed).length >= MAX_ASSUMPTIONS) throw error;
    const assumption = { ...visitOf(place), problem: error.problem };
    const before = walk.assumed;
    this.#onFork({ ...walk, index: walk.index + 1, assumed: { item: { ...assumption, matched: false }, before } });
    walk.assumed = { item: { ...assumption, matched: true }, before };
    return true;
  }

  #follow(step: Step, place: Place): End | undefined {
    const { walk } = place;
    switch (step.kind) {
      case "next":
        walk.index += 1;
        return undefined;
      case "return":
        return leave(walk);
      case "call":
        this.#call(step.chain, step.goto, place);
        return undefined;
      default:
        return step;
    }
  }

  #call(name: string, goto: boolean, place: Place): void {
    const { walk } = place;
    const from = walk.frame;
    if (from === undefined) return;
    const chain = this.#ruleSet.chain(place.chain.table, name);
    if (chain === undefined) throw undecidable(place, `there is no chain ${name}`);
    if (isAbove(chain, from)) throw undecidable(place, `the chains are a loop: ${loopText(chain, from)}`);
    const returnTo = goto ? from.returnTo : { frame: from, index: walk.index + 1 };
    enterChain(walk, { chain, returnTo, from }, 0);
  }
}

function leave(walk: Walk): End | undefined {
  const policy = leaveChain(walk);
  if (policy === undefined) return undefined;
  return policy === "DROP" ? DROP : ACCEPT;
}

function visitOf({ walk, chain, rule }: Place): Visit {
  return { hook: walk.hook, table: chain.table, chain: chain.name, index: rule.index, rule: rule.rule };
}
