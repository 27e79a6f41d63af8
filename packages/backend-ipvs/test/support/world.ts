import type { PlanChange, PlannerOptions } from "@fairlead/core";
import { compareRuleSets } from "@fairlead/netfilter";
import { type GoldenNode, goldenNode, goldenPlannerOptions, ipvsEnvironment } from "@fairlead/testkit";
import { type SlotChanges, traceSlots, World } from "@fairlead/testkit/histories";
import type { Environment, Outcome } from "@fairlead/trace";
import { createIpvsBackend, DEVICE, type IpvsModeBackend, type IpvsOptions, ipvsSemantics } from "../../src/index.ts";
import { FakeNode, objectsOf } from "./fake-node.ts";

export function plannerOptions(node: GoldenNode, more: Partial<PlannerOptions> = {}): PlannerOptions {
  return goldenPlannerOptions(node, ipvsSemantics, more);
}

export function worldOptions(nodeAddresses: readonly string[] = ["10.201.0.10", "127.0.0.1"]): PlannerOptions {
  return plannerOptions(goldenNode(false), { nodeAddresses: { IPv4: nodeAddresses } });
}

export function openWorld(more: Partial<PlannerOptions> = {}): World {
  return new World({ ...worldOptions(), ...more });
}

type Ends = ReadonlyMap<string, ReadonlySet<string>>;

/** Where packets to every frontend that a slot can have may end, by a name for the packet. */
export function whereabouts(node: FakeNode, slots: readonly number[]): Ends {
  const traced = [...traceSlots(node.rules.IPv4.ruleSet(), slots, environmentOf(node))];
  return new Map(traced.map(([packet, outcomes]) => [packet, new Set(outcomes.map(endOf))]));
}

/** The packet goes its way as if there were no proxy. */
const UNSERVED = "unserved";

/** Nothing answers: the virtual server is empty, or a rule refuses. */
const REFUSED = "refused";

/**
 * The packets that may end where they should neither before nor after: what both serve has to be served between them,
 * by an endpoint that one of them knows. A server can't be changed in one step, so its destinations may be of both.
 */
export function wrongEnds(now: Ends, before: Ends, after: Ends): string[] {
  return [...now].flatMap(([packet, ends]) => {
    const old = before.get(packet) ?? new Set();
    const wanted = after.get(packet) ?? new Set();
    const known = [...old, ...wanted];
    const refusals = isServed(old) && isServed(wanted) ? [] : [UNSERVED, REFUSED];
    // To be masqueraded is to be served, if without the client's address; not to be where it was asked for is not.
    const right = new Set([...known, ...known.map((end) => `${end} as the node`), ...refusals]);
    const wrong = [...ends].filter((end) => !right.has(end));
    if (wrong.length === 0) return [];
    return [`${packet}: ${wrong.join(", ")}; before: ${[...old].join(", ")}; wanted: ${[...wanted].join(", ")}`];
  });
}

function environmentOf({ servers, sets, links }: FakeNode): Environment {
  const addresses = links.device(DEVICE) ?? [];
  return ipvsEnvironment({ servers: servers.servers(), sets: sets.sets(), addresses });
}

function endOf({ verdict, destination, masqueraded, translated }: Outcome): string {
  if (verdict !== "accept") return REFUSED;
  if (!translated) return UNSERVED;
  return `${destination.address}:${destination.port}${masqueraded ? " as the node" : ""}`;
}

function isServed(ends: ReadonlySet<string>): boolean {
  return ends.size > 0 && !ends.has(UNSERVED) && !ends.has(REFUSED);
}

/** A backend over a node in memory, with a clock that only moves when the test says so. */
export class Live {
  readonly node: FakeNode;
  readonly world: World;
  readonly problems: string[] = [];
  backend: IpvsModeBackend;
  now = 0;
  readonly #options: IpvsOptions;

  constructor({
    node = new FakeNode(),
    world = openWorld(),
    options = {},
  }: {
    readonly node?: FakeNode;
    readonly world?: World;
    readonly options?: IpvsOptions;
  } = {}) {
    this.node = node;
    this.world = world;
    const onProblem = (problem: string) => void this.problems.push(problem);
    this.#options = { clock: { monotonic: () => this.now }, onProblem, ...options };
    this.backend = this.#start();
  }

  async restart(): Promise<void> {
    this.backend = this.#start();
    await this.backend.sync(this.world.plan);
  }

  async sync(): Promise<void> {
    await this.backend.sync(this.world.plan);
  }

  async change(steps: SlotChanges): Promise<void> {
    await this.apply(this.world.change(steps));
  }

  async apply(change: PlanChange | undefined): Promise<void> {
    if (change !== undefined) await this.backend.apply(this.world.plan, change);
  }

  /** Lets a time go by and calls maintain as often as it asks for it. */
  async wait(ms: number): Promise<void> {
    const end = this.now + ms;
    for (;;) {
      const next = await this.backend.maintain();
      if (next === undefined || this.now + next > end) break;
      this.now += next;
    }
    this.now = end;
    await this.backend.maintain();
  }

  /** How the node differs from one that was started fresh with the same services; no client is connected anymore. */
  async differences(): Promise<unknown[]> {
    await this.wait(120_000);
    const { node } = await live([], { world: this.world });
    const objects = { ours: objectsOf(this.node), fresh: objectsOf(node) };
    const rules = compareRuleSets(node.rules.IPv4.ruleSet(), this.node.rules.IPv4.ruleSet());
    const more = objects.ours.filter((one) => !objects.fresh.includes(one)).map((one) => `more: ${one}`);
    const fewer = objects.fresh.filter((one) => !objects.ours.includes(one)).map((one) => `missing: ${one}`);
    return [...more, ...fewer, ...rules];
  }

  #start(): IpvsModeBackend {
    return createIpvsBackend(this.node.port("IPv4"), this.#options);
  }
}

/** Synced with nothing, then changed batch by batch. */
export async function live(
  batches: readonly SlotChanges[],
  options: ConstructorParameters<typeof Live>[0] = {},
): Promise<Live> {
  const made = new Live(options);
  await made.sync();
  for (const batch of batches) await made.change(batch);
  return made;
}
