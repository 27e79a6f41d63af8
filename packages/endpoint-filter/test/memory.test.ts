import { toEnd } from "@fairlead/base";
import type { IPFamily, MemoryUpdate, Ownership, ServiceKey } from "@fairlead/core";
import { runs } from "@fairlead/tooling/runs";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { Memory, type MemoryScope, parseMemory, serializeInSteps } from "../src/index.ts";

const SCOPE = { excludeCIDRs: ["10.244.0.0/16"], mixedServices: "own-endpoints", ownershipAnnotation: true } as const;

const WEB: ServiceKey = "default/web";
const name = fc.stringMatching(/^[a-z]{1,3}$/);
const owner = fc.constantFrom<Ownership>("ours", "foreign", "mixed");
const fields = {
  service: fc.tuple(name, name).map(([namespace, text]): ServiceKey => `${namespace}/${text}`),
  family: fc.constantFrom<IPFamily>("IPv4", "IPv6"),
};
const update: fc.Arbitrary<MemoryUpdate> = fc.record({ ...fields, ownership: owner });

const steps = fc.array(fc.array(fc.record({ ...fields, ownership: fc.option(owner, { nil: undefined }) })), {
  maxLength: 100,
});

test("whatever changes, a memory holds what a map of its decisions holds, and says whether it changed", () => {
  fc.assert(
    fc.property(steps, (all) => {
      const model = new Map<string, Ownership>();
      const memory = new Memory();
      for (const updates of all) {
        const before = [...model].sort().join();
        const changed = memory.apply(
          updates.map(({ ownership, ...at }): MemoryUpdate => (ownership === undefined ? at : { ...at, ownership })),
        );
        for (const { service, family, ownership } of updates) {
          if (ownership === undefined) model.delete(`${service} ${family}`);
          else model.set(`${service} ${family}`, ownership);
          if (!changed) expect([...model].sort().join()).toBe(before);
        }
        expect(flat(memory)).toEqual(model);
        for (const { service, family } of updates) {
          expect(memory.get(service, family)).toBe(model.get(`${service} ${family}`));
        }
      }
    }),
    { numRuns: runs(100) },
  );
});

function flat(memory: Memory): ReadonlyMap<string, Ownership> {
  const entries = [...memory.entries()];
  expect([...memory.services()]).toEqual(entries.map(([service]) => service));
  return new Map(
    entries.flatMap(([service, families]) =>
      Object.entries(families).map(([family, ownership]) => [`${service} ${family}`, ownership]),
    ),
  );
}

function memoryOf(...updates: readonly MemoryUpdate[]): Memory {
  const memory = new Memory();
  memory.apply(updates);
  return memory;
}

function textOf(memory: Memory, scope: MemoryScope): string {
  return toEnd(serializeInSteps(memory, scope));
}

function sizeOf({ memory }: { readonly memory: Memory }): number {
  return flat(memory).size;
}

describe("its text", () => {
  const MIXED = memoryOf({ service: WEB, family: "IPv4", ownership: "mixed" });

  test("comes back equal, whatever the order of the updates", () => {
    fc.assert(
      fc.property(fc.uniqueArray(update, { selector: ({ service, family }) => service + family }), (updates) => {
        const memory = memoryOf(...updates);
        const text = textOf(memory, SCOPE);
        const { memory: read, reason } = parseMemory(text, SCOPE);
        expect(reason).toBeUndefined();
        expect(new Map(read.entries())).toEqual(new Map(memory.entries()));
        expect(textOf(memoryOf(...updates.toReversed()), SCOPE)).toBe(text);
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
    [textOf(new Memory(), { ...SCOPE, excludeCIDRs: [] }), "was written with other options"],
    [textOf(new Memory(), { ...SCOPE, mixedServices: "skip" }), "was written with other options"],
    [textOf(new Memory(), SCOPE).replace('"services": {}', '"services": 1'), "has no services"],
  ])("%j is empty, with a reason", (text, what) => {
    const { memory, reason } = parseMemory(text, SCOPE);
    expect(sizeOf({ memory })).toBe(0);
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
    const text = textOf(new Memory(), SCOPE).replace('"services": {}', `"services": ${services}`);
    expect(parseMemory(text, SCOPE).reason).toContain(`is damaged at "${key}"`);
  });

  test("cut anywhere it never throws, and is empty or whole", () => {
    const memory = memoryOf(
      { service: WEB, family: "IPv4", ownership: "foreign" },
      { service: "kube-system/dns", family: "IPv6", ownership: "mixed" },
    );
    const text = textOf(memory, SCOPE);
    for (let length = 0; length < text.trimEnd().length; length++) {
      expect(sizeOf(parseMemory(text.slice(0, length), SCOPE))).toBe(0);
    }
  });

  test("what is learned from elsewhere, or by other rules, is another scope", () => {
    const learning = { ...SCOPE, sources: ["calico-ippools", "kube-ovn-subnets(blue)"] };
    const text = textOf(MIXED, learning);
    expect(sizeOf(parseMemory(text, { ...learning, sources: learning.sources.toReversed() }))).toBe(1);
    expect(sizeOf(parseMemory(text, { ...learning, sources: ["calico-ippools"] }))).toBe(0);
    expect(sizeOf(parseMemory(text, SCOPE))).toBe(0);
  });

  test("the order of CIDRs is no other option", () => {
    const two = { ...SCOPE, excludeCIDRs: ["10.244.0.0/16", "10.16.0.0/16"] };
    const text = textOf(MIXED, two);
    expect(sizeOf(parseMemory(text, { ...two, excludeCIDRs: two.excludeCIDRs.toReversed() }))).toBe(1);
  });
});
