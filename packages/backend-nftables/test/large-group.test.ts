import type { PlanEndpoint, ServicePortGroup } from "@fairlead/core";
import { NftBatch } from "@fairlead/netfilter/nft";
import { expect, test } from "vitest";
import { changeTable } from "../src/plan/change-table.ts";
import { DEFAULTS, planContext } from "../src/plan/context.ts";
import { TableInMemory } from "../src/plan/table-writer.ts";
import { writeTable } from "../src/plan/write-table.ts";
import { groupOfEveryKind, planOfEveryKind } from "./support/every-kind.ts";

const ENDPOINTS = 20_000;

test("a service of very many endpoints is written and changed in short steps", () => {
  const plan = planOfEveryKind("IPv4");
  const context = planContext({ ...DEFAULTS, family: "IPv4" }, plan);
  const written = stepsOf(writeTable([group(0)], context, new TableInMemory(context)));
  expect(written.steps).toBeGreaterThan((5 * ENDPOINTS) / 2048);
  const batch = new NftBatch("ip", "kube-proxy");
  const changed = stepsOf(changeTable(written.result, [["default/many/tcp", group(ENDPOINTS)]], context, batch));
  expect(changed.steps).toBeGreaterThan((5 * ENDPOINTS) / 2048);
  expect(changed.result.written.endpoints).toBeGreaterThan(ENDPOINTS);
});

function group(from: number): ServicePortGroup {
  const endpoints = Array.from({ length: ENDPOINTS }, (_, at): PlanEndpoint => {
    const number = from + at;
    return { address: `10.${144 + (number >> 16)}.${(number >> 8) & 255}.${number & 255}`, port: 8080, local: false };
  });
  return { ...groupOfEveryKind("IPv4", "many", 1, "TCP"), cluster: endpoints };
}

/** Runs to the end, and counts. */
function stepsOf<T>(generator: Generator<void, T>): { readonly steps: number; readonly result: T } {
  for (let steps = 0; ; steps++) {
    const next = generator.next();
    if (next.done === true) return { steps, result: next.value };
  }
}
