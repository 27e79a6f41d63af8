import { mkdir, rename, rm, symlink, unlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { VirtualClock } from "@fairlead/base/testing";
import { runs } from "@fairlead/tooling/runs";
import fc from "fast-check";
import { expect, test } from "vitest";
import type { ResourceName } from "../src/index.ts";
import { scan } from "../src/manifests/files.ts";
import { ManifestFollower } from "../src/manifests/source.ts";
import { type Publisher, publisher } from "../src/publisher.ts";
import { resourceSpecs } from "../src/resources.ts";
import { Consumer, endAfterEach, followManifests, temporaryFolder } from "./support/fake-api.ts";

endAfterEach();

const service = (name: string, port = 80) =>
  `apiVersion: v1\nkind: Service\nmetadata: {name: ${name}}\nspec: {clusterIP: 10.96.0.9, ports: [{port: ${port}}]}\n`;

test("a folder: YAML documents, JSON, Lists and bare arrays; each resource to its consumer", async () => {
  const folder = await temporaryFolder();
  const node = { apiVersion: "v1", kind: "Node", metadata: { name: "node-a" }, spec: { podCIDR: "10.144.0.0/24" } };
  const other = { apiVersion: "v1", kind: "Node", metadata: { name: "node-b" } };
  const slice = {
    apiVersion: "discovery.k8s.io/v1",
    kind: "EndpointSlice",
    metadata: { name: "s" },
    addressType: "IPv4",
  };
  const cidr = { apiVersion: "networking.k8s.io/v1", kind: "ServiceCIDR", metadata: { name: "kubernetes" } };
  await writeFile(join(folder, "services.yaml"), `---\n${service("a")}---\n${service("b")}---\n`);
  await writeFile(join(folder, "array.json"), JSON.stringify([node, other, cidr]));
  const list = { apiVersion: "discovery.k8s.io/v1", kind: "EndpointSliceList", items: [{ ...slice, kind: undefined }] };
  await writeFile(join(folder, "list.yml"), JSON.stringify({ apiVersion: "v1", kind: "List", items: [slice] }));
  await writeFile(
    join(folder, "typed-list.json"),
    JSON.stringify({ ...list, items: [{ metadata: { name: "t", namespace: "x" } }] }),
  );
  await writeFile(join(folder, "readme.txt"), "not looked at");
  await writeFile(join(folder, ".hidden.yaml"), "{{{");
  const seen = followManifests(folder);
  await seen.synced();
  expect(seen.services.keys()).toEqual(["default/a", "default/b"]);
  expect(seen.slices.keys()).toEqual(["default/s", "x/t"]);
  expect(seen.node.keys()).toEqual(["/node-a"]);
  expect(seen.cidrs.keys()).toEqual(["/kubernetes"]);
  expect(seen.reports).toEqual([]);
});

test("a path that becomes something that is no file is not read", async () => {
  const seen = followManifests("/dev/zero");
  expect(await seen.reported("waiting")).toMatchObject([
    { path: "/dev/zero", error: "/dev/zero is neither a file nor a folder" },
  ]);
  expect(seen.services.changes).toEqual([]);
});

test("an empty folder is an empty cluster", async () => {
  const seen = followManifests(await temporaryFolder());
  await seen.synced();
  expect(seen.services.changes).toEqual([{ type: "synced" }]);
});

test("a file is changed in place, replaced by another, removed", async () => {
  const folder = await temporaryFolder();
  const file = join(folder, "a.yaml");
  await writeFile(file, `${service("a")}---\n${service("b")}`);
  const { services, synced } = followManifests(folder);
  await synced();
  const given = services.changes.length;
  // Without a moment in which it is empty.
  await writeFile(file, `${service("a", 81)}---\n${service("b")}`, { flag: "r+" });
  await services.until(() => JSON.stringify(services.state.get("default/a")).includes('"port":81'));
  expect(services.changes.length).toBe(given + 1);
  await writeFile(join(folder, ".a.yaml.swp"), service("c"));
  await rename(join(folder, ".a.yaml.swp"), file);
  await services.until(() => services.state.has("default/c"));
  await services.until(() => services.state.size === 1);
  await unlink(file);
  await services.until(() => services.state.size === 0);
});

test("a mounted ConfigMap: the files are links into a folder that is swapped", async () => {
  const folder = await temporaryFolder();
  await mkdir(join(folder, "..1"));
  await writeFile(join(folder, "..1", "a.yaml"), service("a"));
  await symlink("..1", join(folder, "..data"));
  await symlink("..data/a.yaml", join(folder, "a.yaml"));
  const { services, synced } = followManifests(folder);
  await synced();
  expect(services.keys()).toEqual(["default/a"]);
  await mkdir(join(folder, "..2"));
  await writeFile(join(folder, "..2", "a.yaml"), service("b"));
  await symlink("..2", join(folder, "..data_tmp"));
  await rename(join(folder, "..data_tmp"), join(folder, "..data"));
  await rm(join(folder, "..1"), { recursive: true });
  await services.until(() => services.state.has("default/b"));
  await services.until(() => services.state.size === 1);
});

test("a file that doesn't parse keeps its last good objects and says where it is wrong", async () => {
  const folder = await temporaryFolder();
  const file = join(folder, "a.yaml");
  await writeFile(file, service("a"));
  await writeFile(join(folder, "b.yaml"), service("b"));
  const { services, synced, reported } = followManifests(folder);
  await synced();
  // In one go: of a file that is being written it may be read that there is nothing in it.
  await writeFile(join(folder, "next"), `${service("a2")}---\nkind: [Service\n`);
  await rename(join(folder, "next"), file);
  expect(await reported("badFile")).toMatchObject([{ file, line: 7, column: 1, kept: 1 }]);
  expect(services.keys()).toEqual(["default/a", "default/b"]);
  await writeFile(file, service("a2"));
  await services.until(() => services.state.has("default/a2"));
  await services.until(() => !services.state.has("default/a"));
});

test("JSON that is wrong: line and column too; the other files are served", async () => {
  const folder = await temporaryFolder();
  await writeFile(join(folder, "a.json"), '[\n  {"kind": "Service",}\n]\n');
  await writeFile(join(folder, "b.json"), '[{"kind": "Service"');
  await writeFile(join(folder, "c.yaml"), service("c"));
  const { services, synced, reports } = followManifests(folder);
  await synced();
  expect(services.keys()).toEqual(["default/c"]);
  expect(reports).toMatchObject([
    { type: "badFile", file: join(folder, "b.json"), line: 1, column: 20, kept: 0 },
    { type: "badFile", file: join(folder, "a.json"), line: 2, column: 22, kept: 0 },
  ]);
});

test("the same object in two files: the last file has it, the other one takes over", async () => {
  const folder = await temporaryFolder();
  const [first, second] = [join(folder, "1.yaml"), join(folder, "2.yaml")];
  await writeFile(first, service("a", 1));
  await writeFile(second, service("a", 2));
  const { services, synced, reports } = followManifests(folder);
  const port = () => JSON.stringify(services.state.get("default/a")?.spec);
  await synced();
  expect(port()).toContain('"port":2');
  expect(reports).toEqual([
    { type: "duplicate", resource: "services", key: "default/a", used: second, ignored: first },
  ]);
  await unlink(second);
  await services.until(() => port().includes('"port":1'));
  await writeFile(second, service("a", 3));
  await services.until(() => port().includes('"port":3'));
  expect(services.changes.filter((change) => change.type === "delete")).toEqual([]);
  expect(reports).toHaveLength(1);
});

test("an object that moves to another file is never gone", async () => {
  const folder = await temporaryFolder();
  await writeFile(join(folder, "1.yaml"), `${service("a")}---\n${service("b")}`);
  const { services, synced } = followManifests(folder);
  await synced();
  await writeFile(join(folder, ".2"), `${service("a")}---\n${service("c")}`);
  await writeFile(join(folder, ".1"), service("b"));
  await rename(join(folder, ".2"), join(folder, "2.yaml"));
  await rename(join(folder, ".1"), join(folder, "1.yaml"));
  await services.until(() => services.state.has("default/c"));
  expect(services.changes.filter((change) => change.type === "delete")).toEqual([]);
});

test("a single file: followed through an editor's rename; removed, its objects go", async () => {
  const folder = await temporaryFolder();
  const file = join(folder, "all.yaml");
  await writeFile(file, service("a"));
  await writeFile(join(folder, "other.yaml"), service("x"));
  const { services, synced } = followManifests(file);
  await synced();
  expect(services.keys()).toEqual(["default/a"]);
  await rename(file, join(folder, "all.yaml~"));
  await writeFile(file, service("b"));
  await services.until(() => services.state.has("default/b"));
  await services.until(() => services.state.size === 1);
  await unlink(file);
  await services.until(() => services.state.size === 0);
});

test("a path that isn't there yet is waited for, and said once a minute; a folder that vanishes keeps its objects", async () => {
  const folder = join(await temporaryFolder(), "manifests");
  const clock = new VirtualClock();
  const { services, reports, reported } = followManifests(folder, { clock });
  const waits = () => reports.filter((report) => report.type === "waiting");
  expect(await reported("waiting")).toMatchObject([{ path: folder, kept: 0 }]);
  /** The next look at the files: after its sign the debounce, then the scan. */
  const look = async () => {
    clock.advanceNow(10_000);
    clock.advanceNow(await clock.timer((delay) => delay === 50));
  };
  await look();
  expect(services.synced).toBe(0);
  expect(waits()).toHaveLength(1);
  await mkdir(folder);
  await writeFile(join(folder, "a.yaml"), service("a"));
  // Twice or so: a file that was written just now is read at the next look.
  while (services.synced === 0) await look();
  expect(services.keys()).toEqual(["default/a"]);
  await rm(folder, { recursive: true });
  while (waits().length < 2) await look();
  expect(waits()[1]).toMatchObject({ kept: 1 });
  expect(services.keys()).toEqual(["default/a"]);
});

/** What a file holds: name → port; "broken": text that is no YAML. */
type Content = Readonly<Record<string, number>> | "broken";

const fileName = fc.constantFrom("1.yaml", "2.json", "3.yml");
const objects = fc.dictionary(fc.constantFrom("a", "b", "c"), fc.nat(3), { maxKeys: 3 });
const content: fc.Arbitrary<Content> = fc.oneof(
  { weight: 4, arbitrary: objects },
  { weight: 1, arbitrary: fc.constant("broken") },
);
const step = fc.oneof(
  { weight: 4, arbitrary: fc.record({ write: fileName, content }) },
  { weight: 1, arbitrary: fc.record({ remove: fileName }) },
  { weight: 3, arbitrary: fc.constant("look" as const) },
);

/** The files as last read well, in the order of names, later ones on top. */
function merged(files: ReadonlyMap<string, Content>): Record<string, number> {
  const contents = [...files].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, one]) => (one === "broken" ? {} : one));
  return Object.assign({}, ...contents);
}

