import type { SetState, VirtualServerState } from "@fairlead/netfilter";
import { describe, expect, test } from "vitest";
import { addressesOf, compareIpvs, type IpvsObjects, serversOf, setsOf } from "../../src/index.ts";

const expected: IpvsObjects = {
  servers: serversOf(
    "-A -t 10.96.0.80:80 -s rr\n-a -t 10.96.0.80:80 -r 10.144.1.5:8080 -m -w 1\n-a -t 10.96.0.80:80 -r 10.144.2.6:8080 -m -w 1\n",
  ),
  sets: setsOf(
    "create KUBE-CLUSTER-IP hash:ip,port family inet hashsize 1024 maxelem 65536\nadd KUBE-CLUSTER-IP 10.96.0.80,tcp:80\n",
  ),
  addresses: addressesOf("link add dev kube-ipvs0 type dummy\naddr add 10.96.0.80/32 dev kube-ipvs0\n"),
};

function found(damaged: Partial<IpvsObjects>): string[] {
  const serviceOf = (address: string) => (address === "10.96.0.80" ? "default/web" : undefined);
  const findings = compareIpvs(expected, { ...expected, ...damaged }, { serviceOf });
  return findings.map(({ kind, service = "-", where, what }) => `${service} ${kind}: ${where}: ${what}`);
}

const servers = (change: Partial<VirtualServerState>) => ({
  servers: expected.servers.map((server) => ({ ...server, ...change })),
});
const [first, second] = expected.servers[0]?.destinations ?? [];
const destinations = (...all: readonly (typeof first)[]) => servers({ destinations: all.flatMap((one) => one ?? []) });
const sets = (change: Partial<SetState>) => ({ sets: expected.sets.map((set) => ({ ...set, ...change })) });
const SERVER = "virtual server TCP 10.96.0.80:80";

describe("ipvs mode's objects", () => {
  test.each<[what: string, damaged: Partial<IpvsObjects>, expected: string[]]>([
    ["all as it should be", {}, []],
    ["a virtual server missing", { servers: [] }, [`default/web missing: ${SERVER}: the virtual server`]],
    ["a destination missing", destinations(first), [`default/web missing: ${SERVER}: destination 10.144.2.6 8080`]],
    [
      "a destination too much",
      destinations(first, second, first && { ...first, address: "10.144.9.9" }),
      [`default/web extra: ${SERVER}: destination 10.144.9.9 8080`],
    ],
    [
      "a destination that drains",
      destinations(first, second, first && { ...first, address: "10.144.9.9", weight: 0 }),
      [],
    ],
    [
      "another weight",
      destinations(first, second && { ...second, weight: 3 }),
      [
        `default/web different: ${SERVER}: destination 10.144.2.6 8080: masquerade, weight 3, expected masquerade, weight 1`,
      ],
    ],
    [
      "another scheduler",
      servers({ scheduler: "lc" }),
      [`default/web different: ${SERVER}: scheduler lc, expected scheduler rr`],
    ],
    [
      "persistence",
      servers({ persistenceSeconds: 60 }),
      [`default/web different: ${SERVER}: scheduler rr, persistent for 60 s, expected scheduler rr`],
    ],
    [
      "options that no service asks for",
      servers({ others: ["-M", "24"] }),
      [`default/web different: ${SERVER}: scheduler rr -M 24, expected scheduler rr`],
    ],
    [
      "a set's member missing",
      sets({ members: new Set() }),
      ["default/web missing: ipset KUBE-CLUSTER-IP: 10.96.0.80,tcp:80"],
    ],
    [
      "a set's member too much",
      sets({ members: new Set(["10.96.0.80,tcp:80", "10.96.0.81,tcp:80"]) }),
      ["- extra: ipset KUBE-CLUSTER-IP: 10.96.0.81,tcp:80"],
    ],
    ["a set missing", { sets: [] }, ["- missing: ipset KUBE-CLUSTER-IP: the set, of type hash:ip,port"]],
    [
      "a set of another type",
      sets({ type: "hash:net" }),
      ["- different: ipset KUBE-CLUSTER-IP: type hash:net, expected hash:ip,port"],
    ],
    ["an address missing", { addresses: new Set() }, ["default/web missing: kube-ipvs0: 10.96.0.80"]],
    [
      "an address too much",
      { addresses: new Set(["10.96.0.80", "10.96.0.99", "fe80::1"]) },
      ["- extra: kube-ipvs0: 10.96.0.99"],
    ],
    ["the device missing", { addresses: undefined }, ["- missing: kube-ipvs0: the device"]],
    [
      "a virtual server too much, at an address of ours",
      { servers: [...expected.servers, ...expected.servers.map((one) => ({ ...one, port: 81 }))] },
      ["default/web extra: virtual server TCP 10.96.0.80:81: the virtual server"],
    ],
    [
      "another program's virtual server",
      { servers: [...expected.servers, ...expected.servers.map((one) => ({ ...one, address: "192.0.2.1" }))] },
      [],
    ],
  ])("%s", (_, damaged, wanted) => expect(found(damaged)).toEqual(wanted));

  test("other programs' sets are ignored", () => {
    expect(
      found({ sets: [...expected.sets, { name: "cali40x", type: "hash:net", members: new Set(["10.0.0.0/8"]) }] }),
    ).toEqual([]);
  });
});
