import type { IPFamily, MemoryUpdate, Ownership, ServiceKey } from "@fairlead/core";
import { runs } from "@fairlead/tooling/runs";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { Memory, parseMemory, serializeMemory } from "../src/index.ts";

const SCOPE = { excludeCIDRs: ["10.244.0.0/16"], mixedServices: "own-endpoints", ownershipAnnotation: true } as const;

const WEB: ServiceKey = "default/web";
const name = fc.stringMatching(/^[a-z]{1,3}$/);
const owner = fc.constantFrom<Ownership>("ours", "foreign", "mixed");
const fields = {
  service: fc.tuple(name, name).map(([namespace, text]): ServiceKey => `${namespace}/${text}`),
  family: fc.constantFrom<IPFamily>("IPv4", "IPv6"),
};
const update: fc.Arbitrary<MemoryUpdate> = fc.record({ ...fields, ownership: owner });

describe("memory", () => {
  test("is a value", () => {
    const before = Memory.empty.set(WEB, "IPv4", "foreign");
    const after = before.set(WEB, "IPv6", "ours");
    expect(before.get(WEB, "IPv6")).toBeUndefined();
    expect([after.get(WEB, "IPv4"), after.get(WEB, "IPv6")]).toEqual(["foreign", "ours"]);
    expect(after.forget(WEB).size).toBe(0);
    expect(after.size).toBe(1);
  });

  test("is the same one when nothing changes", () => {
    const memory = Memory.empty.set(WEB, "IPv4", "foreign");
    expect(memory.set(WEB, "IPv4", "foreign")).toBe(memory);
    expect(memory.forget("default/other")).toBe(memory);
    expect(memory.apply([])).toBe(memory);
  });

  test("a change leaves the other services alone", () => {
    const memory = Memory.empty.set(WEB, "IPv4", "foreign").set("default/other", "IPv4", "ours");
    expect(memory.set(WEB, "IPv4", "mixed").get("default/other", "IPv4")).toBe("ours");
    expect([...memory.forget("default/other").services()]).toEqual([WEB]);
  });

  test("an update without ownership forgets one family", () => {
    const memory = Memory.empty.set(WEB, "IPv4", "foreign").set(WEB, "IPv6", "mixed");
    const after = memory.apply([{ service: WEB, family: "IPv4" }]);
    expect([...after.entries()]).toEqual([[WEB, { IPv6: "mixed" }]]);
    expect([...after.services()]).toEqual([WEB]);
  });
});

describe("many changes", () => {
  const steps = fc.array(fc.array(fc.record({ ...fields, ownership: fc.option(owner, { nil: undefined }) })), {
    minLength: 50,
    maxLength: 300,
  });

  test("come to what a map of them holds, and every memory stays as it was", () => {
    fc.assert(
      fc.property(steps, (all) => {
        const model = new Map<string, Ownership>();
        let memory = Memory.empty;
        const seen: { memory: Memory; model: ReadonlyMap<string, Ownership> }[] = [];
        for (const updates of all) {
          memory = memory.apply(updates.map(withoutUndefined));
          for (const { service, family, ownership } of updates) {
            if (ownership === undefined) model.delete(`${service} ${family}`);
            else model.set(`${service} ${family}`, ownership);
          }
          seen.push({ memory, model: new Map(model) });
        }
        for (const step of seen) expect(flat(step.memory)).toEqual(step.model);
      }),
      { numRuns: runs(10) },
    );
  });

  function flat(memory: Memory): ReadonlyMap<string, Ownership> {
    const entries = [...memory.entries()];
    expect(entries).toHaveLength(memory.size);
    expect([...memory.services()]).toEqual(entries.map(([service]) => service));
    return new Map(
      entries.flatMap(([service, families]) =>
        Object.entries(families).map(([family, ownership]) => [`${service} ${family}`, ownership]),
      ),
    );
  }

  function withoutUndefined({
    ownership,
    ...at
  }: Omit<MemoryUpdate, "ownership"> & { ownership: Ownership | undefined }): MemoryUpdate {
    return ownership === undefined ? at : { ...at, ownership };
  }
});

