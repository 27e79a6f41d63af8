import fc from "fast-check";
import { expect, test } from "vitest";
import type { FlowsAnswer } from "../src/index.ts";
import { agentVerdict, kernelVerdict, modesText } from "../src/page/findings.ts";
import { pointsOf, type Sample, summaryOf, withSample } from "../src/page/samples.ts";
import { emptyText, filtered, filterOf, namespacesOf, queryOf } from "../src/page/service-filter.ts";
import type { NodeRow, ServiceRow } from "../src/protocol.ts";

const answer = (at: number, counts?: FlowsAnswer["counts"]): FlowsAnswer => ({
  node: "node-a",
  at,
  ...(counts && { counts }),
  traffic: [],
  flows: [],
  more: { services: 0, flows: 0 },
});

test("each look is a point, a second's worth; one that has nothing before it leaves a gap", () => {
  const looks = [
    answer(1_000, { began: 500, opened: 1, bytes: 50 }),
    answer(3_000, { began: 500, opened: 5, bytes: 1_050 }),
    answer(7_000, { began: 500, opened: 5 }),
  ];
  const samples = looks.reduce(withSample, [] as readonly Sample[]);
  expect(pointsOf(samples, "opened")).toEqual([
    [1, 3, 7],
    [null, 2, 0],
  ]);
  expect(pointsOf(samples, "bytes")[1]).toEqual([null, 500, null]);
  expect(summaryOf(samples, "opened")).toEqual({ now: 0, least: 0, most: 2, seconds: 4 });
  expect(summaryOf(samples, "bytes")).toEqual({ now: null, least: 500, most: 500, seconds: 4 });
  expect(summaryOf(samples.slice(0, 1), "opened")).toBeUndefined();
});

test("counts that began anew, or are not there, leave a gap", () => {
  const looks = [
    answer(1_000, { began: 500, opened: 9 }),
    answer(3_000, { began: 3_000, opened: 0 }),
    answer(5_000),
    answer(7_000, { began: 3_000, opened: 2 }),
    answer(9_000, { began: 3_000, opened: 4 }),
  ];
  const samples = looks.reduce(withSample, [] as readonly Sample[]);
  expect(pointsOf(samples, "opened")[1]).toEqual([null, null, null, null, 1]);
});

test("the ring keeps the latest, in order, and takes each look once", () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 0, max: 1_000 }), { maxLength: 400 }), (times) => {
      const counts = { began: 0, opened: 1 };
      const samples = times.reduce((all, at) => withSample(all, answer(at, counts)), [] as readonly Sample[]);
      const [shown] = pointsOf(samples, "opened");
      expect(shown.length).toBeLessThanOrEqual(150);
      expect(shown).toEqual([...new Set(shown)].sort((a, b) => a - b));
      if (times.length > 0) expect(shown.at(-1)).toBe(Math.max(...times) / 1_000);
    }),
  );
});

const row = (service: ServiceRow["service"], more: Partial<ServiceRow> = {}): ServiceRow => ({
  service,
  owners: { IPv4: "ours" },
  frontends: [],
  endpoints: 2,
  ready: 1,
  local: 0,
  draining: 0,
  ...more,
});

/** In the order of their names, as the list has them. */
const ROWS: readonly ServiceRow[] = [
  row("bank/web", { ready: 0, created: 3_000 }),
  row("shop/api", { endpoints: 9, ready: 8, draining: 1, created: 1_000 }),
  row("shop/db", { owners: { IPv4: "foreign", IPv6: "mixed" }, ready: 0, created: 2_000 }),
  row("shop/web", { owners: { IPv4: "mixed" }, local: 1 }),
];

const shown = (query: string, differing = new Set<string>()) =>
  filtered(ROWS, filterOf(new URLSearchParams(query)), differing).map(({ service }) => service);

test.each([
  ["", ["bank/web", "shop/api", "shop/db", "shop/web"]],
  ["namespace=shop", ["shop/api", "shop/db", "shop/web"]],
  ["namespace=sho", []],
  ["owner=foreign", ["shop/db"]],
  ["owner=mixed", ["shop/db", "shop/web"]],
  ["state=unready", ["bank/web", "shop/db"]],
  ["state=unready&owner=ours", ["bank/web"]],
  ["state=draining", ["shop/api"]],
  ["state=differs", ["shop/web"]],
  ["owner=nonsense&state=%3Cb%3E&sort=size", ["bank/web", "shop/api", "shop/db", "shop/web"]],
])("%s shows %j", (query, services) => {
  expect(shown(query, new Set(["shop/web"]))).toEqual(services);
});

