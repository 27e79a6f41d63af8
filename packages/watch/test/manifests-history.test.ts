import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { runs } from "@fairlead/tooling/runs";
import fc from "fast-check";
import { expect, test } from "vitest";
import type { ResourceName } from "../src/index.ts";
import { ManifestFollower } from "../src/manifests/follower.ts";
import { scan } from "../src/manifests/scan.ts";
import { type Publisher, publisher } from "../src/publisher.ts";
import { resourceSpecs } from "../src/resources.ts";
import { Consumer } from "./support/consumer.ts";
import { temporaryFolder } from "./support/manifests.ts";
import { endAfterEach } from "./support/run.ts";

endAfterEach();

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
    { numRuns: runs(100) },
  );
});
