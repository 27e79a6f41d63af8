import type { KernelReader } from "@fairlead/kernel";
import { FakeNodeAddresses } from "@fairlead/kernel/fake";
import { LazySaveParser } from "@fairlead/netfilter";
import { goldenScenario } from "@fairlead/testkit";
import { expect, test } from "vitest";
import { seenMode } from "../src/commands/verify/watch/kernel.ts";

/** What kube-proxy in ipvs mode has in nat once it has begun its first sync, seconds before the rest. */
const BEGUN_IN_IPVS = `*nat
:PREROUTING ACCEPT [0:0]
:KUBE-SERVICES - [0:0]
:KUBE-POSTROUTING - [0:0]
:KUBE-NODE-PORT - [0:0]
-A PREROUTING -m comment --comment "kubernetes service portals" -j KUBE-SERVICES
COMMIT
`;

interface Held {
  readonly nat?: string;
  readonly tables?: readonly string[];
  /** Of kube-ipvs0. */
  readonly bound?: readonly string[];
}

function kernelWith({ nat = "", tables = [], bound }: Held): KernelReader {
  const never = () => Promise.reject(new Error("nobody asks for this here"));
  return {
    addresses: new FakeNodeAddresses([]),
    rules: async (family) => {
      const parser = new LazySaveParser({ family });
      if (family === "IPv4") parser.push(nat);
      return parser.end();
    },
    rulesGeneration: never,
    generation: never,
    hasNftTable: async (_family, name) => tables.includes(name),
    nftTable: never,
    servers: never,
    sets: never,
    addressesOf: async () => bound && new Set(bound),
    setting: never,
    close: async () => {},
  };
}

test.each<{ what: string; held: Held; mode: string | undefined }>([
  { what: "nothing", held: {}, mode: undefined },
  { what: "the table of nftables mode", held: { tables: ["kube-proxy"] }, mode: "nftables" },
  { what: "rules of iptables mode", held: { nat: goldenScenario("09-loadbalancer").iptables }, mode: "iptables" },
  {
    what: "addresses on kube-ipvs0",
    held: { nat: BEGUN_IN_IPVS, bound: ["10.96.0.1"] },
    mode: "ipvs",
  },
  { what: "chains of ipvs mode and no device yet", held: { nat: BEGUN_IN_IPVS }, mode: undefined },
  { what: "chains of ipvs mode and no address yet", held: { nat: BEGUN_IN_IPVS, bound: [] }, mode: undefined },
])("the mode of a proxy that has programmed $what is $mode", async ({ held, mode }) => {
  expect((await seenMode(kernelWith(held)))?.name).toBe(mode);
});
