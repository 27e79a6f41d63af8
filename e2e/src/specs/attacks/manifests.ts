import { setTimeout as sleep } from "node:timers/promises";
import type { Spec } from "../spec.ts";
import { underAttackFromManifests } from "./from-manifests.ts";
import type { Mirror } from "./mirror.ts";

const CYCLE = `apiVersion: v1
kind: Service
metadata: &itself
  name: cycle
  annotations:
    itself: *itself
spec:
  clusterIP: 10.96.9.9
  ports: [{ port: 80 }]
`;
const DEPTH = 50_000;
const LARGE_MIB = 300;
const READ_MS = 5_000;
const MIB = "x".repeat(1 << 20);

const HEAD = '{"apiVersion":"v1","kind":"Service","metadata":{"name":';

function* deep() {
  yield `${HEAD}"deep","annotations":${"[".repeat(DEPTH)}${"]".repeat(DEPTH)}}}`;
}

function* large() {
  yield `${HEAD}"large","annotations":{"a":"`;
  for (let at = 0; at < LARGE_MIB; at++) yield MIB;
  yield '"}}}';
}

const small: readonly (readonly [name: string, text: () => Iterable<string>])[] = [
  ["a-cycle.yaml", () => [CYCLE]],
  ["b-deep.json", deep],
  ["c-deep.yaml", deep],
];

async function addSmall(mirror: Mirror): Promise<void> {
  for (const [name, text] of small) await mirror.add(name, text());
}

export const hostileManifests: readonly Spec[] = [
  underAttackFromManifests({
    name: "attack: a cyclic alias and deep nesting among the manifests",
    act: async (attacked, mirror) => {
      await addSmall(mirror);
      await sleep(READ_MS);
      return { meanwhile: await attacked.change("meanwhile") };
    },
  }),
  underAttackFromManifests({
    name: "attack: a cyclic alias and deep nesting among the manifests before the agent starts",
    before: addSmall,
    act: async (attacked) => ({ meanwhile: await attacked.change("meanwhile") }),
  }),
  underAttackFromManifests({
    name: `attack: a manifest of ${LARGE_MIB} MiB`,
    act: async (attacked, mirror) => {
      await mirror.add("d-large.json", large());
      await mirror.add("e-large.yaml", large());
      await sleep(READ_MS);
      return { meanwhile: await attacked.change("meanwhile") };
    },
  }),
];
