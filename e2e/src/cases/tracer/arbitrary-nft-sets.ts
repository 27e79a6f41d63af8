import type { IPFamily } from "@fairlead/core";
import {
  addressHex,
  type Hex,
  hexOf,
  hostHex,
  type NftSet,
  PROTOCOLS,
  padded,
  portHex,
  type SetElement,
  type Verdict,
} from "@fairlead/netfilter/nft";
import { clientA, NODE_A, outside, webA1, webA2, webB1 } from "@fairlead/testkit";
import { FRONTENDS, PORTS } from "./arbitrary-packets.ts";

/** The sets that rules of random tables look into. */
export function setsOf(family: IPFamily): readonly NftSet[] {
  const address = family === "IPv4" ? "ipv4_addr" : "ipv6_addr";
  const frontend = [address, "inet_proto", "inet_service"] as const;
  const hosts = [clientA, webA1, outside, NODE_A].map(({ addresses }) => ({ key: addressHex(addresses[family]) }));
  return [
    made({ name: "hosts", key: [address], flags: [] }, hosts),
    made({ name: "networks", key: [address], flags: ["interval"] }, networkBounds(family)),
    made({ name: "dispatch", key: frontend, data: "verdict", flags: [] }, verdicts(family, ["service", "endpoint"])),
    made({ name: "gates", key: frontend, data: "verdict", flags: [] }, verdicts(family, ["decision"])),
    made(
      { name: "endpoints", key: [...frontend, "integer"], data: [address, "inet_service"], flags: [] },
      endpoints(family),
    ),
  ];
}

function made(set: Omit<NftSet, "elements">, elements: readonly SetElement[]): NftSet {
  return { ...set, elements: new Map(elements.map((one) => [one.intervalEnd ? `${one.key} end` : one.key, one])) };
}

/** Where a network begins, and the first address behind it. */
function networkBounds(family: IPFamily): readonly SetElement[] {
  const bounds =
    family === "IPv4"
      ? [
          ["10.96.0.0", "10.112.0.0"],
          ["10.144.1.0", "10.144.2.0"],
        ]
      : [
          ["fd00:10:96::", "fd00:10:97::"],
          ["fd00:144::1:0", "fd00:144::2:0"],
        ];
  return bounds.flatMap(([from = "", behind = ""]) => [
    { key: addressHex(from) },
    { key: addressHex(behind), intervalEnd: true as const },
  ]);
}

function keysOf(family: IPFamily): readonly Hex[] {
  const addresses = [...FRONTENDS[family], NODE_A.addresses[family]];
  return addresses.flatMap((address) =>
    PORTS.flatMap((port) =>
      ["tcp", "udp"].map((name) => addressHex(address) + padded(hexOf([PROTOCOLS[name] ?? 0])) + padded(portHex(port))),
    ),
  );
}

/** Every other frontend leads to one of the chains, or is dropped or accepted. */
function verdicts(family: IPFamily, chains: readonly string[]): readonly SetElement[] {
  const all: readonly Verdict[] = [
    ...chains.flatMap((chain): Verdict[] => [
      { kind: "goto", chain },
      { kind: "jump", chain },
    ]),
    { kind: "accept" },
    { kind: "return" },
  ];
  return keysOf(family).flatMap((key, at) => {
    const value = all[Math.floor(at / 2) % all.length];
    return at % 2 === 0 && value !== undefined ? [{ key, value }] : [];
  });
}

/** Slots 0 and 1 of three for every third frontend. */
function endpoints(family: IPFamily): readonly SetElement[] {
  const targets = [webA1, webA2, webB1].map(({ addresses }) => addressHex(addresses[family]));
  return keysOf(family).flatMap((key, at) => {
    if (at % 3 !== 0) return [];
    return [0, 1].map((slot) => ({
      key: key + hostHex(slot),
      value: (targets[(at + slot) % targets.length] ?? "") + padded(portHex(8080)),
    }));
  });
}
