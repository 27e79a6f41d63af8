import { mkdtemp, rm } from "node:fs/promises";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { parseArguments } from "@fairlead/config";
import { FakeHcn } from "@fairlead/kernel/fake";
import { createHcn, HCN_CODES } from "@fairlead/kernel/hcn";
import { afterEach, describe, expect, test } from "vitest";
import { familiesOf, lockNode, waitForNetwork } from "../src/windows/host.ts";
import { windowsKernel } from "../src/windows/kernel.ts";
import { recordedLog } from "./support/fake-node.ts";

const NETWORK = { ID: "0e000000-0000-4000-8000-0000000000aa", Name: "cbr0", Type: "L2Bridge" };
const OVERLAY = { ...NETWORK, Name: "vxlan0", Type: "Overlay" };

function settings(...argv: string[]) {
  const parsed = parseArguments(argv, { readFile: () => "", version: "0.0.0", platform: "windows" });
  if (parsed.kind !== "run") throw new Error(JSON.stringify(parsed));
  return parsed.config;
}

function hcnOf(Major: number, Minor: number) {
  return createHcn(new FakeHcn({ version: { Major, Minor } }));
}

describe("families", () => {
  test.each([
    ["both on a network that can have them", NETWORK, [15, 5], [], ["IPv4", "IPv6"]],
    ["IPv4 on an overlay", OVERLAY, [15, 5], [], ["IPv4"]],
    ["that of bindAddress on an old version", NETWORK, [10, 4], [], ["IPv4"]],
    ["IPv6 there", NETWORK, [10, 4], ["--bind-address=2001:db8::1"], ["IPv6"]],
  ] as const)("%s", async (_, network, [major, minor], argv, families) => {
    const found = await familiesOf(hcnOf(major, minor), network, settings(...argv));
    expect(found.families).toEqual(families);
    expect([...found.families, ...found.unserved.keys()].sort()).toEqual(["IPv4", "IPv6"]);
  });

  test("an overlay without its feature gate is refused", async () => {
    const config = settings("--feature-gates=WinOverlay=false");
    await expect(familiesOf(hcnOf(15, 5), OVERLAY, config)).rejects.toThrow("feature gate WinOverlay is off");
  });

  test("direct server return that HNS lacks is refused", async () => {
    await expect(familiesOf(hcnOf(9, 2), NETWORK, settings("--enable-dsr"))).rejects.toThrow(
      "winkernel.enableDSR: this version of Windows has no direct server return",
    );
  });
});

describe("the network", () => {
  test("is there", async () => {
    const hcn = createHcn(new FakeHcn({ networks: [NETWORK] }));
    const log = recordedLog();
    expect(await waitForNetwork(hcn, "cbr0", log, new AbortController().signal)).toEqual(NETWORK);
    expect(log.lines).toEqual([]);
  });

  test("is waited for until the agent is stopped, and why is said once for each reason", async () => {
    const fake = new FakeHcn();
    fake.fail("HcnEnumerateNetworks", HCN_CODES.notRunning, 1);
    const stop = new AbortController();
    const log = recordedLog();
    let looks = 0;
    const hcn = createHcn(fake);
    const network = async (name: string) => {
      looks += 1;
      if (looks === 3) stop.abort();
      return hcn.network(name);
    };
    expect(await waitForNetwork({ network }, "cbr0", log, stop.signal, { after: atOnce })).toBeUndefined();
    expect(log.lines.map(({ fields }) => fields["reason"])).toEqual([
      "HcnEnumerateNetworks: 0x800706b5: the Host Network Service (hns) is not running",
      "there is no network of this name",
    ]);
  });
});

function atOnce(_ms: number, work: () => void): () => void {
  queueMicrotask(work);
  return () => {};
}

describe("the node's lock", () => {
  const folders: string[] = [];
  afterEach(async () => {
    for (const folder of folders.splice(0)) await rm(folder, { recursive: true });
  });

  test("another agent is named, and one with another service proxy name is none", async () => {
    const folder = await mkdtemp(join(tmpdir(), "lock-"));
    folders.push(folder);
    const pipe = join(folder, "fairlead-proxy");
    await lockNode("", pipe);
    await lockNode("second", pipe);
    expect(await text(connect(pipe))).toMatch(/^process \d+ \(version .*, running since .*\)$/);
    await expect(lockNode("", pipe)).rejects.toThrow(
      new RegExp(`^another agent runs on this node: process ${process.pid} .* holds ${pipe}$`),
    );
  });
});

test("the node's addresses are given again when they are others", async () => {
  const address = (text: string) =>
    ({ family: "IPv4", address: text, prefixLength: 24, interface: "eth0", scope: "global", up: true }) as const;
  const lists = [["192.0.2.1"], ["192.0.2.1"], ["192.0.2.1", "192.0.2.2"]];
  const kernel = windowsKernel({ after: atOnce }, () => (lists.shift() ?? []).map(address));
  const seen: string[] = [];
  for await (const found of kernel.addresses.watch({ signal: new AbortController().signal })) {
    seen.push(found.map((one) => one.address).join());
    if (seen.length === 2) break;
  }
  expect(seen).toEqual(["192.0.2.1", "192.0.2.1,192.0.2.2"]);
});

test("of this machine they are listed", async () => {
  const [loopback] = await windowsKernel({ after: atOnce }).addresses.list();
  expect(loopback).toMatchObject({ scope: expect.stringMatching(/host|global/), up: true });
});
