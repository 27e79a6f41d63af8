import { expect, test } from "vitest";
import { type ConformanceCase, conformanceTable, MODES, type Outcome } from "../src/index.ts";

const outcomesOf = ({ expected }: ConformanceCase): readonly Outcome[] =>
  MODES.flatMap((mode) => ("verdict" in expected[mode] ? [expected[mode]] : []));

test("the table is as large as it has to be", () => {
  expect(conformanceTable.length).toBeGreaterThanOrEqual(80);
});

test("names are unique", () => {
  expect(new Set(conformanceTable.map(({ name }) => name)).size).toBe(conformanceTable.length);
});

test("every skip says why", () => {
  const skips = conformanceTable.flatMap(({ expected, unreal }) => [
    ...Object.values(expected),
    ...(unreal ? [unreal] : []),
  ]);
  for (const entry of skips) if ("skip" in entry) expect(entry.skip.length).toBeGreaterThan(10);
});

test("the probabilities of each outcome add up to 1", () => {
  for (const row of conformanceTable) {
    for (const outcome of outcomesOf(row)) {
      if (outcome.verdict !== "endpoints") continue;
      const { landings, refused = 0 } = outcome;
      const sum = landings.reduce((total, { probability }) => total + probability, refused);
      expect(sum, row.name).toBeCloseTo(1, 9);
    }
  }
});

test("every verdict is there in iptables mode", () => {
  const verdicts = new Set(
    conformanceTable.flatMap(({ expected: { iptables } }) => ("verdict" in iptables ? [iptables.verdict] : [])),
  );
  expect(verdicts).toEqual(new Set(["endpoints", "reject", "drop", "leave"]));
});

test("rows with the same options can share one cluster: equal names are equal objects", () => {
  const groups = Map.groupBy(conformanceTable, ({ options }) => JSON.stringify(options));
  for (const rows of groups.values()) {
    const last = new Map<string, string>();
    for (const { name, history } of rows) {
      for (const object of history.at(-1) ?? []) {
        const key = `${object.kind}/${object.metadata.namespace}/${object.metadata.name}`;
        const text = JSON.stringify(object);
        expect(last.get(key) ?? text, `${name}: ${key}`).toBe(text);
        last.set(key, text);
      }
    }
  }
});
