import { type CrowdHistory, crowdHistory, followCrowd, randomOf } from "@fairlead/testkit/crowds";
import { runs } from "@fairlead/tooling/runs";
import fc from "fast-check";
import { expect, test } from "vitest";
import { nftablesCrowd } from "./support/crowd.ts";

type Step = CrowdHistory[number]["step"];
type Conditions = Extract<Step, { readonly kind: "endpoints" }>["conditions"];

const awake = (...steps: readonly Step[]): CrowdHistory => steps.map((step) => ({ step, asleep: false }));
/** `##..` is: the first two are ready, of twelve. */
const ready = (text: string): Conditions =>
  Array.from({ length: 12 }, (_, at) => (text[at] === "#" ? "ready" : "none"));
const endpoints = (text: string): Step => ({ kind: "endpoints", conditions: ready(text) });

test.each<readonly [string, CrowdHistory]>([
  ["scaled to none and back, all spread", awake(endpoints("#"), endpoints(""), endpoints(".##########"))],
  ["so they do where one has the old address", awake(endpoints("#"), endpoints(""), endpoints("##########"))],
  [
    "another service at the same address inherits nobody",
    awake(endpoints("#"), endpoints("##########"), { kind: "other" }),
  ],
  ["nor does the same service once it was gone", awake(endpoints("##########"), { kind: "again" })],
  ["a new endpoint takes no client from others", awake(endpoints("####"), endpoints("#####"), endpoints("#####.#"))],
  ["one that comes back does not, either", awake(endpoints("####"), endpoints("###"), endpoints("####"))],
  ["rolling update", awake(...["#####", "######", ".#####", ".######", "..#####", "..######"].map(endpoints))],
  ["another timeout", awake({ kind: "timeout", seconds: 600 }, { kind: "timeout", seconds: 3600 })],
  ["another timeout, and a restart", awake({ kind: "timeout", seconds: 600 }, { kind: "restart" })],
  ["a renamed port", awake({ kind: "renamed" }, { kind: "restart" })],
  ["kube-proxy in between, twice", awake({ kind: "kube-proxy" }, endpoints("#######"), { kind: "kube-proxy" })],
  ["away for too long, all are spread anew", awake(endpoints("#"), endpoints("###"), { kind: "long-wait" })],
])("200 clients: %s", async (_, history) => {
  await expect(followCrowd(history, nftablesCrowd(randomOf(7)))).resolves.toBeUndefined();
});

test("200 clients, whatever happens to their service: each keeps its endpoint while it is usable", async () => {
  await fc.assert(
    fc.asyncProperty(crowdHistory(), fc.integer(), async (history, seed) => {
      await followCrowd(history, nftablesCrowd(randomOf(seed)));
    }),
    { numRuns: runs(7), endOnFailure: true },
  );
});
