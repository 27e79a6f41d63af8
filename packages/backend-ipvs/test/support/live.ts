import type { PlanChange } from "@fairlead/core";
import { compareRuleSets } from "@fairlead/netfilter";
import type { SlotChanges, World } from "@fairlead/testkit/histories";
import { createIpvsBackend, type IpvsModeBackend, type IpvsOptions } from "../../src/index.ts";
import { FakeNode, objectsOf } from "./fake-node.ts";
import { openWorld } from "./world.ts";

/** A backend over a node in memory, with a clock that stands still until it is told. */
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

  /** Another process in the place of this one. */
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

  /** How the node differs from one that was started fresh with the same services; nobody is connected anymore. */
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
