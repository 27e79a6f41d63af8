import { open, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { stringify } from "yaml";
import { parseManifest } from "../src/manifests/parse.ts";
import { collected } from "../src/manifests/snapshot.ts";
import { endAfterEach, followManifests, temporaryFolder } from "./support/fake-api.ts";
import { followElsewhere } from "./support/peak-memory.ts";

endAfterEach();

const GOOD = "apiVersion: v1\nkind: Service\nmetadata: {name: good}\nspec: {clusterIP: 10.96.0.1}\n";
const service = (spec: string) => `{apiVersion: v1, kind: Service, metadata: {name: bad}, spec: ${spec}}\n`;
const inJson = (spec: string) => `{"apiVersion":"v1","kind":"Service","metadata":{"name":"bad"},"spec":${spec}}`;
const nested = (levels: number) => "[".repeat(levels) + "]".repeat(levels);

test.each([
  ["cycle.yaml", service("&a {b: *a}"), /an alias stands inside what it refers to/],
  [
    "cycle-list.yaml",
    "apiVersion: v1\nkind: List\nitems: &a\n- apiVersion: v1\n  kind: Service\n  spec: *a\n",
    /alias/,
  ],
  ["deep.json", inJson(nested(50_000)), /nested deeper than 100 levels/],
  ["deep-list.json", `{"kind":"List","items":[${inJson(nested(50_000))}]}`, /nested deeper than 100 levels/],
  ["just-too-deep.json", inJson(nested(101)), /nested deeper than 100 levels/],
  ["deep.yaml", service(nested(50_000)), /nested deeper than 100 levels/],
  ["dashes.yaml", `a: 1\nspec:\n  ${"- ".repeat(50_000)}\n`, /nested deeper than 100 levels/],
  ["copies.yaml", service(`{a: &a "${"x".repeat(200_000)}", b: [${"*a,".repeat(90)}]}`), /larger than 8 MiB/],
  ["large.json", inJson(`"${"x".repeat(9 * 2 ** 20)}"`), /larger than 8 MiB/],
  ["large.yaml", service(`"${"x".repeat(2 ** 20)}"`), /a document of 1 MiB; YAML is read up to 0.5 MiB/],
])("%s: the other files are served from the start, it is reported once by name", async (name, text, error) => {
  const folder = await temporaryFolder();
  const file = join(folder, name);
  await writeFile(file, text);
  await writeFile(join(folder, "good.yaml"), GOOD);
  const { services, synced, reports } = followManifests(folder);
  await synced();
  expect(services.keys()).toEqual(["default/good"]);
  expect(reports).toEqual([expect.objectContaining({ type: "badFile", file, error: expect.stringMatching(error) })]);
  await writeFile(join(folder, "second.yaml"), GOOD.replace("good", "second"));
  await services.until(() => services.state.has("default/second"));
  expect(reports).toHaveLength(1);
});

test("nesting as deep as it may be is read", async () => {
  const [raw] = await collected(parseManifest("a.json", Buffer.from(inJson(nested(99)))));
  expect(raw).toEqual(JSON.parse(inJson(nested(99))));
  await expect(collected(parseManifest("a.yaml", Buffer.from(service(nested(99)))))).resolves.toHaveLength(1);
});

const { FAIRLEAD_ATTACK_MEGABYTES: megabytes = "100" } = process.env;

test("a huge file is not read, and costs no memory", async () => {
  const folder = await temporaryFolder();
  await writeFile(join(folder, "good.yaml"), GOOD);
  const file = await open(join(folder, "huge.json"), "w");
  await file.truncate(Number(megabytes) * 1e6);
  await file.close();
  const { services, reports, mebibytes } = await followElsewhere(folder, "default/good");
  expect(services).toEqual(["default/good"]);
  expect(reports).toMatchObject([
    { type: "badFile", error: expect.stringMatching(/^the file is .* may have 64 MiB: split it$/) },
  ]);
  expect(mebibytes).toBeLessThan(64);
});

test("a large file takes the memory of its text, not of its objects", async () => {
  const folder = await temporaryFolder();
  const one = JSON.parse(inJson("{}"));
  const ports = Array.from({ length: 40 }, (_, i) => ({ name: `p${i}`, port: 1000 + i, protocol: "TCP" }));
  const items = Array.from({ length: 16_000 }, (_, i) => ({ ...one, metadata: { name: `s${i}` }, spec: { ports } }));
  const text = JSON.stringify({ kind: "List", apiVersion: "v1", items });
  await writeFile(join(folder, "a.json"), text);
  const { services, mebibytes } = await followElsewhere(folder, "default/s15999");
  expect(services).toHaveLength(16_000);
  expect(mebibytes).toBeLessThan(2 * (text.length / 2 ** 20) + 100);
});

test("a long YAML list is read item by item, with the places of what is wrong", async () => {
  const items = Array.from({ length: 3000 }, (_, i) => ({
    apiVersion: "v1",
    kind: "Service",
    metadata: { name: `s${i}`, annotations: { script: "a: |\n- b\nitems:\n- c\n" } },
  }));
  for (const indentSeq of [true, false]) {
    const text = stringify({ apiVersion: "v1", items, kind: "List", metadata: { resourceVersion: "" } }, { indentSeq });
    expect(text.length).toBeGreaterThan(2 ** 18);
    expect(await collected(parseManifest("a.yaml", Buffer.from(text)))).toEqual(items);
    const broken = text.replace("name: s2999", "name: s2999: x");
    const line = broken.slice(0, broken.indexOf("s2999: x")).split("\n").length;
    await expect(collected(parseManifest("a.yaml", Buffer.from(broken)))).rejects.toMatchObject({ line });
    const aliased = text.replace("name: s0", "name: &x s0").replace("name: s2\n", "name: *x\n");
    if (aliased.length < 2 ** 19) {
      expect(await collected(parseManifest("a.yaml", Buffer.from(aliased)))).toHaveLength(3000);
    }
  }
});
