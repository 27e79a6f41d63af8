import { type LinkCommand, parseSetCommand } from "@fairlead/netfilter";
import { describe, expect, test } from "vitest";
import { FakeRunner } from "../src/fake/index.ts";
import {
  createIpset,
  createIpvsadm,
  createLinks,
  type IpsetClient,
  openNetfilterSocket,
  openRouteSocket,
  type Runner,
} from "../src/index.ts";
import { encodeMember } from "../src/ipset.ts";
import { createNamespace } from "../src/netns/index.ts";
import { insideTest, kernelSuite, kernelTest, noKernel, noProcess, runnerIn } from "./kernel-test.ts";
import { checkIpset, checkIpvsadm, IPSET_CASES, IPVSADM_CASES } from "./line-tools.ts";

async function inNamespace(body: (runner: Runner) => Promise<void>): Promise<void> {
  await using namespace = await createNamespace();
  await body(runnerIn(namespace));
}

async function lacks(runner: Runner, ...argv: [string, ...string[]]): Promise<string | undefined> {
  return runner.run(argv).then(
    () => undefined,
    (error: unknown) => String(error),
  );
}

async function lacksIpvs(): Promise<string | undefined> {
  if (noKernel !== undefined) return noKernel;
  await using namespace = await createNamespace();
  return await lacks(runnerIn(namespace), "ipvsadm", "--save", "-n");
}

kernelSuite("ipset", () => {
  test.each(IPSET_CASES)("$name", (row) =>
    inNamespace(async (runner) => {
      expect(await lacks(runner, "ipset", "list", "-n")).toBeUndefined();
      await checkIpset(createIpset(runner), row);
    }),
  );
});

// IPVS is a module that few kernels at hand have; the fake runs the same rows everywhere, and ipvs mode as a whole runs
// on a real IPVS in the test ground's User-Mode Linux.
const withoutIpvs = await lacksIpvs();

if (withoutIpvs === undefined) {
  kernelSuite("ipvsadm", () => {
    test.for(IPVSADM_CASES)("$name", (row) => inNamespace((runner) => checkIpvsadm(createIpvsadm(runner), row)));
  });
} else {
  process.stderr.write(`ipvsadm's rows run on the fake only: ${withoutIpvs}\n`);
}

kernelTest("addresses of a device, and a change that stops half way", async ({ runner }) => {
  const device = "a0";
  const links = createLinks(runner);
  const add = (...addresses: readonly string[]) =>
    links.change(addresses.map((address) => ({ kind: "add-address", device, address })));
  expect(await links.addresses("nope")).toBeUndefined();
  await runner.run(["ip", "link", "add", device, "type", "veth", "peer", "name", "a1"]);
  await add("10.96.0.1", "fd00:96::1");
  await expect(add("10.96.0.2", "10.96.0.1", "10.96.0.3")).rejects.toThrow(
    /(?:File exists|already assigned)[\s\S]*Command failed -:2/,
  );
  expect(await links.addresses(device)).toEqual(new Set(["10.96.0.1", "10.96.0.2", "fd00:96::1"]));
});

const SETS = [
  "create B bitmap:port range 0-65535",
  "create I hash:ip family inet6",
  "create P hash:ip,port",
  "create L hash:ip,port,ip",
  "create N hash:ip,port,net",
  "create M hash:ip,port,net family inet6",
  "add P 10.96.0.9,udp:53",
];

const CHANGES = [
  "add B 30080",
  "add I fd00::1",
  "add P 10.96.0.1,tcp:443",
  "add P 10.96.0.1,tcp:443",
  "add L 10.144.1.5,sctp:80,10.144.1.5",
  "add N 10.96.0.1,udp:80,198.51.100.0/24",
  "add N 10.96.0.1,udp:80,198.51.100.7",
  "add M fd00:96::1,tcp:80,8000::/1",
  "del P 10.96.0.9,udp:53",
  "del P 10.96.0.8,udp:53",
];

const LEFT = [
  "add B 30080",
  "add I fd00::1",
  "add L 10.144.1.5,sctp:80,10.144.1.5",
  "add M fd00:96::1,tcp:80,8000::/1",
  "add N 10.96.0.1,udp:80,198.51.100.0/24",
  "add N 10.96.0.1,udp:80,198.51.100.7",
  "add P 10.96.0.1,tcp:443",
];

const byNetlink = () => createIpset(noProcess, { open: openNetfilterSocket });

insideTest(
  "members of every type come and go by netlink; what is there already, or gone, is no error",
  async ({ runner }) => {
    await runner.run(["ipset", "restore"], { input: `${SETS.join("\n")}\n` });
    await byNetlink().change(CHANGES.map(parseSetCommand));
    const { stdout } = await runner.run(["ipset", "save", "-sorted"]);
    expect(
      stdout
        .split("\n")
        .filter((line) => line.startsWith("add "))
        .sort(),
    ).toEqual(LEFT);
  },
);

