import { describe, expect, test } from "vitest";
import {
  createTracer,
  type Environment,
  exploreAsking,
  type Packet,
  parseRouteGets,
  type RouteAnswer,
  type RouteQuery,
  routeGetLine,
  trace,
} from "../src/index.ts";
import { ruleSet } from "./rule-set.ts";

const rules = ruleSet({
  mangle: "-A OUTPUT -p udp -j MARK --set-xmark 0x7/0xffffffff\n",
  nat: `-A PREROUTING -d 10.96.0.1/32 -p tcp -j DNAT --to-destination 10.144.1.5:80
-A OUTPUT -d 10.96.0.1/32 -p tcp -j DNAT --to-destination 10.144.1.5:80
`,
});
const PACKET: Packet = {
  family: "IPv4",
  protocol: "tcp",
  source: "10.144.1.9",
  sport: 40_000,
  destination: "10.96.0.1",
  dport: 443,
  inInterface: "cali1",
};
const { inInterface: _, ...own } = { ...PACKET, source: "10.201.0.10" };

/** Gives these answers, by destination, and records the queries. */
function routes(answers: Readonly<Record<string, RouteAnswer>>) {
  const asked: RouteQuery[] = [];
  const route = (query: RouteQuery): RouteAnswer => {
    asked.push(query);
    return answers[query.destination] ?? { kind: "refused", problem: "none", rejectWith: "icmp-net-unreachable" };
  };
  const environment: Environment = { localAddresses: ["10.201.0.10"], route };
  return { asked, environment };
}

describe("routing decisions", () => {
  test("what comes in is asked for after PREROUTING, with its interface", () => {
    const { asked, environment } = routes({ "10.144.1.5": { kind: "unicast", outInterface: "cali2" } });
    expect(trace(rules, PACKET, environment)).toMatchObject([
      { verdict: "accept", path: "forward", outInterface: "cali2" },
    ]);
    expect(asked).toEqual([
      {
        family: "IPv4",
        destination: "10.144.1.5",
        source: "10.144.1.9",
        inInterface: "cali1",
        mark: 0,
        protocol: "tcp",
        sport: 40_000,
        dport: 80,
      },
    ]);
  });

  test("what no route takes ends there, and the sender gets an error", () => {
    const { environment } = routes({});
    expect(trace(rules, PACKET, environment)).toMatchObject([
      {
        verdict: "reject",
        rejectWith: "icmp-net-unreachable",
        noRoute: "none",
        hook: "PREROUTING",
        table: "routing",
        destination: { address: "10.144.1.5", port: 80 },
      },
    ]);
  });

  test("the host's own packet has to have a route before any rule, and again after its translation", () => {
    const lost = routes({});
    expect(trace(rules, own, lost.environment)).toMatchObject([{ verdict: "reject", hook: "OUTPUT", visits: [] }]);
    const half = routes({ "10.96.0.1": { kind: "unicast", outInterface: "eth0" } });
    const [outcome] = trace(rules, own, half.environment);
    expect(outcome).toMatchObject({ verdict: "drop", noRoute: "none", destination: { address: "10.144.1.5" } });
    expect(outcome).not.toHaveProperty("rejectWith");
    expect(half.asked.map(({ destination }) => destination)).toEqual(["10.96.0.1", "10.144.1.5"]);
  });

  test("a mark of mangle has the host's own packet routed again", () => {
    const { asked, environment } = routes({ "192.0.2.1": { kind: "unicast", outInterface: "eth0" } });
    const udp = { ...own, protocol: "udp", destination: "192.0.2.1" };
    expect(trace(rules, udp, environment)).toMatchObject([{ verdict: "accept", outInterface: "eth0" }]);
    expect(asked.map(({ mark }) => mark)).toEqual([0, 7]);
  });

  test("a route of type local is enough to be for the host", () => {
    const { environment } = routes({ "10.144.1.5": { kind: "local" } });
    expect(trace(rules, PACKET, environment)).toMatchObject([{ path: "input", hook: "INPUT" }]);
  });

  test("an unknown route is reported, and the packet goes on by addresses", () => {
    const { environment } = routes({ "10.144.1.5": { kind: "unknown", problem: "no answer" } });
    expect(trace(rules, PACKET, environment)).toMatchObject([
      { verdict: "accept", path: "forward", routeUnknown: "no answer" },
    ]);
  });

  test("without routes nothing is asked and nothing reported", () => {
    expect(trace(rules, PACKET)[0]).not.toHaveProperty("routeUnknown");
  });
});

test("a caller may answer queries from outside, each one once", async () => {
  const asked: string[][] = [];
  const exploration = await exploreAsking(createTracer(rules), own, {}, async (queries) => {
    asked.push(queries.map(({ destination }) => destination));
    return queries.map(() => ({ kind: "unicast", outInterface: "eth0" }));
  });
  expect(exploration.outcomes).toMatchObject([{ verdict: "accept", outInterface: "eth0" }]);
  expect(asked).toEqual([["10.96.0.1", "10.144.1.5"]]);
});

test("too few answers leave routes unknown", async () => {
  const { outcomes } = await exploreAsking(createTracer(rules), PACKET, {}, async () => []);
  expect(outcomes).toMatchObject([{ routeUnknown: "the route is not known" }]);
});

test("a query as ip takes it", () => {
  const query = { family: "IPv4", destination: "10.0.0.1", mark: 0, protocol: "tcp" } as const;
  expect(routeGetLine(query)).toBe("route get 10.0.0.1");
  const whole = { ...query, source: "10.0.0.2", inInterface: "eth0", mark: 0x4000, sport: 1, dport: 2 };
  expect(routeGetLine(whole)).toBe("route get 10.0.0.1 from 10.0.0.2 iif eth0 mark 16384 ipproto tcp sport 1 dport 2");
  expect(routeGetLine({ ...whole, protocol: "sctp" })).not.toContain("ipproto");
});

test("what ip prints of a batch, line by line", () => {
  const stdout = `[{"dst":"10.0.0.1","dev":"eth0","flags":[]}]\n[{"type":"local","dst":"10.0.0.3","dev":"lo"}]\n`;
  const stderr =
    'RTNETLINK answers: Network is unreachable\nCommand failed -:2\nCannot find device "eth9"\nCommand failed -:4\n';
  expect(parseRouteGets(4, stdout, stderr)).toEqual([
    { kind: "unicast", outInterface: "eth0" },
    { kind: "error", message: "Network is unreachable" },
    { kind: "local" },
    { kind: "error", message: 'Cannot find device "eth9"' },
  ]);
});
