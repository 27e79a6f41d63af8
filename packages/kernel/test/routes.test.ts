import { describe, expect, test } from "vitest";
import { FakeRunner } from "../src/fake/index.ts";
import { createRouting } from "../src/index.ts";

const listen = () => Promise.reject(new Error("nothing is listened to"));

/** `ip` that answers what it is asked for by the words behind its flags. */
function routing(answers: Readonly<Record<string, string>>) {
  const inputs: string[] = [];
  const runner = new FakeRunner({
    ip: (args, input) => {
      inputs.push(`${args.join(" ")}\n${input}`);
      return answers[args.slice(3).join(" ")] ?? "";
    },
  });
  return { inputs, routing: createRouting(runner, { listen }) };
}

const MAIN = JSON.stringify([
  { dst: "default", gateway: "10.201.0.1", dev: "eth0", metric: 100, flags: [] },
  { dst: "default", via: { family: "inet6", host: "fe80::1" }, dev: "eth1", metric: 200, flags: ["onlink"] },
  { dst: "10.202.0.0/24", dev: "eth1", protocol: "2", scope: "253", prefsrc: "10.202.0.10", flags: [] },
  { dst: "10.203.0.0/24", dev: "eth2", flags: ["linkdown"] },
  { type: "blackhole", dst: "10.9.0.0/16", flags: [] },
  {
    dst: "10.8.0.0/16",
    nexthops: [
      { gateway: "10.201.0.2", dev: "eth0", weight: 1, flags: [] },
      { gateway: "10.202.0.2", dev: "eth1", weight: 1, flags: ["dead"] },
    ],
  },
]);

describe("routes and rules", () => {
  test("are read as far as their link is up, and of rules Fairlead's own", async () => {
    const { routing: client } = routing({
      "route show table main": MAIN,
      "route show table all proto 175": JSON.stringify([
        { dst: "default", gateway: "10.2.0.1", dev: "eth1", table: "17000" },
      ]),
      "rule show": JSON.stringify([
        { priority: 0, src: "all", table: "255" },
        { priority: 200, src: "all", fwmark: "0x1000", fwmask: "0x3000", table: "17000", protocol: "175" },
        { priority: 300, src: "all", fwmark: "0x1", table: "7", protocol: "3" },
      ]),
    });
    const { main, own, rules } = await client.read("IPv4");
    expect(main).toMatchObject([
      { destination: "default", gateway: "10.201.0.1", interface: "eth0", metric: 100 },
      { destination: "default", gateway: "inet6 fe80::1", interface: "eth1", metric: 200, onLink: true },
      { destination: "10.202.0.0/24", interface: "eth1", source: "10.202.0.10", metric: 0 },
      { destination: "10.8.0.0/16", gateway: "10.201.0.2", interface: "eth0" },
    ]);
    expect(own).toMatchObject([{ destination: "default", table: 17_000 }]);
    expect(rules).toEqual([{ priority: 200, mark: 0x1000, mask: 0x3000, table: 17_000 }]);
  });

  test("are written in one run of ip, with Fairlead's protocol number", async () => {
    const { routing: client, inputs } = routing({});
    const route = { destination: "default", gateway: "fe80::1", interface: "eth1", metric: 5, table: 17_001 };
    const rule = { priority: 200, mark: 0x3000, mask: 0x3000, table: 17_001 };
    await client.write("IPv6", [
      { kind: "set-route", route: { ...route, source: "fd00::1", onLink: true } },
      { kind: "add-rule", rule },
      { kind: "delete-rule", rule },
      { kind: "delete-route", route },
    ]);
    expect(inputs).toEqual([
      [
        "-6 -force -batch -",
        "route replace default via fe80::1 dev eth1 table 17001 protocol 175 metric 5 src fd00::1 onlink",
        "rule add priority 200 fwmark 12288/12288 table 17001 protocol 175",
        "rule delete priority 200 fwmark 12288/12288 table 17001 protocol 175",
        "route delete default via fe80::1 dev eth1 table 17001 protocol 175 metric 5",
        "",
      ].join("\n"),
    ]);
  });

  test("nothing to write runs nothing", async () => {
    const { routing: client, inputs } = routing({});
    await client.write("IPv4", []);
    expect(inputs).toEqual([]);
  });
});
