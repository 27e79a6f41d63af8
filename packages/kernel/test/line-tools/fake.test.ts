import type { VirtualServer } from "@fairlead/netfilter";
import { describe, expect, test } from "vitest";
import { FakeIpset, FakeIpvsadm, FakeLinks } from "../../src/fake/index.ts";
import { checkIpset, checkIpvsadm, IPSET_CASES, IPVSADM_CASES } from "./cases.ts";

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

describe("faults", () => {
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

  test("a kernel without IPVS", async () => {
    const servers = new FakeIpvsadm({ supported: false });
    await expect(servers.change([{ kind: "add-server", server: WEB }])).rejects.toThrow("Can't initialize ipvs");
  });
});