function text(of: Content): string {
  if (of === "broken") return "[}";
  const services = Object.entries(of).map(([name, port]) => ({
    apiVersion: "v1",
    kind: "Service",
    metadata: { name },
    spec: { ports: [{ port }] },
  }));
  return JSON.stringify(services);
}

test("whatever is written, broken and removed, the consumer ends with what the files hold", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 25, size: "max" }), async (steps) => {
      const folder = await temporaryFolder();
      const consumer = new Consumer();
      const services = publisher("services", consumer.subscription, () => {});
      const publishers = new Map<ResourceName, Publisher>([["services", services]]);
      const follower = new ManifestFollower(resourceSpecs({ nodeName: "node-a" }), publishers, () => {});
      const disk = new Map<string, Content>();
      const readable = new Map<string, Content>();
      const look = async () => {
        const found = await scan(folder, () => Number.MAX_SAFE_INTEGER);
        if (found.type === "files") await follower.pass(found.files);
        for (const [file, is] of disk) if (is !== "broken") readable.set(file, is);
        for (const file of readable.keys()) if (!disk.has(file)) readable.delete(file);
        expect(consumer.keys()).toEqual(
          Object.keys(merged(readable))
            .map((name) => `default/${name}`)
            .sort(),
        );
      };
      for (const one of steps) {
        if (one === "look") await look();
        else if ("write" in one) {
          await writeFile(join(folder, one.write), text(one.content));
          disk.set(one.write, one.content);
        } else {
          await rm(join(folder, one.remove), { force: true });
          disk.delete(one.remove);
        }
      }
      await look();
      // With a broken file an object may stay as the file said that had it before.
      if ([...disk.values()].includes("broken")) return;
      const ports = [...consumer.state].map(([key, { spec }]) => [
        key.slice(8),
        /"port":(\d)/.exec(JSON.stringify(spec))?.[1],
      ]);
      const wanted = Object.entries(merged(readable)).map(([name, port]) => [name, String(port)]);
      expect(Object.fromEntries(ports)).toEqual(Object.fromEntries(wanted));
    }),
    { numRuns: runs(35) },
  );
});