test.each([
  ["-service", ["shop/web", "shop/db", "shop/api", "bank/web"]],
  ["name", ["shop/api", "shop/db", "bank/web", "shop/web"]],
  ["-name", ["bank/web", "shop/web", "shop/db", "shop/api"]],
  ["ready", ["bank/web", "shop/db", "shop/web", "shop/api"]],
  ["-endpoints", ["shop/api", "bank/web", "shop/db", "shop/web"]],
  ["-local", ["shop/web", "bank/web", "shop/api", "shop/db"]],
  ["-draining", ["shop/api", "bank/web", "shop/db", "shop/web"]],
  // The youngest first; whose age is unknown comes as the oldest.
  ["age", ["bank/web", "shop/db", "shop/api", "shop/web"]],
])("sort=%s: %j", (sort, services) => {
  expect(shown(`sort=${sort}`)).toEqual(services);
});

test("an address says it all, and nothing that is as usual", () => {
  const given = { q: "10.0.0.1", namespace: "shop", owner: "mixed", state: "unready", sort: "-ready" };
  expect(queryOf(filterOf(new URLSearchParams(given)))).toEqual(given);
  expect(Object.values(queryOf(filterOf(new URLSearchParams()))).join("")).toBe("");
});

test("namespaces come with their numbers of services", () => {
  expect(namespacesOf(ROWS)).toEqual([
    ["bank", 1],
    ["shop", 3],
  ]);
});

test.each([
  ["", 0, "There is no service with a ClusterIP."],
  ["q=x&namespace=shop", 4, "There is no service with “x” in its name, addresses or ports, in namespace shop."],
  ["owner=foreign&state=unready", 4, "There is no service that is another network's, without a ready endpoint."],
  ["owner=mixed", 4, "There is no service with endpoints of two networks."],
])("an empty list of %s among %i says why", (query, services, text) => {
  expect(emptyText(filterOf(new URLSearchParams(query)), services)).toBe(text);
});

const answered = (at: number, healthy = true) => {
  return { state: "read", at, tookMs: 1, value: { mode: "iptables", healthy } } as const;
};
const compared = (at: number) => ({ state: "read", at, tookMs: 1, value: [] }) as const;
const failed = (at: number) => ({ state: "failed", at, tookMs: 1, error: "no such container" }) as const;

test.each<[string, Pick<NodeRow, "agent" | "kernel">, string]>([
  ["nothing asked yet", {}, "not asked"],
  ["an answer", { agent: answered(1_000), kernel: compared(2_000) }, "healthy"],
  ["no answer", { agent: failed(2_000), kernel: compared(1_000) }, "stopped or not reachable"],
  ["a read that fails after the answer", { agent: answered(1_000), kernel: failed(2_000) }, "unknown"],
  ["an answer after the read that failed", { agent: answered(3_000), kernel: failed(2_000) }, "healthy"],
  ["an answer that it is not healthy", { agent: answered(1_000, false), kernel: compared(1_000) }, "not healthy"],
])("the agent's badge after %s", (_, row, text) => {
  expect(agentVerdict(row).text).toBe(text);
});

test("what is asked for and has no answer is neither good nor bad", () => {
  expect(kernelVerdict({ state: "asking", at: 1 })).toEqual({ tone: "plain", text: "asking …" });
  expect(agentVerdict({ agent: { state: "asking", at: 1 } })).toEqual({ tone: "plain", text: "asking …" });
});

test.each<[readonly (string | undefined)[], string]>([
  [["iptables"], "iptables mode"],
  [[undefined, undefined, undefined], "ipvs mode on 1 of 3 nodes"],
  [["iptables", "iptables"], "iptables mode"],
  [["nftables", "iptables", "nftables"], "iptables on 1, nftables on 2 nodes"],
  [["nftables", "iptables", undefined], "iptables on 1, nftables on 1 of 3 nodes"],
])("the header of agents in the modes %j: %s", (modes, text) => {
  const nodes = modes.map((mode, at): NodeRow => {
    const agent = mode === undefined ? undefined : ({ state: "read", at: 1, tookMs: 1, value: { mode } } as const);
    return { node: `node-${at}`, addresses: [], ...(agent && { agent }) };
  });
  expect(modesText(nodes, { node: "node-0", mode: "ipvs" })).toBe(text);
});
