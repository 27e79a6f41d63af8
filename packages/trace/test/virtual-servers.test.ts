import type { Destination, VirtualServerState } from "@fairlead/netfilter";
import { describe, expect, test } from "vitest";
import { type Environment, type Ipvs, type Packet, trace } from "../src/index.ts";
import { HOST, only, ownPacket, packet, places, ruleSet } from "./rule-set.ts";

const VIP = "10.96.0.80";

function to(address: string, weight = 1): Destination {
  return { address, port: 8080, weight, forwarding: "masquerade" };
}

function server(fields: Partial<VirtualServerState> = {}): VirtualServerState {
  const key = { family: "IPv4", protocol: "TCP", address: VIP, port: 80 } as const;
  return { ...key, scheduler: "rr", flags: [], destinations: [to("10.144.1.5"), to("10.144.2.6")], ...fields };
}

function host(servers: readonly VirtualServerState[] = [server()], settings: Omit<Ipvs, "servers"> = {}): Environment {
  const localAddresses = [...HOST.localAddresses, VIP, "fd00:10:96::80"];
  return { ...HOST, localAddresses, ipvs: { conntrack: true, servers, ...settings } };
}

const one = server({ destinations: [to("10.144.1.5")] });
const toVIP = (fields: Partial<Packet> = {}) => packet({ destination: VIP, ...fields });
const nothing = ruleSet({});

/** The tables and chains that the packet passed, in their order: every chain has a rule that all packets match. */
function passed(sent: Packet, environment: Environment): string[] {
  const chains = {
    raw: ["PREROUTING", "OUTPUT"],
    mangle: ["PREROUTING", "INPUT", "FORWARD", "OUTPUT", "POSTROUTING"],
    nat: ["PREROUTING", "INPUT", "OUTPUT", "POSTROUTING"],
    filter: ["INPUT", "FORWARD", "OUTPUT"],
  };
  const text = Object.entries(chains).map(([table, names]) => [table, names.map((name) => `-A ${name}\n`).join("")]);
  const { visits } = only(ruleSet(Object.fromEntries(text)), sent, environment);
  return visits.map(({ table, hook }) => `${table} ${hook}`);
}

describe("the packet's way", () => {
  test("from outside: through INPUT, then as the host's own, and the nat tables of OUTPUT are not asked", () => {
    expect(passed(toVIP(), host([one]))).toEqual([
      "raw PREROUTING",
      "mangle PREROUTING",
      "nat PREROUTING",
      "mangle INPUT",
      "filter INPUT",
      "raw OUTPUT",
      "mangle OUTPUT",
      "filter OUTPUT",
      "mangle POSTROUTING",
      "nat POSTROUTING",
    ]);
  });

  test("of the host's own: after nat OUTPUT it begins anew", () => {
    expect(passed(ownPacket({ destination: VIP }), host([one]))).toEqual([
      "raw OUTPUT",
      "mangle OUTPUT",
      "nat OUTPUT",
      "raw OUTPUT",
      "mangle OUTPUT",
      "filter OUTPUT",
      "mangle POSTROUTING",
      "nat POSTROUTING",
    ]);
  });

  test("to a destination on this host: it goes on where it is", () => {
    const here = host([server({ destinations: [to("10.201.0.10")] })]);
    expect(passed(toVIP(), here)).toEqual([
      "raw PREROUTING",
      "mangle PREROUTING",
      "nat PREROUTING",
      "mangle INPUT",
      "filter INPUT",
      "nat INPUT",
    ]);
    expect(only(nothing, toVIP(), here)).toMatchObject({ path: "input", destination: { address: "10.201.0.10" } });
    expect(only(nothing, ownPacket({ destination: VIP }), here)).toMatchObject({
      path: "input",
      destination: { address: "10.201.0.10", port: 8080 },
    });
  });

  test("without connection tracking nothing is masqueraded", () => {
    const rules = ruleSet({ nat: "-A POSTROUTING -j MASQUERADE\n" });
    expect(places(rules, toVIP(), host([one]))).toEqual(["→ 10.144.1.5:8080 masq"]);
    expect(places(rules, toVIP(), host([one], { conntrack: false }))).toEqual(["→ 10.144.1.5:8080"]);
    const untracked = ruleSet({ filter: "-A OUTPUT -m conntrack --ctstate UNTRACKED -j DROP\n" });
    expect(only(untracked, toVIP(), host([one], { conntrack: false })).verdict).toBe("drop");
    expect(only(untracked, toVIP(), host([one])).verdict).toBe("accept");
  });

  test("a packet for another host never meets them, nor one that a rule takes away before", () => {
    expect(places(nothing, toVIP(), { ...host([one]), localAddresses: [] })).toEqual(["→ 10.96.0.80:80"]);
    const refused = ruleSet({ filter: "-A INPUT -j REJECT --reject-with icmp-port-unreachable\n" });
    expect(only(refused, toVIP(), host([one]))).toMatchObject({ verdict: "reject", hook: "INPUT", table: "filter" });
    const moved = ruleSet({ nat: "-A PREROUTING -j DNAT --to-destination 10.144.9.9:1\n" });
    expect(places(moved, toVIP(), host([one]))).toEqual(["→ 10.144.9.9:1"]);
  });

  test("a packet's path and server are reported", () => {
    const key = { family: "IPv4", protocol: "TCP", address: VIP, port: 80 };
    expect(only(nothing, toVIP(), host([one]))).toMatchObject({ path: "forward", virtualServer: key });
    expect(only(nothing, ownPacket({ destination: VIP }), host([one]))).toMatchObject({ path: "output" });
    expect(only(nothing, toVIP({ dport: 81 }), host([one]))).not.toHaveProperty("virtualServer");
  });
});

