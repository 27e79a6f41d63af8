import { VirtualClock } from "@fairlead/base/testing";
import { FakeIptables, type Faults } from "@fairlead/kernel/fake";
import { type Rule, type RuleSet, renderRule } from "@fairlead/netfilter";
import { FakeSockets } from "../../src/fake/index.ts";
import { createUserspaceBackend, type RelayingBackend, type UserspaceOptions } from "../../src/index.ts";
import { type Slot, World } from "./world.ts";

/** A backend over a kernel in memory, with the world that it serves. */
export interface Live {
  readonly world: World;
  readonly kernel: FakeIptables;
  readonly faults: Faults;
  readonly sockets: FakeSockets;
  readonly clock: VirtualClock;
  readonly problems: string[];
  readonly backend: RelayingBackend;
  change(steps: Iterable<readonly [number, Slot]>): Promise<void>;
  /** What the kernel holds, with the services in place of their relays' ports. */
  held(): readonly string[];
}

export function live(
  options: UserspaceOptions = {},
  kernel: FakeIptables = new FakeIptables({ family: "IPv4" }),
  world: World = new World(),
): Live {
  const sockets = new FakeSockets();
  const clock = new VirtualClock();
  const problems: string[] = [];
  const onProblem = (problem: string) => void problems.push(problem);
  const backend = createUserspaceBackend(kernel, { open: sockets.open, clock, onProblem, ...options });
  return {
    world,
    kernel,
    faults: kernel.faults,
    sockets,
    clock,
    problems,
    backend,
    async change(steps) {
      const change = world.change(steps);
      if (change !== undefined) await backend.apply(world.plan(), change);
    },
    held: () => heldBy(kernel.ruleSet(), sockets),
  };
}

/**
 * Every rule of our chains and of those that lead there, in the order of its chain; across groups the order is
 * anybody's.
 */
function heldBy(ruleSet: RuleSet, sockets: FakeSockets): readonly string[] {
  const lines: string[] = [];
  for (const [table, { chains }] of ruleSet) {
    for (const [chain, { rules }] of chains)
      lines.push(...rules.map((rule) => `${table} ${chain}${named(rule, sockets)}`));
  }
  return lines.sort();
}

function named(rule: Rule, sockets: FakeSockets): string {
  const port = (text: string) => sockets.listening.find((socket) => socket.includes(`:${text} `));
  const name = (text: string) => {
    const [socket = "", protocol = ""] = port(text)?.split(" ") ?? [];
    return port(text) === undefined ? text : `<${sockets.serviceAt(protocol, socket)}>`;
  };
  return ` ${renderRule(rule).replace(/4\d{4}/g, name)}`;
}
