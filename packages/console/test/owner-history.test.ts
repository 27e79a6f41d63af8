import type { OwnershipDecision, ServiceKey } from "@fairlead/core";
import { expect, test } from "vitest";
import { OwnerHistory, type Owners } from "../src/model/owner-history.ts";

const owned = (ownership: OwnershipDecision["ownership"]): OwnershipDecision => ({
  ownership,
  why: `because it is ${ownership}`,
  decidingCIDRs: [],
  decided: true,
  ownEndpoints: 1,
  excludedEndpoints: 0,
  frontends: "all",
});
const only = (service: ServiceKey, decision: OwnershipDecision | undefined) =>
  new Map<ServiceKey, Owners>([[service, decision === undefined ? {} : { IPv4: decision }]]);

test("what comes, changes and goes is kept with time and reason; what stays is not", () => {
  const history = new OwnerHistory();
  history.take(only("shop/web", undefined), only("shop/web", owned("ours")), 1);
  history.take(only("shop/web", owned("ours")), only("shop/web", owned("ours")), 2);
  history.take(only("shop/web", owned("ours")), only("shop/web", owned("foreign")), 3);
  history.take(only("shop/web", owned("foreign")), only("shop/web", undefined), 4);
  expect(history.of("shop/web")).toEqual([
    { at: 1, family: "IPv4", after: "ours", why: "because it is ours" },
    { at: 3, family: "IPv4", before: "ours", after: "foreign", why: "because it is foreign" },
    { at: 4, family: "IPv4", before: "foreign" },
  ]);
  expect(history.of("shop/other")).toEqual([]);
});

test("however long it runs, it keeps the latest only", () => {
  const history = new OwnerHistory();
  for (let at = 0; at < 3_000; at++) {
    history.take(only("a/busy", owned("ours")), only("a/busy", owned(at % 2 === 0 ? "mixed" : "foreign")), at);
    history.take(only(`a/s-${at}`, undefined), only(`a/s-${at}`, owned("ours")), at);
  }
  expect(history.of("a/busy").map(({ at }) => at)).toEqual(Array.from({ length: 20 }, (_, i) => 2_980 + i));
  expect(history.of("a/s-0")).toEqual([]);
  expect(history.of("a/s-2999")).toHaveLength(1);
});
