import { describe, expect, test } from "vitest";
import { FakeIptables, FakeNfacct, FakeRunner } from "../src/fake/index.ts";
import { createNfacct } from "../src/index.ts";
import { result, scripted } from "./netlink/scripted.ts";
import { check } from "./nfacct-check.ts";

test("in memory", () => check(new FakeNfacct()));

test("the tool does where netlink cannot be had", async () => {
  const runner = new FakeRunner({ nfacct: { stdout: "{ pkts = 3, bytes = 4 } = dropped;\n" } });
  const nfacct = createNfacct(runner, { open: () => Promise.reject(new Error("no binary of koffi")) });
  expect(await nfacct.read("dropped")).toEqual({ packets: 3, bytes: 4 });
});

describe("where there is none", () => {
  test("says what is missing", async () => {
    const missing = await createNfacct(new FakeRunner()).ensure("x");
    expect(missing).toEqual({ ok: false, reason: "nfacct is not installed (apt-get install nfacct)" });
    const denied = new FakeRunner({ nfacct: { exitCode: 1, stderr: "nfacct v1.0.2: error: Operation not permitted" } });
    expect(await createNfacct(denied).ensure("x")).toMatchObject({
      ok: false,
      reason: expect.stringContaining("CAP_NET_ADMIN"),
    });
  });

  test.each([
    [1, "no permission to use nfacct: CAP_NET_ADMIN is missing"],
    [22, "EINVAL: invalid argument; the kernel may lack nfnetlink_acct"],
  ])("by netlink, error %i", async (errno, reason) => {
    // The first socket is the look whether there are any.
    const kernel = scripted(result(errno), result(errno));
    const nfacct = createNfacct(new FakeRunner(), { open: kernel.open });
    expect(await nfacct.ensure("x")).toEqual({ ok: false, reason: expect.stringContaining(reason) });
    expect(await nfacct.read("x")).toBeUndefined();
    expect(kernel.closed()).toBe(3);
  });

  test("a name that the kernel would cut", async () => {
    expect(await createNfacct(new FakeRunner()).ensure("x".repeat(32))).toMatchObject({ ok: false });
  });
});

test("a fake's rules may name the counters that were made", async () => {
  const nfacct = new FakeNfacct();
  const iptables = new FakeIptables({ family: "IPv4", nfacct });
  const payload = "*filter\n-A INPUT -m nfacct --nfacct-name dropped -j DROP\nCOMMIT\n";
  await expect(iptables.restore(payload)).rejects.toMatchObject({ line: 2 });
  await nfacct.ensure("dropped");
  await iptables.restore(payload);
  nfacct.count("dropped", 2, 120);
  expect(await nfacct.read("dropped")).toEqual({ packets: 2, bytes: 120 });
});
