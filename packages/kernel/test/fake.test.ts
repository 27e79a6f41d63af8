import { VirtualClock } from "@fairlead/base/testing";
import type { VirtualServer } from "@fairlead/netfilter";
import { describe, expect, test } from "vitest";
import { FakeConntrack, FakeIpset, FakeIptables, FakeIpvsadm, FakeLinks, Faults } from "../src/fake/index.ts";
import { checkIpset, checkIpvsadm, IPSET_CASES, IPVSADM_CASES } from "./line-tools.ts";

const TWO = "*filter\n:A - [0:0]\nCOMMIT\n*nat\n:B - [0:0]\nCOMMIT\n";

async function chains(iptables: FakeIptables): Promise<string[]> {
  const all = [iptables.table("filter"), iptables.table("nat")].flatMap(({ chains }) => [...chains.keys()]);
  return all.filter((name) => name.length === 1);
}

describe("faults", () => {
  test("the n-th call fails, counted over all fakes that share the faults", async () => {
    const faults = new Faults();
    const [v4, v6] = [new FakeIptables({ family: "IPv4", faults }), new FakeIptables({ family: "IPv6", faults })];
    const conntrack = new FakeConntrack(faults);
    faults.failCall(3);
    await v4.restore(TWO);
    await v6.list("nat", "B");
    await expect(conntrack.sweep("IPv4", "UDP", () => [])).rejects.toThrow("injected fault");
    await v6.restore(TWO);
    expect(faults.calls.map(({ number, argv }) => `${number} ${argv.join(" ")}`)).toEqual([
      "1 iptables-nft-restore --noflush --counters -w 5",
      "2 ip6tables-nft -w 5 -t nat -S B",
      "3 conntrack -L -f ipv4 -p udp",
      "4 ip6tables-nft-restore --noflush --counters -w 5",
    ]);
  });

  test("killed half way: the transactions before that stay", async () => {
    const iptables = new FakeIptables({ family: "IPv4" });
    iptables.faults.failNext({ kind: "kill", transactions: 1 });
    await expect(iptables.restore(TWO)).rejects.toMatchObject({ cause: { reason: "signal", signal: "SIGKILL" } });
    expect(await chains(iptables)).toEqual(["A"]);
    iptables.faults.failNext({ kind: "kill" });
    await expect(iptables.restore("*filter\n-X A\nCOMMIT\n")).rejects.toThrow("SIGKILL");
    expect(await chains(iptables)).toEqual(["A"]);
  });

  test("done, but the answer is lost", async () => {
    const iptables = new FakeIptables({ family: "IPv4" });
    iptables.faults.failNext({ kind: "lost" });
    await expect(iptables.restore(TWO)).rejects.toThrow("SIGKILL");
    expect(await chains(iptables)).toEqual(["A", "B"]);
  });

  test("a delay is over when the clock says so, and may end in a fault", async () => {
    const clock = new VirtualClock();
    const iptables = new FakeIptables({ family: "IPv4", faults: new Faults(clock) });
    iptables.faults.failNext({ kind: "delay", ms: 3000 });
    const restored = iptables.restore(TWO);
    await clock.advance(2999);
    expect(await chains(iptables)).toEqual([]);
    await clock.advance(1);
    await restored;
    iptables.faults.failNext({ kind: "delay", ms: 10, next: { kind: "fail" } });
    const failed = expect(iptables.restore(TWO)).rejects.toThrow("injected fault");
    await clock.advance(10);
    await failed;
  });
});

describe("meddling", () => {
  test("flush keeps chains unless asked, and policies", async () => {
    const iptables = new FakeIptables({ family: "IPv4" });
    await iptables.meddle("*nat\n:OUTPUT DROP [0:0]\n:A - [0:0]\n-A OUTPUT -j A\n-A A -j RETURN\nCOMMIT\n");
    iptables.flush("nat");
    expect(await iptables.list("nat", "A")).toEqual([]);
    expect(iptables.table("nat").chains.get("OUTPUT")).toEqual({ name: "OUTPUT", policy: "DROP", rules: [] });
    iptables.flush("nat", { chains: true });
    expect(await iptables.list("nat", "A")).toBeUndefined();
    await iptables.restore("*nat\n:A - [0:0]\n-X A\nCOMMIT\n");
  });
});

