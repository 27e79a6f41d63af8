import { createSocket } from "node:dgram";
import { readdirSync, readFileSync } from "node:fs";
import type { TableGlance } from "@fairlead/netfilter";
import { expect } from "vitest";
import {
  areTablesThere,
  createChainsThere,
  createGlance,
  createRuleCounts,
  type IPFamily,
  openIptables,
  type Runner,
  type Variant,
} from "../../src/index.ts";
import { insideTest } from "../kernel-test.ts";

const EACH = (["nft", "legacy"] as const).flatMap((variant) =>
  (["IPv4", "IPv6"] as const).map((family) => ({ variant, family })),
);

const tool = (family: IPFamily, variant: Variant) => `${family === "IPv4" ? "iptables" : "ip6tables"}-${variant}`;

/** Changes nat by a process that is not ours. */
async function restore(runner: Runner, family: IPFamily, variant: Variant, commands: string): Promise<void> {
  const argv = [`${tool(family, variant)}-restore`, "--noflush", "-w", "5"] as const;
  await runner.run(argv, { input: `*nat\n${commands}COMMIT\n` });
}

for (const { variant, family } of EACH) {
  insideTest(`${variant}, ${tool(family, variant)}: its first table is seen`, async ({ runner }) => {
    const seen = async () => {
      const of = async (family: IPFamily) => ({
        nft: await areTablesThere(family, "nft"),
        legacy: await areTablesThere(family, "legacy"),
      });
      return { IPv4: await of("IPv4"), IPv6: await of("IPv6") };
    };
    const nothing = { IPv4: { nft: false, legacy: false }, IPv6: { nft: false, legacy: false } };
    expect(await seen()).toEqual(nothing);
    await runner.run([`${tool(family, variant)}-restore`, "-w", "5"], { input: "*mangle\n:OWN - [0:0]\nCOMMIT\n" });
    expect(await seen()).toEqual({ ...nothing, [family]: { ...nothing[family], [variant]: true } });
  });

  insideTest(
    `${variant}, ${family}: the chains of a table, without a tool and without making another`,
    async ({ runner }) => {
      const there = createChainsThere(family, variant);
      const all = async () => {
        const [nat, mangle] = [await there.all("nat"), await there.all("mangle")];
        return { nat: nat && [...nat].sort(), mangle: mangle && [...mangle].sort() };
      };
      const nat = ["INPUT", "OUTPUT", "POSTROUTING", "PREROUTING"];
      const mangle = ["FORWARD", "INPUT", "OUTPUT", "POSTROUTING", "PREROUTING"];
      expect(await all()).toEqual({ nat, mangle });
      const [own, long] = ["MINE", "A-NAME-OF-AS-MANY-AS-28-BYTE"];
      await restore(runner, family, variant, `:${own} - [0:0]\n:${long} - [0:0]\n-A ${own} -j RETURN\n`);
      expect([await there.has("nat", own), await there.has("nat", "OTHER")]).toEqual([true, false]);
      expect(await there.has("mangle", own)).toBe(false);
      const legacyNames = family === "IPv4" ? "/proc/self/net/ip_tables_names" : "/proc/self/net/ip6_tables_names";
      expect(readFileSync(legacyNames, "utf8")).toBe(variant === "legacy" ? "nat\n" : "");
      expect(await all()).toEqual({ nat: [long, "INPUT", own, ...nat.slice(1)], mangle });
      const descriptors = () => readdirSync("/proc/self/fd").length;
      const open = descriptors();
      for (let time = 0; time < 5; time++) await all();
      expect(descriptors()).toBe(open);
    },
  );
}

/** What the kernel says of nat after each of some changes, and after a packet that the rules count. */
async function glances(runner: Runner, variant: Variant, family: IPFamily): Promise<readonly TableGlance[]> {
  const glance = createGlance(family, variant);
  const steps = [
    "-A OUTPUT -j ACCEPT\n",
    "",
    "-S OUTPUT\n",
    ":MINE - [0:0]\n-A MINE -j RETURN\n-A OUTPUT -j MINE\n",
    "-R MINE 1 -j ACCEPT\n",
    "-F\n",
  ];
  const seen: TableGlance[] = [];
  for (const step of steps) {
    await (step === "" ? sendPacket(family) : restore(runner, family, variant, step));
    const one = await glance("nat");
    if (one !== undefined) seen.push(one);
  }
  return seen;
}

async function sendPacket(family: IPFamily): Promise<void> {
  const socket = createSocket(family === "IPv4" ? "udp4" : "udp6");
  const host = family === "IPv4" ? "127.0.0.1" : "::1";
  await new Promise<void>((resolve) => socket.send("packet", 9, host, () => resolve()));
  socket.close();
}

for (const [variant, family] of [
  ["nft", "IPv4"],
  ["legacy", "IPv4"],
  ["legacy", "IPv6"],
] as const) {
  insideTest(`${variant}, ${family}: another state after each change, the same without one`, async ({ runner }) => {
    const [first, same, listed, ...changed] = await glances(runner, variant, family);
    expect([same, listed]).toEqual([first, first]);
    expect(new Set([first, ...changed].map((one) => one?.state)).size).toBe(4);
  });
}

insideTest("legacy: as many entries as there are rules, and some for each chain", async ({ runner }) => {
  const [first, same, , more, , flushed] = await glances(runner, "legacy", "IPv4");
  expect(same).toEqual(first);
  // two rules, and for the chain its name and its end
  expect((more?.entries ?? 0) - (first?.entries ?? 0)).toBe(4);
  expect((more?.entries ?? 0) - (flushed?.entries ?? 0)).toBe(3);
});

for (const variant of ["nft", "legacy"] as const) {
  insideTest(`${variant}: rules that another program takes away, and no others`, async ({ runner }) => {
    const port = await openIptables(runner, { family: "IPv4", variant, ruleCounts: createRuleCounts });
    const foreign = (...args: readonly string[]) =>
      runner.run([`iptables-${variant}`, "-w", "5", "-t", "nat", ...args]);
    const own = (text: string) => port.restore(`*nat\n${text}COMMIT\n`);
    const steps: Readonly<Record<string, () => Promise<unknown>>> = {
      nothing: async () => {},
      written: () => own(":MINE - [0:0]\n-A MINE -j RETURN\n-A MINE -j ACCEPT\n-A PREROUTING -j MINE\n"),
      still: async () => {},
      again: async () => {},
      added: () => foreign("-A", "OUTPUT", "-j", "ACCEPT"),
      less: () => own("-D MINE -j RETURN\n"),
      rest: async () => {},
      chain: () => foreign("-F", "MINE"),
      after: async () => {},
      jump: () => foreign("-D", "PREROUTING", "-j", "MINE"),
      all: () => foreign("-F"),
    };
    const lost: string[] = [];
    for (const [name, step] of Object.entries(steps)) {
      await step();
      if ((await port.lost?.({ nat: ["PREROUTING", "OUTPUT", "MINE"] })) !== false) lost.push(name);
    }
    expect(lost).toEqual(["chain", "jump", "all"]);
  });
}
