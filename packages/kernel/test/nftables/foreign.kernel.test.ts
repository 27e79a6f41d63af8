import { fileURLToPath } from "node:url";
import { beforeAll, expect, test } from "vitest";
import { createRunner } from "../../src/index.ts";
import { createNamespace } from "../../src/netns/index.ts";
import { kernelSuite } from "../kernel-test.ts";

interface Said {
  readonly name: string;
  readonly chains: readonly { readonly chain: string; readonly base?: object; readonly rules: readonly string[] }[];
  readonly sets: unknown;
}

type Seen = Readonly<Record<string, { readonly names: unknown; readonly netlink: Said[]; readonly json: Said[] }>>;

kernelSuite("anybody's tables by netlink", () => {
  let seen: Seen = {};

  beforeAll(async () => {
    await using namespace = await createNamespace();
    const runner = createRunner({ prefix: namespace.argvPrefix, env: namespace.env });
    const main = fileURLToPath(new URL("foreign-main.ts", import.meta.url));
    const { stdout } = await runner.run([process.execPath, "--conditions=@fairlead/source", "--no-warnings", main], {
      timeoutMs: 0,
    });
    seen = JSON.parse(stdout).seen;
  });

  const rulesOf = (which: "netlink" | "json", of: string) =>
    seen[of]?.[which].flatMap(({ chains }) => chains.flatMap(({ rules }) => rules)) ?? [];

  test("are those of nft's JSON: kube-proxy's word for word", () => {
    const names = Object.keys(seen).filter((name) => name.endsWith(".nft"));
    expect(names.length).toBeGreaterThanOrEqual(20);
    for (const name of names) expect(seen[name]?.netlink, name).toEqual(seen[name]?.json);
  });

  test.each(["strangers", "iptables"])("%s: as far as the JSON is known, and not less", (name) => {
    const { netlink = [], json = [] } = seen[name] ?? {};
    const frame = ({ chains, ...table }: Said) => ({
      ...table,
      chains: chains.map(({ rules, ...chain }) => ({ ...chain, rules: rules.length })),
    });
    expect(netlink.map(frame)).toEqual(json.map(frame));
    const inJson = rulesOf("json", name);
    expect(inJson.length).toBeGreaterThan(4);
    for (const [at, rule] of rulesOf("netlink", name).entries()) {
      // The rest of a step that the JSON's reader does not know is not compared.
      const [known = ""] = inJson[at]?.split('{"') ?? [];
      expect(rule.startsWith(known.trimEnd()), rule).toBe(true);
    }
  });

  test("what is not known of strangers' rules is named, and a verdict behind it is there", () => {
    const rules = rulesOf("netlink", "strangers");
    for (const rule of [
      'meta l4proto tcp th dport { 22, 80, 443 } [ limit ] accept comment "some"',
      "meta l4proto tcp [ range ] drop",
      "[ rt ] 0x05000000 drop",
      "[ log ] drop",
      "[ quota ] drop",
      'meta l4proto tcp th dport 80 counter name "c1" accept',
      'quota name "q1" drop',
      'limit name "l1" accept',
      "ip saddr 10.0.0.1 meta l4proto tcp counter name th dport map @counters",
      'meta l4proto tcp counter name th dport map { 443 : "c1" } accept',
      "meta mark set 0x00004000",
      "ip saddr 10.9.0.1 [ nat ]",
      "meta l4proto tcp ip saddr . th dport @pairs drop",
    ]) {
      expect(rules).toContain(rule);
    }
    expect(rulesOf("netlink", "iptables")).toContain("[ limit ] counter packets 0 bytes 0 [ target LOG ]");
  });

  test("sets with more to them than keys are left out, others are there", () => {
    expect(JSON.stringify(seen["strangers"]?.netlink[0]?.sets)).toBe(
      '[["blocked",["0a010000","0a020000 end","c0000201","c0000208 end"]],["counted",["0a020001"]],["counters",["0050"]],["marks",["07000000"]]]',
    );
  });

  test("names of tables, those of iptables among them", () => {
    expect(seen["iptables"]?.names).toEqual([
      { family: "ip", name: "filter" },
      { family: "ip", name: "nat" },
    ]);
    expect(seen["25-dual-clusterip.nft"]?.names).toEqual([
      { family: "ip", name: "kube-proxy" },
      { family: "ip6", name: "kube-proxy" },
    ]);
  });
});
