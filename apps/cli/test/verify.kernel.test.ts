import { createRunner, type Runner } from "@fairlead/kernel";
import { createNamespace, type NetworkNamespace, namespaceSupport } from "@fairlead/kernel/netns";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { CLUSTER, SVC, stdin } from "./support/recorded.ts";
import { fairlead } from "./support/run.ts";

const { CI = "" } = process.env;
const support = await namespaceSupport();
const FW = "KUBE-FW-FYZB2HTOW53NRIPL";

/** What an operator does by hand: commands for iptables, as `TABLE COMMAND…`, or lines of the rules taken out. */
type Damage = readonly string[] | RegExp;

const DAMAGES: readonly (readonly [what: string, damage: Damage, found: RegExp])[] = [
  ["a rule of the dispatch removed", /^-A KUBE-SERVICES -d 10.96.1.10/, /lbs.*: different\n {2}- nat KUBE-SERVICES/],
  ["an endpoint's DNAT removed", /-j DNAT --to-destination 10.144.1.5/, /default\/lbs IPv4: different/],
  ["a source range added", [`nat -I ${FW} -s 192.0.2.0/24 -j KUBE-EXT-FYZB2HTOW53NRIPL`], /\+ nat KUBE-FW-FYZB/],
  ["the drop of other sources removed", /^-A KUBE-PROXY-FIREWALL/, /- filter KUBE-PROXY-FIREWALL/],
  [
    "a probability changed",
    [
      `nat -R ${SVC} 2 -m comment --comment "default/lbs -> 10.144.1.5:8080" -m statistic --mode random --probability 0.9 -j KUBE-SEP-FWVBJR4X2TYGP22X`,
    ],
    /probability 0\.899/,
  ],
  [
    "the order of endpoints swapped",
    [
      `nat -D ${SVC} 2`,
      `nat -A ${SVC} -m comment --comment "default/lbs -> 10.144.1.5:8080" -m statistic --mode random --probability 0.5 -j KUBE-SEP-FWVBJR4X2TYGP22X`,
    ],
    /must stand before/,
  ],
  ["a chain emptied", [`nat -F ${SVC}`], /default\/lbs IPv4: different/],
  ["a table emptied", ["nat -F"], /default\/kubernetes:https IPv4: missing/],
  ["the jump from PREROUTING removed", ["nat -D PREROUTING 1"], /- nat PREROUTING/],
  ["the masquerading removed", /^-A KUBE-POSTROUTING .*MASQUERADE/, /- nat KUBE-POSTROUTING/],
  ["another mark for masquerading", ["nat -R KUBE-MARK-MASQ 1 -j MARK --or-mark 0x8000"], /\+ nat KUBE-MARK-MASQ/],
  ["the jumps of FORWARD removed", ["filter -F FORWARD"], /- filter FORWARD/],
  ["the guard of 127.0.0.0/8 removed", ["filter -F KUBE-FIREWALL"], /- filter KUBE-FIREWALL/],
  [
    "a foreign rule before ours",
    ["nat -I PREROUTING -d 10.96.1.10/32 -p tcp -j ACCEPT"],
    /~ traffic tcp .*10\.96\.1\.10:80: untouched, expected/,
  ],
  ["a foreign drop on the way", ["filter -I FORWARD -d 10.144.1.5/32 -j DROP"], /~ traffic .*drop/],
  ["a policy that drops", ["filter -P FORWARD DROP"], /~ traffic .*drop/],
];

describe.skipIf(CI === "" && !support.ok)(`verify on a real kernel${support.ok ? "" : ` (${support.reason})`}`, () => {
  let namespace: NetworkNamespace;
  let runner: Runner;
  const texts = new Map<string, string>();

  beforeAll(async () => {
    namespace = await createNamespace();
    runner = createRunner({ prefix: namespace.argvPrefix, env: namespace.env });
    await runner.run(["ip", "address", "add", "10.201.0.10/24", "dev", "lo"]);
    for (const [family, tool] of [
      ["ipv4", "iptables-nft"],
      ["ipv6", "ip6tables-nft"],
    ] as const) {
      const { out } = await fairlead(
        ["plan", "-f", "-", "--family", family, "--without-counters", "--node-address", "10.201.0.10", ...CLUSTER],
        { stdin },
      );
      texts.set(tool, out);
      await runner.run([`${tool}-restore`], { input: out });
    }
  });
  afterAll(() => namespace.dispose());

  const verify = (...more: readonly string[]) =>
    fairlead(["verify", "-f", "-", ...CLUSTER, ...more], { stdin, runner });

  test("a healthy node", async () => {
    expect(await verify()).toMatchObject({ code: 0, out: "OK: nothing differs (IPv4, IPv6)\n" });
  });

  test("what a pod network masquerades on its own account is a note, and no difference", async () => {
    await inflict(runner, ["nat -A POSTROUTING -s 10.144.0.0/16 -j MASQUERADE"]);
    const [text, data] = [await verify(), await verify("-o", "json")];
    await runner.run(["iptables-nft", "-t", "nat", "-D", "POSTROUTING", "-s", "10.144.0.0/16", "-j", "MASQUERADE"]);
    expect(text.code).toBe(0);
    expect(text.out).toMatch(
      /^note, IPv4: rules of others masquerade: traffic .*masqueraded, expected .*\nOK: nothing differs \(IPv4, IPv6\)\n$/,
    );
    const [report] = JSON.parse(data.out);
    expect(report).toMatchObject({ family: "IPv4", services: [] });
    expect(report.notes[0]).toMatchObject({ kind: "different", others: true });
  });

  test.each(DAMAGES)("%s", async (_, damage, found) => {
    await inflict(runner, damage);
    const { code, out } = await verify();
    await runner.run(["iptables-nft", "-P", "FORWARD", "ACCEPT"]);
    await runner.run(["iptables-nft-restore"], { input: texts.get("iptables-nft") ?? "" });
    expect(out).toMatch(found);
    expect(code).toBe(1);
  });

  test("after all that it is healthy again", async () => {
    expect(await verify()).toMatchObject({ code: 0 });
  });

  test("a family without services that the agent has left out is not a difference", async () => {
    for (const table of ["nat", "filter", "mangle"]) await runner.run(["nft", "delete", "table", "ip6", table]);
    expect(await verify()).toMatchObject({ code: 0, out: "OK: nothing differs (IPv4)\n" });
  });
});

async function inflict(runner: Runner, damage: Damage): Promise<void> {
  if (!(damage instanceof RegExp)) {
    for (const line of damage) {
      const [table = "", ...words] = line.match(/"[^"]*"|\S+/g)?.map((word) => word.replaceAll('"', "")) ?? [];
      await runner.run(["iptables-nft", "-t", table, ...words]);
    }
    return;
  }
  for (const table of ["nat", "filter"]) {
    const { stdout } = await runner.run(["iptables-nft-save", "-t", table]);
    const lines = stdout.split("\n").filter((line) => damage.test(line));
    const input = `*${table}\n${lines.map((line) => line.replace("-A", "-D")).join("\n")}\nCOMMIT\n`;
    if (lines.length > 0) await runner.run(["iptables-nft-restore", "--noflush"], { input });
  }
}
