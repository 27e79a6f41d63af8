import type { Table } from "@fairlead/netfilter";
import type { CompiledChain, CompiledRuleSet } from "./compile.ts";
import { matchesHeader } from "./header.ts";
import type { Host } from "./host.ts";
import { matchProbability } from "./matches.ts";
import { type Place, undecidable } from "./place.ts";
import { enterHook, nextHook, STAGES_AT } from "./route.ts";
import { serve, UNREACHABLE } from "./serve.ts";
import { applyTarget, type Step, translate } from "./targets.ts";
import type { Frame, Walk } from "./walk.ts";

/** How a way ended. */
export type End = { readonly kind: "accept" | "drop" } | { readonly kind: "reject"; readonly with: string };

const ACCEPT: End = { kind: "accept" };
const DROP: End = { kind: "drop" };

/** Takes packets through a rule set on one host. */
export class Runner {
  readonly #ruleSet: CompiledRuleSet;
  readonly #host: Host;
  /** Called with the other half of a random choice. */
  readonly #onFork: (other: Walk) => void;

  constructor(ruleSet: CompiledRuleSet, host: Host, onFork: (other: Walk) => void) {
    this.#ruleSet = ruleSet;
    this.#host = host;
    this.#onFork = onFork;
  }

  /** Walks from where the packet is to the end of its way. */
  run(walk: Walk): End {
    for (;;) {
      const stage = STAGES_AT[walk.hook][walk.step];
      const end = stage === "ipvs" ? this.#askServers(walk) : this.#askTable(walk, stage);
      if (end.kind !== "accept" || !this.#advance(walk)) return end;
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
   * Only the first packet of a connection asks the nat tables; the later ones go as it was told. One that a virtual server
   * sends on has had its turn before OUTPUT.
   */
  #asksNat(walk: Walk): boolean {
    if (walk.looped || (walk.server !== undefined && walk.hook === "OUTPUT")) return false;
    if (walk.state === "NEW") return true;
    const first = walk.hook === "PREROUTING" || walk.hook === "OUTPUT";
    if (first && walk.entry !== undefined) translate(walk, walk.entry.address, walk.entry.port);
    return false;
  }

  /** @returns false when the way is at its end */
  #advance(walk: Walk): boolean {
    walk.frame = undefined;
    if (!walk.sentOn && walk.step + 1 < STAGES_AT[walk.hook].length) {
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
      const rule = chain.rules[walk.index];
      const end = rule === undefined ? leaveChain(walk) : this.#visit({ walk, host: this.#host, chain, rule });
      if (end !== undefined) return end;
    }
    return ACCEPT;
  }

  /** @returns how the table ended, if it did */
  #visit(place: Place): End | undefined {
    const { walk, rule, chain } = place;
    if (!this.#matches(place)) {
      walk.index += 1;
      walk.match = 0;
      return undefined;
    }
    walk.match = 0;
    walk.visits = {
      item: { hook: walk.hook, table: chain.table, chain: chain.name, index: rule.index, rule: rule.rule },
      before: walk.visits,
    };
    const { target } = rule.rule;
    return this.#follow(target === undefined ? { kind: "next" } : applyTarget(target, place), place);
  }

  #matches(place: Place): boolean {
    const { walk, rule } = place;
    if (walk.match === 0 && !matchesHeader(place)) return false;
    const { matches } = rule.rule;
    for (let match = matches[walk.match]; match !== undefined; match = matches[walk.match]) {
      const probability = matchProbability(match, place);
      if (probability === 0) return false;
      if (probability < 1) this.#choose(walk, probability);
      walk.match += 1;
    }
    return true;
  }

  /** Goes on with the packets that match; the others go on at the next rule. */
  #choose(walk: Walk, probability: number): void {
    this.#onFork({ ...walk, index: walk.index + 1, match: 0, probability: walk.probability * (1 - probability) });
    walk.probability *= probability;
  }

  #follow(step: Step, place: Place): End | undefined {
    const { walk } = place;
    switch (step.kind) {
      case "next":
        walk.index += 1;
        return undefined;
      case "return":
        return leaveChain(walk);
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

function enterChain(walk: Walk, frame: Frame, index: number): void {
  walk.frame = frame;
  walk.index = index;
  walk.match = 0;
}

/** @returns the policy's verdict where there is nothing to return to */
function leaveChain(walk: Walk): End | undefined {
  const frame = walk.frame;
  if (frame?.returnTo !== undefined) {
    enterChain(walk, frame.returnTo.frame, frame.returnTo.index);
    return undefined;
  }
  return bottom(frame)?.chain.policy === "DROP" ? DROP : ACCEPT;
}

/** The built-in chain: a chain entered by goto from there has nothing to return to but the policy. */
function bottom(frame: Frame | undefined): Frame | undefined {
  let at = frame;
  while (at?.from !== undefined) at = at.from;
  return at;
}

function isAbove(chain: CompiledChain, frame: Frame): boolean {
  for (let at: Frame | undefined = frame; at !== undefined; at = at.from) if (at.chain === chain) return true;
  return false;
}

function loopText(chain: CompiledChain, frame: Frame): string {
  const names = [chain.name];
  for (let at: Frame | undefined = frame; at !== undefined && at.chain !== chain; at = at.from)
    names.unshift(at.chain.name);
  return [chain.name, ...names].join(" → ");
}
