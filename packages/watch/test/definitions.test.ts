import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import {
  createManifestsSnapshot,
  createManifestsSource,
  type ObjectChange,
  type OtherSubscription,
} from "../src/index.ts";
import { Consumer, type Kept } from "./support/consumer.ts";
import { temporaryFolder } from "./support/manifests.ts";
import { endAfterEach, later } from "./support/run.ts";

endAfterEach();

/** As an operator describes it: its kind is not known. */
const RESOURCE = { group: "example.org", version: "v1", plural: "podranges", kind: "podranges", namespaced: false };
const definition = (kind: string, more: object = {}) => ({
  apiVersion: "apiextensions.k8s.io/v1",
  kind: "CustomResourceDefinition",
  metadata: { name: "podranges.example.org" },
  spec: { group: "example.org", scope: "Cluster", names: { plural: "podranges", kind }, ...more },
});
const object = (kind: string, name: string, namespace?: string) => ({
  apiVersion: "example.org/v1",
  kind,
  metadata: { name, namespace },
});

function consumer() {
  const one = new Consumer();
  const other: OtherSubscription = {
    decode: one.subscription.decode,
    onChange: (change) => one.subscription.onChange(change as ObjectChange<Kept>),
    resource: RESOURCE,
    onState: () => {},
  };
  return { one, other };
}

async function keysOf(...objects: readonly object[]): Promise<readonly string[]> {
  const { one, other } = consumer();
  const readStandardInput = async () => Buffer.from(JSON.stringify(objects));
  const source = createManifestsSnapshot({ paths: ["-"], nodeName: "node-a", readStandardInput });
  await source.run({ others: [other] }, new AbortController().signal);
  return one.keys();
}

const named = object("CIDRSet", "told");
const guessed = object("PodRange", "guessed");

test.each<[string, readonly object[], readonly string[]]>([
  ["without a definition the kind is guessed", [named, guessed], ["/guessed"]],
  ["a definition's kind is the only one", [named, guessed, definition("CIDRSet")], ["/told"]],
  ["wherever it stands", [definition("CIDRSet"), named, guessed], ["/told"]],
  ["of two the last one counts", [definition("CIDRSet"), named, definition("PodRange"), guessed], ["/guessed"]],
  ["of another group it says nothing", [definition("CIDRSet", { group: "other.org" }), named, guessed], ["/guessed"]],
  ["without names it says nothing", [definition("CIDRSet", { names: null }), named, guessed], ["/guessed"]],
  [
    "objects in namespaces keep theirs",
    [definition("CIDRSet", { scope: "Namespaced" }), object("CIDRSet", "one", "a"), object("CIDRSet", "one", "b")],
    ["a/one", "b/one"],
  ],
])("%s", async (_what, objects, keys) => {
  expect(await keysOf(...objects)).toEqual(keys);
});

test("a text that has the word and is no definition is read as ever", async () => {
  expect(await keysOf(object("PodRange", "of-CustomResourceDefinition"))).toEqual(["/of-CustomResourceDefinition"]);
});

test("in a folder that is followed a definition may come, change and go", async () => {
  const folder = await temporaryFolder();
  const write = (name: string, ...objects: readonly object[]) =>
    writeFile(join(folder, name), objects.map((one) => JSON.stringify(one)).join("\n---\n"));
  await write("objects.yaml", named, guessed);
  const { one, other } = consumer();
  const stop = new AbortController();
  const ended = createManifestsSource({ path: folder, nodeName: "node-a" }).run({ others: [other] }, stop.signal);
  later(async () => {
    stop.abort();
    await ended;
  });
  const keys = () => one.keys().join();
  await one.until(() => one.synced > 0);
  expect(keys()).toBe("/guessed");
  await write("definition.yaml", definition("CIDRSet"));
  await one.until(() => keys() === "/told");
  await write("definition.yaml", definition("PodRange"));
  await one.until(() => keys() === "/guessed");
  await write("definition.yaml", definition("CIDRSet"));
  await one.until(() => keys() === "/told");
  await rm(join(folder, "definition.yaml"));
  await one.until(() => keys() === "/guessed");
});

test("two objects of one resource are two subscriptions", async () => {
  const both = ["one", "other"].map((name) => {
    const { one, other } = consumer();
    const only = { namespace: "kube-system", name };
    return { one, other: { ...other, resource: { ...RESOURCE, kind: "PodRange", namespaced: true, only } } };
  });
  const objects = ["one", "other", "third"].map((name) => object("PodRange", name, "kube-system"));
  const readStandardInput = async () => Buffer.from(JSON.stringify(objects));
  const source = createManifestsSnapshot({ paths: ["-"], nodeName: "node-a", readStandardInput });
  await source.run({ others: both.map(({ other }) => other) }, new AbortController().signal);
  expect(both.map(({ one }) => one.keys())).toEqual([["kube-system/one"], ["kube-system/other"]]);
});

test("a resource that is subscribed twice is an error: only one of them would hear of it", async () => {
  const { other } = consumer();
  const source = createManifestsSnapshot({
    paths: ["-"],
    nodeName: "node-a",
    readStandardInput: async () => Buffer.of(),
  });
  await expect(source.run({ others: [other, other] }, new AbortController().signal)).rejects.toThrow(
    / is subscribed twice; use one subscription for both$/,
  );
});