describe("rule set", () => {
  test("all tables, and what was given stays as it was", async () => {
    const iptables = new FakeIptables({ family: "IPv4" });
    const before = iptables.ruleSet();
    await iptables.restore("*nat\n-A OUTPUT -j ACCEPT\nCOMMIT\n");
    const between = iptables.ruleSet();
    await iptables.restore("*nat\n-F OUTPUT\nCOMMIT\n");
    expect([...before.keys()]).toEqual(["filter", "nat", "mangle", "raw", "security"]);
    expect(before.get("nat")?.chains.get("OUTPUT")?.rules).toHaveLength(0);
    expect(between.get("nat")?.chains.get("OUTPUT")?.rules).toHaveLength(1);
  });

  test("ipsets and extensions that a kernel has or lacks", async () => {
    const payload =
      "*filter\n-A INPUT -m set --match-set KUBE-X src -m statistic --mode random --probability 0.5 -j ACCEPT\nCOMMIT\n";
    const sets = new Set<string>();
    const iptables = new FakeIptables({ family: "IPv4", sets, lacking: ["statistic"] });
    await expect(iptables.restore(payload)).rejects.toThrow("Set KUBE-X doesn't exist");
    sets.add("KUBE-X");
    await expect(iptables.restore(payload)).rejects.toMatchObject({
      kind: "no-extension",
      message: expect.stringContaining("xt_statistic"),
    });
  });
});

test.each(IPVSADM_CASES)("ipvsadm: $name", (row) => checkIpvsadm(new FakeIpvsadm(), row));
test.each(IPSET_CASES)("ipset: $name", (row) => checkIpset(new FakeIpset(), row));

const WEB: VirtualServer = {
  family: "IPv4",
  protocol: "TCP",
  address: "10.96.0.1",
  port: 443,
  scheduler: "rr",
  flags: [],
};

describe("devices and addresses", () => {
  test("ends at the first command that fails and keeps what came before", async () => {
    const device = "kube-ipvs0";
    const links = new FakeLinks();
    const address = (kind: "add-address" | "delete-address", one: string) => ({ kind, device, address: one });
    await links.change([{ kind: "add-device", device }, address("add-address", "10.96.0.1")]);
    await expect(
      links.change(["fd00:96::1", "10.96.0.1", "10.96.0.2"].map((one) => address("add-address", one))),
    ).rejects.toThrow("RTNETLINK answers: File exists\nCommand failed -:2");
    expect(await links.addresses(device)).toEqual(new Set(["10.96.0.1", "fd00:96::1"]));
    await expect(links.change([address("delete-address", "10.96.0.9")])).rejects.toThrow(
      "Cannot assign requested address",
    );
    await links.change([{ kind: "delete-device", device }]);
    expect(await links.addresses(device)).toBeUndefined();
    await expect(links.change([address("add-address", "10.96.0.1")])).rejects.toThrow(
      'Cannot find device "kube-ipvs0"',
    );
  });
});

describe("faults of line tools", () => {
  test("killed half way: the commands before that count", async () => {
    const servers = new FakeIpvsadm();
    servers.faults.failNext({ kind: "kill", transactions: 1 });
    const added = servers.change([
      { kind: "add-server", server: WEB },
      { kind: "add-server", server: { ...WEB, address: "10.96.0.2" } },
    ]);
    await expect(added).rejects.toThrow("SIGKILL");
    expect(servers.servers().map(({ address }) => address)).toEqual(["10.96.0.1"]);
  });

  test("a set that rules name can't be destroyed", async () => {
    const sets = new FakeIpset({ inUse: () => true });
    const changed = sets.change([
      { kind: "create", set: { name: "A", type: "hash:ip", family: "IPv4" } },
      { kind: "destroy", set: "A" },
    ]);
    await expect(changed).rejects.toThrow("in use by a kernel component");
  });
});