describe("its text", () => {
  test("comes back equal, whatever the order of the updates", () => {
    fc.assert(
      fc.property(fc.uniqueArray(update, { selector: ({ service, family }) => service + family }), (updates) => {
        const memory = Memory.empty.apply(updates);
        const text = serializeMemory(memory, SCOPE);
        const { memory: read, reason } = parseMemory(text, SCOPE);
        expect(reason).toBeUndefined();
        expect(new Map(read.entries())).toEqual(new Map(memory.entries()));
        expect(serializeMemory(Memory.empty.apply(updates.toReversed()), SCOPE)).toBe(text);
      }),
    );
  });

  test.each([
    ["", "is not a JSON object written by Fairlead"],
    ["{", "is not a JSON object written by Fairlead"],
    ["[]", "is not a JSON object written by Fairlead"],
    ["null", "is not a JSON object written by Fairlead"],
    ['{"version":2}', "has version 2, this Fairlead reads version 1"],
    ["{}", "has version none, this Fairlead reads version 1"],
    [serializeMemory(Memory.empty, { ...SCOPE, excludeCIDRs: [] }), "was written with other options"],
    [serializeMemory(Memory.empty, { ...SCOPE, mixedServices: "skip" }), "was written with other options"],
    [serializeMemory(Memory.empty, SCOPE).replace('"services": {}', '"services": 1'), "has no services"],
  ])("%j is empty, with a reason", (text, what) => {
    const { memory, reason } = parseMemory(text, SCOPE);
    expect(memory.size).toBe(0);
    expect(reason).toBe(`the ownership memory ${what}`);
  });

  test.each([
    ['{"web":{"IPv4":"ours"}}', "web"],
    ['{"a/b/c":{"IPv4":"ours"}}', "a/b/c"],
    ['{"a/b":{"IPv5":"ours"}}', "a/b"],
    ['{"a/b":{"IPv4":"yours"}}', "a/b"],
    ['{"a/b":{}}', "a/b"],
    ['{"a/b":null}', "a/b"],
  ])("damaged services %s", (services, key) => {
    const text = serializeMemory(Memory.empty, SCOPE).replace('"services": {}', `"services": ${services}`);
    expect(parseMemory(text, SCOPE).reason).toContain(`is damaged at "${key}"`);
  });

  test("cut anywhere it never throws, and is empty or whole", () => {
    const memory = Memory.empty.set(WEB, "IPv4", "foreign").set("kube-system/dns", "IPv6", "mixed");
    const text = serializeMemory(memory, SCOPE);
    for (let length = 0; length < text.trimEnd().length; length++) {
      expect(parseMemory(text.slice(0, length), SCOPE).memory.size).toBe(0);
    }
  });

  test("what is learned from elsewhere, or by other rules, is another scope", () => {
    const learning = { ...SCOPE, sources: ["calico-ippools", "kube-ovn-subnets(blue)"] };
    const text = serializeMemory(Memory.empty.set(WEB, "IPv4", "mixed"), learning);
    expect(parseMemory(text, { ...learning, sources: learning.sources.toReversed() }).memory.size).toBe(1);
    expect(parseMemory(text, { ...learning, sources: ["calico-ippools"] }).memory.size).toBe(0);
    expect(parseMemory(text, SCOPE).memory.size).toBe(0);
  });

  test("the order of CIDRs is no other option", () => {
    const two = { ...SCOPE, excludeCIDRs: ["10.244.0.0/16", "10.16.0.0/16"] };
    const text = serializeMemory(Memory.empty.set(WEB, "IPv4", "mixed"), two);
    expect(parseMemory(text, { ...two, excludeCIDRs: two.excludeCIDRs.toReversed() }).memory.size).toBe(1);
  });
});
