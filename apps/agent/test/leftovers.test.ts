import { createIptablesBackend, iptablesFacts } from "@fairlead/backend-iptables";
import { createUserspaceBackend } from "@fairlead/backend-userspace";
import { FakeSockets } from "@fairlead/backend-userspace/fake";
import { settled } from "@fairlead/base/testing";
import type { IPFamily } from "@fairlead/core";
import { NftablesError } from "@fairlead/kernel";
import { type FakeIptables, FakeRunner } from "@fairlead/kernel/fake";
import { renderRuleSet } from "@fairlead/netfilter";
import { NFT_FAMILY, type NftBatch } from "@fairlead/netfilter/nft";
import { describe, expect, test } from "vitest";
import { modes } from "../src/modes/index.ts";
import { leftoversFollower } from "../src/modes/leftovers.ts";
import { removeNftTables } from "../src/real-kernel.ts";
import { emptyPlan, fakeKernel, recordedLog, runOf, SYNCED } from "./support/fake-node.ts";
import { type RunningAgent, runningAgent, slice, webNodePort } from "./support/running-agent.ts";

const noNetlink = async () => {
  throw new Error("koffi has no binary for this machine");
};

const [EPERM, ENOENT] = [1, 2];

/** A kernel with these tables, by netlink and by nft; notes what it is asked to delete. */
function nft(...tables: string[]) {
  const deleted: string[] = [];
  const runner = new FakeRunner({
    nft: (args) => {
      const table = args.slice(2).join(" ");
      if (!tables.includes(table))
        return { exitCode: 1, stderr: "Error: No such file or directory; did you mean table" };
      deleted.push(args.join(" "));
      return "";
    },
  });
  const open = async () => ({
    async commit(batch: NftBatch) {
      const object = batch.objectOf(1);
      if (!tables.includes(`${batch.family} ${batch.table}`)) throw new NftablesError(batch, object, ENOENT);
      deleted.push(`${object?.action} ${object?.what} ${batch.family} ${batch.table}`);
    },
    async close() {},
  });
  const isThere = async (family: IPFamily, name: string) => tables.includes(`${NFT_FAMILY[family]} ${name}`);
  return { runner, open, deleted, isThere };
}

describe("what nftables mode left", () => {
  const tables = ["ip kube-proxy", "ip6 kube-proxy", "inet kube-proxy", "ip nat", "ip kube-proxy-2"];

  test.each([
    ["the kernel says what there is", true, true],
    ["the kernel says nothing", false, true],
    ["there is no netlink, but nft", false, false],
  ])("its tables are removed, and no other: %s", async (_, says, netlink) => {
    const { runner, open, deleted, isThere } = nft(...tables);
    const parts = { runner, open: netlink ? open : noNetlink, isThere: says ? isThere : async () => undefined };
    expect(await removeNftTables(parts, "kube-proxy")).toEqual(["table ip kube-proxy", "table ip6 kube-proxy"]);
    expect(deleted).toEqual(["delete table ip kube-proxy", "delete table ip6 kube-proxy"]);
  });

  test("nothing there: nothing is asked for; or neither netlink nor nft: nothing is done", async () => {
    const { runner, open, deleted, isThere } = nft("ip nat");
    const says = async () => undefined;
    expect(await removeNftTables({ runner, open, isThere: says }, "kube-proxy")).toEqual([]);
    expect(await removeNftTables({ runner, open: noNetlink, isThere: says }, "kube-proxy")).toEqual([]);
    expect(deleted).toEqual([]);
    const none = new FakeRunner({ nft: () => ({ exitCode: 1, stderr: "must not be asked" }) });
    expect(await removeNftTables({ runner: none, open: noNetlink, isThere }, "kube-proxy")).toEqual([]);
    expect(
      await removeNftTables({ runner: new FakeRunner(), open: noNetlink, isThere: async () => true }, "kube-proxy"),
    ).toEqual([]);
  });

  test("other errors of the kernel or nft are reported", async () => {
    const isThere = async () => true;
    const runner = new FakeRunner({ nft: () => ({ exitCode: 1, stderr: "Operation not permitted" }) });
    await expect(removeNftTables({ runner, open: noNetlink, isThere }, "kube-proxy")).rejects.toThrow(
      "Operation not permitted",
    );
    const commit = async (batch: NftBatch) => {
      throw new NftablesError(batch, batch.objectOf(1), EPERM);
    };
    const open = async () => ({ commit, async close() {} });
    await expect(removeNftTables({ runner, open, isThere }, "kube-proxy")).rejects.toThrow(
      "table ip kube-proxy: cannot delete table kube-proxy: EPERM",
    );
  });

  test("not before every family serves, and once", async () => {
    let removals = 0;
    const { kernel } = fakeKernel({
      async removeNftTables() {
        removals++;
        return [];
      },
    });
    const follower = leftoversFollower({
      kernel,
      mode: iptablesFacts,
      removals: modes,
      families: ["IPv4", "IPv6"],
      log: recordedLog(),
    });
    const ran = async (family: "IPv4" | "IPv6", kind: "synced" | "waiting") => {
      await follower.ran?.(runOf(kind === "synced" ? SYNCED : { kind }, family));
      return removals;
    };
    expect(await ran("IPv4", "synced")).toBe(0);
    expect(await ran("IPv6", "waiting")).toBe(0);
    expect(await ran("IPv6", "synced")).toBe(1);
    expect(await ran("IPv4", "synced")).toBe(1);
  });
});

const LEFT = emptyPlan("IPv4", { nodeAddresses: ["10.201.0.10"] });

const WRITERS = {
  iptables: (rules: FakeIptables) => createIptablesBackend(rules).sync(LEFT),
  userspace: (rules: FakeIptables) => createUserspaceBackend(rules, { open: new FakeSockets().open }).sync(LEFT),
};

/** All in iptables but kubelet's chain, which stays; relays have any port that is free. */
const rulesOf = ({ tables }: RunningAgent) =>
  [...renderRuleSet(tables.IPv4.ruleSet())]
    .join("")
    .replaceAll(/:4\d{4}\b/g, ":relay")
    .split("\n")
    .filter((line) => !line.includes("KUBE-FIREWALL"))
    .sort();

test.each([
  ["iptables", "ipvs"],
  ["iptables", "nftables"],
  ["iptables", "userspace"],
  ["userspace", "iptables"],
  ["userspace", "ipvs"],
] as const)("what %s mode left goes once %s mode serves, and not before", async (left, mode) => {
  const options = { mode, flags: [`--proxy-mode=${mode}`, "--cluster-cidr=10.144.0.0/16"] };
  const [one, fresh] = [await runningAgent(options), await runningAgent(options)];
  await WRITERS[left](one.tables.IPv4);
  const written = rulesOf(one);
  expect(written).not.toEqual(rulesOf(fresh));
  await settled();
  expect(rulesOf(one)).toEqual(written);
  for (const each of [one, fresh]) await each.serve(webNodePort, slice("web", "10.144.154.71"));
  expect(rulesOf(one)).toEqual(rulesOf(fresh));
});
