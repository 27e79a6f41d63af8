import { readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { parseManifest } from "../src/manifests/parse.ts";
import { collected } from "../src/manifests/snapshot.ts";
import { endAfterEach, followManifests, temporaryFolder } from "./support/fake-api.ts";

endAfterEach();

const parse = (file: string, text: string) => collected(parseManifest(file, Buffer.from(text)));

async function follow(text: string, name = "all.yaml") {
  const folder = await temporaryFolder();
  await writeFile(join(folder, name), text);
  const seen = followManifests(folder);
  await seen.synced();
  return { ...seen, file: join(folder, name) };
}

test("the server's selections: no service of another proxy, no headless service or slice, the own node", async () => {
  const label = (name: string) => `labels: {service.kubernetes.io/${name}: ""}`;
  const seen = await follow(`
apiVersion: v1
kind: Service
metadata: {name: other, ${label("service-proxy-name")}}
spec: {clusterIP: 10.96.0.1}
---
apiVersion: v1
kind: Service
metadata: {name: headless}
spec: {clusterIPs: [None]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: headless, ${label("headless")}}
---
apiVersion: v1
kind: Node
metadata: {name: node-b}
`);
  const all = [seen.services, seen.slices, seen.node, seen.cidrs];
  expect(all.map((consumer) => consumer.changes)).toEqual(all.map(() => [{ type: "synced" }]));
  expect(seen.reports).toEqual([]);
});

test("other kinds are skipped with one line for each; objects without a name are reported", async () => {
  const { services, reports, file } = await follow(`
apiVersion: v1
kind: ConfigMap
metadata: {name: a}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: b}
---
apiVersion: discovery.k8s.io/v1beta1
kind: EndpointSlice
metadata: {name: old}
---
just text
---
apiVersion: v1
kind: Service
metadata: {namespace: x}
---
apiVersion: v1
kind: Service
metadata: {name: good}
`);
  expect(services.keys()).toEqual(["default/good"]);
  expect(reports).toEqual([
    {
      type: "badObject",
      resource: "endpointSlices",
      file,
      error: 'EndpointSlice old: apiVersion "discovery.k8s.io/v1beta1" must be discovery.k8s.io/v1',
    },
    { type: "badObject", resource: "services", file, error: "a Service without metadata.name" },
    { type: "skippedKind", file, kind: "v1 ConfigMap", count: 2 },
    { type: "skippedKind", file, kind: "an object without kind", count: 1 },
  ]);
});

test("the same object twice in a file: the last one, and it is said", async () => {
  const text = (port: number) =>
    `{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {ports: [{port: ${port}}]}}\n`;
  const { services, reports } = await follow(`${text(1)}---\n${text(2)}`);
  expect(JSON.stringify(services.state.get("default/a"))).toContain('"port":2');
  expect(reports).toMatchObject([{ type: "duplicate", key: "default/a" }]);
});

test("a cluster-scoped object with a namespace has none", async () => {
  const { node } = await follow("{apiVersion: v1, kind: Node, metadata: {name: node-a, namespace: default}}");
  expect(node.keys()).toEqual(["/node-a"]);
});

test("flow YAML that begins like JSON is read as YAML; in a .json file it is an error", async () => {
  expect(await parse("a.yaml", "{kind: Service, n: [1, 2]}\n---\nkind: Node\n")).toEqual([
    { kind: "Service", n: [1, 2] },
    { kind: "Node" },
  ]);
  await expect(parse("a.json", "{kind: Service}")).rejects.toMatchObject({ line: 1, column: 2 });
});

test("documents: empty ones, comments, end marks, Windows line ends, --- inside a block of text", async () => {
  expect(
    await parse("a.yaml", "# only a comment\n---\r\na: 1\r\n---\r\n---\nb: |\n  ---\n  x\n...\n---\nc: 3\n"),
  ).toEqual([{ a: 1 }, { b: "---\nx\n" }, { c: 3 }]);
  expect(await parse("a.yaml", "%YAML 1.2\n---\na: 1\n---\nb: 2\n")).toEqual([{ a: 1 }, { b: 2 }]);
  expect(await parse("a.yaml", "")).toEqual([]);
});

test("lists: empty, null, of a kind of their own, and what is only called a list", async () => {
  expect(await parse("a.yaml", "kind: List\nitems: []\n---\nkind: NodeList\nitems: null\n")).toEqual([]);
  expect(await parse("a.yaml", "apiVersion: v1\nkind: NodeList\nitems: [{metadata: {name: n}}]")).toEqual([
    { apiVersion: "v1", kind: "Node", metadata: { name: "n" } },
  ]);
  expect(await parse("a.yaml", "kind: AllowList\nitems: {a: 1}")).toEqual([{ kind: "AllowList", items: { a: 1 } }]);
});

test("anchors and merges are resolved; a billion laughs are not", async () => {
  expect(await parse("a.yaml", "x: &x {p: 1}\ny: {<<: *x, q: 2}\nz: *x\n")).toEqual([
    { x: { p: 1 }, y: { p: 1, q: 2 }, z: { p: 1 } },
  ]);
  const laughs = Array.from({ length: 9 }, (_, i) => `a${i + 1}: &a${i + 1} [${Array(9).fill(`*a${i}`)}]`);
  await expect(parse("a.yaml", `a0: &a0 [lol]\n${laughs.join("\n")}\n`)).rejects.toThrow(/alias/i);
});

test.each([
  ["a: 1\n---\nb: [\n", 4, 1],
  ["a: 1\n---\nb: 1\nb: 2\n", 4, 1],
  ["a: 1\n\tb: 2\n", 2, 1],
  ["%YAML 1.2\n---\na: 1\n---\nb: {\n", 6, 1],
])("where %j is wrong", async (text, line, column) => {
  await expect(parse("a.yaml", text)).rejects.toMatchObject({ line, column });
});

test("a name like __proto__ is a name", async () => {
  for (const [file, text] of [
    ["a.json", '{"__proto__": {"kind": "Service"}, "a": 1}'],
    ["a.yaml", "__proto__: {kind: Service}\na: 1\n"],
  ] as const) {
    const [raw] = await parse(file, text);
    expect(Object.getPrototypeOf(raw)).toBe(Object.prototype);
  }
});

const golden = fileURLToPath(new URL("../../testkit/fixtures/golden/scenarios/", import.meta.url));

test("the scenarios of the real kube-proxy are manifests", async () => {
  const files = (await readdir(golden)).filter((name) => name.endsWith(".json"));
  expect(files.length).toBeGreaterThanOrEqual(20);
  for (const name of files) {
    const objects = await collected(parseManifest(name, await readFile(join(golden, name))));
    expect(objects).toEqual(JSON.parse(await readFile(join(golden, name), "utf8")));
  }
});
