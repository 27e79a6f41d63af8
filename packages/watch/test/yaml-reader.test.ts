import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, expect, test } from "vitest";
import { type YamlBounds, YamlReader } from "../src/manifests/yaml-reader.ts";
import { followManifests, temporaryFolder } from "./support/manifests.ts";
import { endAfterEach } from "./support/run.ts";

endAfterEach();

const READERS: YamlReader[] = [];
afterEach(() => Promise.all(READERS.splice(0).map((reader) => reader.close())));

function open(bounds?: Partial<YamlBounds>): YamlReader {
  const reader = new YamlReader(bounds);
  READERS.push(reader);
  return reader;
}

/** The parser goes through all the errors before it for each: minutes at the length that is allowed. */
const tags = (count: number) => `a: ${"!a ".repeat(count)}`;
const keys = (count: number) =>
  Array.from({ length: count }, (_, i) => `k${i}: {a: [1, 2.5, null, yes, "x"]}\n`).join("");

test("what a thread reads is what is read here, documents and mistakes", async () => {
  const reader = open();
  for (const count of [1, 2000]) {
    const [document] = await reader.documents({ text: keys(count), line: 0 });
    expect(Object.entries(document as object)).toHaveLength(count);
    expect(document).toMatchObject({ k0: { a: [1, 2.5, null, "yes", "x"] } });
    const broken = reader.documents({ text: `${keys(count)}k: x: y\n`, line: 7 });
    await expect(broken).rejects.toMatchObject({ name: "ManifestSyntaxError", line: count + 8, column: 4 });
    await expect(reader.documents({ text: `${keys(count)}k0: 1\n`, line: 7 })).rejects.toThrow("keys must be unique");
  }
});

test("who reads a long piece leaves the event loop to others", async () => {
  const reader = open();
  await reader.documents({ text: keys(200), line: 0 });
  const before = performance.eventLoopUtilization();
  await expect(reader.documents({ text: tags(20_000), line: 0 })).rejects.toThrow("one tag");
  const { active, idle } = performance.eventLoopUtilization(before);
  expect(active).toBeLessThan(idle);
});

test("a piece that takes too long is given up", async () => {
  const reader = open({ milliseconds: 200 });
  const reading = reader.documents({ text: tags(160_000), line: 4 });
  await expect(reading).rejects.toMatchObject({
    message: "reading this piece of YAML takes longer than 0.2 s; write it as JSON",
    line: 5,
  });
});

test("so is one that takes too much memory", async () => {
  const reading = open({ mebibytes: 32 }).documents({ text: `a: [${"{},".repeat(100_000)}]`, line: 0 });
  await expect(reading).rejects.toThrow("reading this piece of YAML takes more than 32 MiB of memory");
});

test("its file is reported once and skipped, and the others are served meanwhile", { timeout: 60_000 }, async () => {
  const folder = await temporaryFolder();
  const file = join(folder, "a.yaml");
  await writeFile(file, tags(160_000));
  const good = "apiVersion: v1\nkind: Service\nmetadata: {name: good}\nspec: {clusterIP: 10.96.0.1}\n";
  await writeFile(join(folder, "b.yaml"), good);
  const { services, synced, reports } = followManifests(folder);
  await synced();
  await writeFile(join(folder, "c.yaml"), good.replace("good", "second"));
  await services.until(() => services.state.has("default/second"));
  expect(services.keys().toSorted()).toEqual(["default/good", "default/second"]);
  expect(reports).toMatchObject([{ type: "badFile", file, error: expect.stringContaining("takes longer than 10 s") }]);
});
