import type { VirtualServerKey } from "@fairlead/netfilter";
import { type SlotState, slotHistory, webState } from "@fairlead/testkit/histories";
import { runs } from "@fairlead/tooling/runs";
import fc from "fast-check";
import { expect, test } from "vitest";
import { weights } from "./support/fake-node.ts";
import { live } from "./support/live.ts";
import { openWorld } from "./support/world.ts";

const KEY = "-t 10.96.3.1:80";
const SERVER: VirtualServerKey = { family: "IPv4", protocol: "TCP", address: "10.96.3.1", port: 80 };
const FIRST = { address: "10.144.0.4", port: 8080 };
const OWN = "10.144.0.4:8080";
const OTHER = "10.144.0.5:8080";

const resetting = { resetStaleTCP: true } as const;
const of = (first: SlotState["endpoints"][number], second: SlotState["endpoints"][number]) =>
  webState({ endpoints: [first, second, "none", "none"] });

/** Two endpoints, of which the first has a connection. */
async function connected(options: Parameters<typeof openWorld>[0] = resetting) {
  const made = await live([[[1, of("ready", "ready")]]], { world: openWorld(options) });
  made.node.servers.connect(SERVER, FIRST, 1);
  return made;
}

test("a destination whose endpoint is gone goes at once, though somebody is connected", async () => {
  const made = await connected();
  await made.change([[1, of("none", "ready")]]);
  expect(weights(made.node).get(KEY)).toEqual([`${OTHER} 1`]);
  expect(await made.backend.maintain()).toBeUndefined();
  expect(await made.backend.difference(made.world.plan)).toBeUndefined();
});

test("so does the last one", async () => {
  const made = await connected();
  await made.change([[1, of("none", "none")]]);
  expect(weights(made.node).get(KEY)).toEqual([]);
});

test("one that terminates drains while it is there, and goes when it is not", async () => {
  const made = await connected();
  await made.change([[1, of("terminating", "ready")]]);
  expect(weights(made.node).get(KEY)).toEqual([`${OWN} 0`, `${OTHER} 1`]);
  await made.restart();
  expect(weights(made.node).get(KEY)).toEqual([`${OWN} 0`, `${OTHER} 1`]);
  await made.change([[1, of("none", "ready")]]);
  expect(weights(made.node).get(KEY)).toEqual([`${OTHER} 1`]);
});

test("one that went while no agent ran goes with the start of the next", async () => {
  const made = await connected();
  made.world.change([[1, of("none", "ready")]]);
  await made.restart();
  expect(weights(made.node).get(KEY)).toEqual([`${OTHER} 1`]);
});

test("unless it is asked for, it drains", async () => {
  const made = await connected({});
  await made.change([[1, of("none", "ready")]]);
  expect(weights(made.node).get(KEY)).toEqual([`${OWN} 0`, `${OTHER} 1`]);
});

test("whatever the history, the kernel is as after a fresh start", async () => {
  await fc.assert(
    fc.asyncProperty(slotHistory, async (batches) => {
      const made = await live(batches, { world: openWorld(resetting) });
      expect(await made.differences()).toEqual([]);
    }),
    { numRuns: runs(18) },
  );
});
