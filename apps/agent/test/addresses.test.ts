/** Addresses of the node that come and go while a sync is written. */

import { settled } from "@fairlead/base/testing";
import { renderServerKey } from "@fairlead/netfilter";
import { tableLines } from "@fairlead/netfilter/nft";
import { runs } from "@fairlead/tooling/runs";
import fc from "fast-check";
import { expect, test } from "vitest";
import {
  address,
  aWhile,
  nodeA,
  type RunningAgent,
  runningAgent,
  slice,
  webNodePort as web,
} from "./support/running-agent.ts";

const NODE = "10.201.0.10";
const OTHERS = ["10.201.0.11", "10.202.0.10", "10.203.0.10"] as const;
const FIRST = ["10.144.154.71"];

/** At this call to the kernel, counted from the start, the node has these addresses; the call takes a while. */
interface Change {
  readonly at: number;
  readonly addresses: readonly string[];
}

const changes = (most: number) =>
  fc
    .uniqueArray(
      fc.record({
        at: fc.integer({ min: 1, max: 24 }),
        addresses: fc.subarray([NODE, ...OTHERS], { minLength: 1, maxLength: most }),
      }),
      { selector: ({ at }) => at, minLength: 1, maxLength: 4 },
    )
    .map((all) => all.toSorted((a, b) => a.at - b.at));

/** Starts, is given a service and a change of it, while its node's addresses change. */
async function served(mode: string, given: readonly Change[]): Promise<RunningAgent> {
  const flags = [`--proxy-mode=${mode}`, "--cluster-cidr=10.144.0.0/16", "--nodeport-addresses=10.200.0.0/14"];
  const one = await runningAgent({ mode, flags });
  const waiting = [...given];
  let calls = 0;
  const { faults, nftables, ipvs } = one;
  const inVirtualTime = new Set([faults.IPv4, nftables.faults]);
  for (const part of new Set([...inVirtualTime, ipvs.servers.faults, ipvs.sets.faults, ipvs.links.faults]))
    part.onCall(() => {
      calls += 1;
      const [next] = waiting;
      if (next === undefined || calls < next.at) return undefined;
      waiting.shift();
      become(one, next.addresses);
      return inVirtualTime.has(part) ? { kind: "delay", ms: 700 } : undefined;
    });
  await one.list(nodeA, web, slice("web", ...FIRST));
  await aWhile(one.clock);
  await one.source.put(slice("web", ...FIRST, "10.144.154.72"));
  await aWhile(one.clock);
  // What no call came to is changed now.
  for (const { addresses } of waiting.splice(0)) become(one, addresses);
  await aWhile(one.clock);
  return one;
}

function become({ addresses }: RunningAgent, wanted: readonly string[]): void {
  addresses.remove(NODE, ...OTHERS);
  addresses.add(...wanted.map((one) => address(one)));
}

/** All that is programmed; relays have any port that is free. */
function stateOf(one: RunningAgent) {
  const { nftables, ipvs, sockets } = one;
  const table = nftables.tableNow("ip", "kube-proxy");
  const text = JSON.stringify({
    rules: [...one.nat(), ...one.filter()],
    // Elements in whatever order they came.
    table:
      table === undefined
        ? []
        : [...tableLines(table)]
            .flatMap((line) => line.split(/[{},]/))
            .map(trimmed)
            .sort(),
    servers: ipvs.servers
      .servers()
      .map((server) => [renderServerKey(server), server.destinations])
      .sort(),
    sets: ipvs.sets.sets().map(({ members, ...set }) => [set, [...members].sort()]),
    sockets: sockets.listening,
  });
  return JSON.parse(text.replaceAll(/(:|--dport )4\d{4}\b/g, "$1relay"));
}

const trimmed = (text: string) => text.trim();

test.each([
  ["iptables", 4],
  ["nftables", 4],
  ["ipvs", 4],
  // Of several addresses relays stay where they are.
  ["userspace", 1],
] as const)(
  "%s mode: whenever they change, what is programmed is as with the last ones from the start",
  async (mode, most) => {
    await fc.assert(
      fc.asyncProperty(changes(most), async (given) => {
        const one = await served(mode, given);
        const last = given.at(-1)?.addresses ?? [];
        const fresh = await served(mode, [{ at: 1, addresses: last }]);
        expect(stateOf(one)).toEqual(stateOf(fresh));
        await Promise.all([one.stop(), fresh.stop()]);
        await settled();
      }),
      { numRuns: runs(4) },
    );
  },
);
