import { describe, expect, test } from "vitest";
import { FakeIpset, FakeIpvsadm, FakeLinks } from "../../src/fake/index.ts";
import { IPSET_CASES, IPVSADM_CASES } from "./cases.ts";
import { checkIpset, checkIpvsadm } from "./check.ts";

test.each(IPVSADM_CASES)("ipvsadm: $name", (row) => checkIpvsadm(new FakeIpvsadm(), row));
test.each(IPSET_CASES)("ipset: $name", (row) => checkIpset(new FakeIpset(), row));

describe("ip -batch", () => {
  test("stops at the first line that fails and keeps what came before", async () => {
    const links = new FakeLinks();
    const batch = (...lines: string[]) => links.batch(lines.map((line) => `${line}\n`).join(""));
    await batch("link add dev kube-ipvs0 type dummy", "addr add 10.96.0.1/32 dev kube-ipvs0");
    await expect(
      batch(
        "addr add fd00:96::1/128 dev kube-ipvs0",
        "addr add 10.96.0.1/32 dev kube-ipvs0",
        "addr add 10.96.0.2/32 dev kube-ipvs0",
      ),
    ).rejects.toThrow("RTNETLINK answers: File exists\nCommand failed -:2");
    expect(await links.addresses("kube-ipvs0")).toEqual(new Set(["10.96.0.1", "fd00:96::1"]));
    await expect(batch("addr del 10.96.0.9/32 dev kube-ipvs0")).rejects.toThrow("Cannot assign requested address");
    await batch("link del dev kube-ipvs0");
    expect(await links.addresses("kube-ipvs0")).toBeUndefined();
    await expect(batch("addr add 10.96.0.1/32 dev kube-ipvs0")).rejects.toThrow('Cannot find device "kube-ipvs0"');
  });
});

describe("faults", () => {
  test("killed half way: the lines before that count", async () => {
    const servers = new FakeIpvsadm();
    servers.faults.failNext({ kind: "kill", transactions: 1 });
    await expect(servers.restore("-A -t 10.96.0.1:1 -s rr\n-A -t 10.96.0.2:1 -s rr\n")).rejects.toThrow("SIGKILL");
    expect(servers.servers().map(({ address }) => address)).toEqual(["10.96.0.1"]);
  });

  test("a set that rules name can't be destroyed", async () => {
    const sets = new FakeIpset({ inUse: () => true });
    await expect(sets.restore("create A hash:ip family inet hashsize 1024 maxelem 65536\ndestroy A\n")).rejects.toThrow(
      "in use by a kernel component",
    );
  });

  test("a kernel without IPVS", async () => {
    const servers = new FakeIpvsadm({ supported: false });
    await expect(servers.restore("-A -t 10.96.0.1:1 -s rr\n")).rejects.toThrow("Can't initialize ipvs");
  });
});
