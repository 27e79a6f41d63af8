import { fileURLToPath } from "node:url";
import { parseSetCommand } from "@fairlead/netfilter";
import { describe, expect, test } from "vitest";
import { FakeRunner } from "../../src/fake/index.ts";
import { createIpset, createRunner, type Runner } from "../../src/index.ts";
import { encodeMember } from "../../src/ipset.ts";
import { createNamespace } from "../../src/netns/index.ts";
import { kernelTest } from "../kernel-test.ts";

const MAIN = fileURLToPath(new URL("members-main.ts", import.meta.url));
const LIST = fileURLToPath(new URL("sets-main.ts", import.meta.url));

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

async function change(runner: Runner, lines: readonly string[]): Promise<void> {
  const argv = [process.execPath, "--conditions=@fairlead/source", "--no-warnings", MAIN] as const;
  await runner.run(argv, { timeoutMs: 0, input: JSON.stringify(lines.map(parseSetCommand)) });
}

kernelTest("members of every type come and go by netlink; what is there already, or gone, is no error", async () => {
  await using namespace = await createNamespace();
  const runner = createRunner({ prefix: namespace.argvPrefix, env: namespace.env });
  await runner.run(["ipset", "restore"], { input: `${SETS.join("\n")}\n` });
  await change(runner, CHANGES);
  const { stdout } = await runner.run(["ipset", "save", "-sorted"]);
  expect(
    stdout
      .split("\n")
      .filter((line) => line.startsWith("add "))
      .sort(),
  ).toEqual(LEFT);
});

kernelTest("sets are listed by netlink as ipset prints them, those that are not there left out", async () => {
  await using namespace = await createNamespace();
  const runner = createRunner({ prefix: namespace.argvPrefix, env: namespace.env });
  const many = Array.from({ length: 3_000 }, (_, at) => `add P 10.96.${at >> 8}.${at & 0xff},tcp:443`);
  const foreign = "create Z hash:net family inet";
  await runner.run(["ipset", "restore"], { input: `${[...SETS, foreign, ...LEFT, ...many.slice(2)].join("\n")}\n` });
  const names = ["P", "nobody", "N", "M", "L", "I", "B"];
  const argv = [process.execPath, "--conditions=@fairlead/source", "--no-warnings", LIST, ...names] as const;
  const listed: readonly { readonly name: string }[] = JSON.parse((await runner.run(argv, { timeoutMs: 0 })).stdout);
  const printed: (typeof listed)[number][] = [];
  for await (const set of createIpset(runner).save(names)) {
    printed.push(Object.assign({ ...set }, { members: [...set.members].sort() }));
  }
  const inOrder = (some: typeof listed) => some.toSorted((one, other) => one.name.localeCompare(other.name));
  expect(inOrder(listed)).toEqual(inOrder(printed));
  expect(printed).toHaveLength(6);
});

kernelTest("a set that is not there is an error", async () => {
  await using namespace = await createNamespace();
  const runner = createRunner({ prefix: namespace.argvPrefix, env: namespace.env });
  await expect(change(runner, ["add A 10.96.0.1,tcp:80"])).rejects.toThrow(/ipset: add A 10.96.0.1,tcp:80: ENOENT/);
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