describe("which destination", () => {
  const spread = (fields: Partial<VirtualServerState>, sent = toVIP()) => places(nothing, sent, host([server(fields)]));
  const weighted = [to("10.144.1.5", 3), to("10.144.2.6", 1)];

  test.each<[string, Partial<VirtualServerState>, string[]]>([
    ["rr spreads evenly", {}, ["→ 10.144.1.5:8080 50.0%", "→ 10.144.2.6:8080 50.0%"]],
    ["rr knows no weights", { destinations: weighted }, ["→ 10.144.1.5:8080 50.0%", "→ 10.144.2.6:8080 50.0%"]],
    [
      "wrr goes by them",
      { scheduler: "wrr", destinations: weighted },
      ["→ 10.144.1.5:8080 75.0%", "→ 10.144.2.6:8080 25.0%"],
    ],
    ["weight 0 gets nothing", { destinations: [to("10.144.1.5", 0), to("10.144.2.6")] }, ["→ 10.144.2.6:8080"]],
    ["no destination", { destinations: [] }, ["reject 10.96.0.80:80"]],
    ["none with a weight", { destinations: [to("10.144.1.5", 0)] }, ["reject 10.96.0.80:80"]],
  ])("%s", (_, fields, expected) => expect(spread(fields).toSorted()).toEqual(expected));

  test("a server without destinations refuses at the stage ipvs, in either family", () => {
    const empty = host([
      server({ destinations: [] }),
      server({ family: "IPv6", address: "fd00:10:96::80", destinations: [] }),
    ]);
    const ipv6 = toVIP({ family: "IPv6", source: "fd00:99::1", destination: "fd00:10:96::80" });
    const reported = { verdict: "reject", table: "ipvs", hook: "INPUT", virtualServer: { port: 80 } };
    expect(only(nothing, toVIP(), empty)).toMatchObject({ ...reported, rejectWith: "icmp-port-unreachable" });
    expect(only(nothing, ipv6, empty)).toMatchObject({ ...reported, rejectWith: "icmp6-port-unreachable" });
    expect(only(nothing, ownPacket({ destination: VIP }), empty)).toMatchObject({ ...reported, hook: "OUTPUT" });
  });

  test("address, port, protocol and family distinguish servers", () => {
    expect(spread({ protocol: "UDP" })).toEqual(["→ 10.96.0.80:80"]);
    expect(spread({ protocol: "SCTP" }, toVIP({ protocol: "sctp" }))).toHaveLength(2);
    expect(spread({ port: 81 })).toEqual(["→ 10.96.0.80:80"]);
    expect(spread({}, toVIP({ protocol: "icmp" }))).toEqual(["→ 10.96.0.80:80"]);
  });

  test("what the tracer cannot decide is an error", () => {
    expect(() => spread({ scheduler: "twos" })).toThrow('virtual server TCP 10.96.0.80 80: scheduler "twos"');
    const direct: Destination = { ...to("10.144.1.5"), forwarding: "route" };
    expect(() => spread({ destinations: [direct] })).toThrow("only knows destinations by masquerade");
    expect(() => spread({}, toVIP({ state: "ESTABLISHED" }))).toThrow("only new connections");
  });
});

describe("persistence", () => {
  const sticky = server({ persistenceSeconds: 600 });

  test("the first packet reports what the server now knows, and later ones go the same way", () => {
    const outcomes = trace(nothing, toVIP(), host([sticky]));
    expect(outcomes.map(({ probability }) => probability)).toEqual([0.5, 0.5]);
    for (const { template, destination } of outcomes) {
      const next = host([sticky], { templates: template === undefined ? [] : [template] });
      expect(only(nothing, toVIP(), next).destination).toEqual(destination);
      expect(trace(nothing, toVIP({ source: "192.0.2.10" }), next)).toHaveLength(2);
    }
  });

  test("a destination that drains keeps its clients, unless the setting says otherwise; one that is gone doesn't", () => {
    const template = { server: sticky, client: "192.0.2.9", destination: { address: "10.144.1.5", port: 8080 } };
    const drained = server({ persistenceSeconds: 600, destinations: [to("10.144.1.5", 0), to("10.144.2.6")] });
    const gone = server({ persistenceSeconds: 600, destinations: [to("10.144.2.6")] });
    const ask = (state: VirtualServerState, expireQuiescentTemplate: boolean) =>
      places(nothing, toVIP(), host([state], { templates: [template], expireQuiescentTemplate }));
    expect(ask(drained, false)).toEqual(["→ 10.144.1.5:8080"]);
    expect(ask(drained, true)).toEqual(["→ 10.144.2.6:8080"]);
    expect(ask(gone, false)).toEqual(["→ 10.144.2.6:8080"]);
    expect(ask(server(), false)).toHaveLength(2);
  });
});

describe("-m ipvs", () => {
  test.each([
    [`--vproto 6 --vaddr ${VIP} --vport 80`, true],
    [`--vproto 17 --vaddr ${VIP} --vport 80`, false],
    ["--vproto 6 --vaddr 10.96.0.81 --vport 80", false],
    [`--vproto 6 --vaddr ${VIP} --vport 81`, false],
  ])("%s", (words, expected) => {
    const rules = ruleSet({ nat: `-A POSTROUTING -m ipvs ${words} -j MASQUERADE\n` });
    expect(only(rules, toVIP(), host([one])).masqueraded).toBe(expected);
  });

  test("before a server has taken the packet it never matches", () => {
    const rules = ruleSet({ filter: `-A INPUT -m ipvs --vproto 6 --vaddr ${VIP} --vport 80 -j DROP\n` });
    expect(only(rules, toVIP(), host([one])).verdict).toBe("accept");
  });
});