insideTest("sets are listed by netlink as ipset prints them, those that are not there left out", async ({ runner }) => {
  const many = Array.from({ length: 3_000 }, (_, at) => `add P 10.96.${at >> 8}.${at & 0xff},tcp:443`);
  const foreign = "create Z hash:net family inet";
  await runner.run(["ipset", "restore"], { input: `${[...SETS, foreign, ...LEFT, ...many.slice(2)].join("\n")}\n` });
  const names = ["P", "missing", "N", "M", "L", "I", "B"];
  const all = async (client: IpsetClient) => {
    const found: { readonly name: string; readonly members: readonly string[] }[] = [];
    for await (const set of client.save(names)) found.push({ ...set, members: [...set.members].sort() });
    return found.sort((one, other) => one.name.localeCompare(other.name));
  };
  const printed = await all(createIpset(runner));
  expect(await all(byNetlink())).toEqual(printed);
  expect(printed).toHaveLength(6);
});

insideTest("a set that is not there is an error", async () => {
  const change = byNetlink().change([parseSetCommand("add A 10.96.0.1,tcp:80")]);
  await expect(change).rejects.toThrow(/ipset: add A 10.96.0.1,tcp:80: ENOENT/);
});

describe("ipset's client", () => {
  const written: string[] = [];
  const runner = () =>
    new FakeRunner({
      ipset: (args, input) => {
        written.push(`${args.join(" ")}: ${input}`);
        return "";
      },
    });
  const unreachable = async () => {
    throw new Error("no netlink here");
  };

  test.each([
    ["sets are made", "create A hash:ip family inet hashsize 1024 maxelem 65536\nadd A 10.96.0.1\n"],
    ["there are many members", "add A 10.96.0.1\n".repeat(5_000)],
    ["netlink cannot be had", "add A 10.96.0.1\n"],
  ])("runs the tool where %s", async (_, input) => {
    written.length = 0;
    await createIpset(runner(), { open: unreachable }).change(input.trimEnd().split("\n").map(parseSetCommand));
    expect(written).toEqual([`-exist restore: ${input}`]);
  });
});

test.each(["", "web", "10.96.0.1,tcp", "10.96.0.300", "10.96.0.1,icmp:8"])("no member: %j", (member) => {
  expect(() => encodeMember({ kind: "add", set: "A", member })).toThrow(RangeError);
});

const added = (...addresses: readonly string[]) =>
  addresses.map((address): LinkCommand => ({ kind: "add-address", device: "a0", address }));

async function changed(device: string, commands: readonly LinkCommand[]) {
  const links = createLinks(noProcess, { open: openRouteSocket });
  const refused: string | undefined = await links.change(commands).then(() => undefined, String);
  const addresses = await links.addresses(device);
  return { refused, addresses: addresses && [...addresses].sort() };
}

const withDevice = (name: string, body: (runner: Runner) => Promise<void>) =>
  insideTest(name, async ({ runner }) => {
    await runner.run(["ip", "link", "add", "a0", "type", "veth", "peer", "name", "a1"]);
    await runner.run(["ip", "address", "add", "192.0.2.1/24", "dev", "a1"]);
    await body(runner);
  });

withDevice("addresses of both families come and go by netlink, as `ip` lists them", async (runner) => {
  const many = Array.from({ length: 250 }, (_, at) => `10.96.1.${at + 1}`);
  const { refused, addresses } = await changed("a0", [
    ...added("10.96.0.1", "10.96.0.2", "fd00:96::1", "fd00:96:0:0:1::", ...many),
    { kind: "delete-address", device: "a0", address: "10.96.0.2" },
  ]);
  expect(refused).toBeUndefined();
  expect(addresses).toEqual([...many, "10.96.0.1", "fd00:96::1", "fd00:96:0:0:1::"].sort());
  expect(new Set(addresses)).toEqual(await createLinks(runner).addresses("a0"));
});

withDevice("an address twice is refused, and what came before it counts", async () => {
  const { refused, addresses } = await changed("a0", added("10.96.0.2", "10.96.0.2"));
  expect(refused).toMatch(/ip addr add 10\.96\.0\.2\/32 dev a0: EEXIST/);
  expect(addresses).toEqual(["10.96.0.2"]);
});

withDevice("a device goes by netlink, and one that is not there has no addresses", async () => {
  expect(await changed("a0", [{ kind: "delete-device", device: "a0" }])).toEqual({
    refused: undefined,
    addresses: undefined,
  });
  const { refused } = await changed("a0", added("10.96.0.2"));
  expect(refused).toBe("Error: device a0 does not exist");
});
