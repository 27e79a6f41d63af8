/** Runs a packet from hook to hook. */

import { enterHook, nextHook, routeAfterStage, routeAtStart, serve, UNREACHABLE } from "./route.ts";
import type { StageAt, Stages } from "./stages.ts";
import { translate } from "./targets.ts";
import type { Chain, Frame, RuleVerdict, Walk, WalkContext } from "./walk.ts";
import { type End, KnownWays } from "./ways.ts";

const ACCEPT: End = { kind: "accept" };

/** Takes one packet through the rules of a host. */
export class Runner {
  readonly #stages: Stages;
  readonly #ways: WalkContext;
  readonly #known = new KnownWays();

  constructor(stages: Stages, ways: WalkContext) {
    this.#stages = stages;
    const fork = (other: Walk): void => {
      this.#known.fork();
      ways.fork(other);
    };
    this.#ways = { ...ways, fork };
  }

  /** Walks from where the packet is to the end of its way, before any other is walked. */
  run(walk: Walk): End {
    this.#known.begin();
    const end = this.#run(walk);
    this.#known.end(walk, end);
    return end;
  }

  #run(walk: Walk): End {
    const { host } = this.#ways;
    const refusal = routeAtStart(walk, host);
    if (refusal !== undefined) return refusal;
    for (;;) {
      const stages = this.#stages.at(walk.family, walk.hook);
      const stage = stages[walk.step];
      walk.stage = stage;
      const end = stage?.name === "ipvs" ? this.#askServers(walk) : this.#askChains(walk, stage);
      if (end.kind !== "accept") return end;
      const last = walk.step + 1 === stages.length;
      const refused = routeAfterStage(walk, host, last);
      if (refused !== undefined) return refused;
      const hook = walk.hook;
      if (!this.#advance(walk, last)) return end;
      const known = walk.hook === hook ? undefined : this.#known.follow(walk);
      if (known !== undefined) return known;
    }
  }

  #askServers(walk: Walk): End {
    if (serve(walk, this.#ways.host, this.#ways.fork)) return ACCEPT;
    return { kind: "reject", with: UNREACHABLE[walk.family] };
  }

  #askChains(walk: Walk, stage: StageAt | undefined): End {
    if (walk.frame === undefined && stage !== undefined && (!stage.isNat || this.#asksNat(walk))) {
      const { chain } = stage;
      if (chain !== undefined) enterChain(walk, { chain, returnTo: undefined, from: undefined }, 0);
    }
    return this.#walkChains(walk);
  }

  /**
   * Only the first packet of a connection asks the nat tables, until one has translated it; the later ones go the same
   * way. One that a virtual server sends on has had its turn before OUTPUT.
   */
  #asksNat(walk: Walk): boolean {
    if (walk.looped || (walk.server !== undefined && walk.hook === "OUTPUT")) return false;
    if (walk.state === "NEW") return !walk.bound;
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
    const hook = nextHook(walk, this.#ways.host);
    if (hook === undefined) return false;
    enterHook(walk, hook);
    return true;
  }

  #walkChains(walk: Walk): End {
    while (walk.frame !== undefined) {
      const { chain } = walk.frame;
      const step = walk.said ?? chain.step(walk, this.#ways);
      walk.said = undefined;
      const end = step === undefined ? leave(walk) : follow(step, walk, chain);
      if (end !== undefined) return end;
    }
    return ACCEPT;
  }
}

const DROP: End = { kind: "drop" };

/** @returns how the table ended, if it did */
function follow(step: RuleVerdict, walk: Walk, chain: Chain): End | undefined {
  switch (step.kind) {
    case "next":
      walk.index += 1;
      return undefined;
    case "return":
      return leave(walk);
    case "call":
      call(step.chain, step.goto, walk, chain);
      return undefined;
    default:
      return step;
  }
}

function call(name: string, goto: boolean, walk: Walk, here: Chain): void {
  const from = walk.frame;
  if (from === undefined) return;
  const chain = here.sibling(name);
  if (chain === undefined) throw here.undecidable(walk.index, `there is no chain ${name}`);
  if (isAbove(chain, from)) {
    throw here.undecidable(walk.index, `the chains are a loop: ${loopText(chain, from)}`);
  }
  const returnTo = goto ? from.returnTo : { frame: from, index: walk.index + 1 };
  enterChain(walk, { chain, returnTo, from }, 0);
}

function leave(walk: Walk): End | undefined {
  const policy = leaveChain(walk);
  if (policy === undefined) return undefined;
  return policy === "DROP" ? DROP : ACCEPT;
}

function enterChain(walk: Walk, frame: Frame, index: number): void {
  walk.frame = frame;
  walk.index = index;
}

/** @returns the policy where there is nothing to return to */
function leaveChain(walk: Walk): Chain["policy"] | undefined {
  const frame = walk.frame;
  if (frame?.returnTo !== undefined) {
    enterChain(walk, frame.returnTo.frame, frame.returnTo.index);
    return undefined;
  }
  return bottom(frame)?.chain.policy ?? "ACCEPT";
}

/** The built-in chain: a chain entered by goto from there has nothing to return to but the policy. */
function bottom(frame: Frame | undefined): Frame | undefined {
  let at = frame;
  while (at?.from !== undefined) at = at.from;
  return at;
}

/** Whether the frame is of the chain, or was come to from there. */
function isAbove(chain: Chain, frame: Frame): boolean {
  for (let at: Frame | undefined = frame; at !== undefined; at = at.from) if (at.chain === chain) return true;
  return false;
}

function loopText(chain: Chain, frame: Frame): string {
  const names = [chain.name];
  for (let at: Frame | undefined = frame; at !== undefined && at.chain !== chain; at = at.from)
    names.unshift(at.chain.name);
  return [chain.name, ...names].join(" → ");
}
