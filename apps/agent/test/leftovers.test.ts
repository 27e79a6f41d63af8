import { iptablesFacts } from "@fairlead/backend-iptables";
import type { IPFamily } from "@fairlead/core";
import { FakeIptables, FakeRunner } from "@fairlead/kernel/fake";
import { describe, expect, test } from "vitest";
import { removeNftTables } from "../src/host/nft-leftovers.ts";
import { modes, removedModes } from "../src/modes/index.ts";
import { leftoversFollower } from "../src/modes/leftovers.ts";
import type { FamilyRun } from "../src/sync/follower.ts";
import { fakeIpvs } from "./support/fake-ipvs.ts";
import { recordedLog } from "./support/recorded-log.ts";

/** nft with these tables; notes what it is told to delete. */
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
  const isThere = async (family: IPFamily, name: string) =>
    tables.includes(`${family === "IPv4" ? "ip" : "ip6"} ${name}`);
  return { runner, deleted, isThere };
}

describe("what kube-proxy's nftables mode left", () => {
  test.each(["the kernel says what there is", "the kernel says nothing"])(
    "its tables are removed, nobody else's: %s",
    async (what) => {
      const { runner, deleted, isThere } = nft(
        "ip kube-proxy",
        "ip6 kube-proxy",
        "inet kube-proxy",
        "ip nat",
        "ip kube-proxy-2",
      );
      const asked = what.endsWith("nothing") ? async () => undefined : isThere;
      expect(await removeNftTables(runner, asked)).toEqual(["table ip kube-proxy", "table ip6 kube-proxy"]);
      expect(deleted).toEqual(["delete table ip kube-proxy", "delete table ip6 kube-proxy"]);
    },
  );

  test("nothing there: nft is not even started; or no nft: nothing is done", async () => {
    const { runner, deleted, isThere } = nft("ip nat");
    expect(await removeNftTables(runner, async () => undefined)).toEqual([]);
    expect(deleted).toEqual([]);
    const noProcess = new FakeRunner({ nft: () => ({ exitCode: 1, stderr: "must not be asked" }) });
    expect(await removeNftTables(noProcess, isThere)).toEqual([]);
    expect(await removeNftTables(new FakeRunner(), async () => true)).toEqual([]);
  });

  test("what else nft says is told", async () => {
    const denied = new FakeRunner({ nft: () => ({ exitCode: 1, stderr: "Operation not permitted" }) });
    await expect(removeNftTables(denied, async () => true)).rejects.toThrow("Operation not permitted");
  });

  test("not before every family serves, and once", async () => {
    let removals = 0;
    const kernel = {
      iptables: async (family: IPFamily) => new FakeIptables({ family }),
      iptablesInUse: async (family: IPFamily) => [new FakeIptables({ family })],
      ...fakeIpvs(),
      async removeNftTables() {
        removals++;
        return [];
      },
    };
    const follower = leftoversFollower({
      kernel,
      mode: iptablesFacts,
      removals: [...modes, ...removedModes],
      families: ["IPv4", "IPv6"],
      log: recordedLog(),
    });
    const ran = async (family: "IPv4" | "IPv6", kind: "synced" | "waiting") => {
      const plan = { family, groups: new Map(), healthChecks: new Map(), foreignClusterIPs: new Set<string>() };
      const node = { detector: { kind: "none" }, nodePortAddresses: { kind: "all" } } as const;
      const synced = { kind: "synced", report: { kind: "full", objects: {} }, milliseconds: 1 } as const;
      const outcome: FamilyRun["outcome"] = kind === "synced" ? synced : { kind };
      await follower.ran?.({ family, plan: { ...plan, node, endpointCount: 0 }, change: undefined, outcome });
      return removals;
    };
    expect(await ran("IPv4", "synced")).toBe(0);
    expect(await ran("IPv6", "waiting")).toBe(0);
    expect(await ran("IPv6", "synced")).toBe(1);
    expect(await ran("IPv4", "synced")).toBe(1);
  });
});
