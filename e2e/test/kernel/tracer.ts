import type { IPFamily } from "@fairlead/core";
import { createNfacct } from "@fairlead/kernel";
import { applySettings } from "@fairlead/lab/wire";
import { parseSave, renderRuleSet } from "@fairlead/netfilter";
import { NODE_A, webA1, webA2 } from "@fairlead/testkit";
import { runs } from "@fairlead/tooling/runs";
import fc from "fast-check";
import { beforeAll, describe, expect, test } from "vitest";
import { FRONTENDS, PORTS, ruleSets, sentPackets } from "../../src/cases/tracer/arbitrary-rules.ts";
import { compare, packetsFor, portsOf, recordings, withKnownCounters } from "../../src/cases/tracer/compare.ts";
import { labFor } from "./lab-for.ts";

/** FAIRLEAD_TRACE_SEED: other pairs of packet and rule set. */
const { FAIRLEAD_TRACE_SEED: seed = "1" } = process.env;
const PACKETS = 25;
const numRuns = runs(20);
/** Of one recording at once; what is left out of large ones is spread over them. */
const MOST = 150;

const recorded = recordings();
const everyPort = [...new Set([...PORTS, ...portsOf(recorded)])];
const listen = { tcp: everyPort, udp: everyPort };

const TOOLS = {
  IPv4: { nft: "iptables-nft", legacy: "iptables-legacy" },
  IPv6: { nft: "ip6tables-nft", legacy: "ip6tables-legacy" },
} as const;

const situations = fc.constantFrom<IPFamily>("IPv4", "IPv6").chain((family) =>
  fc.record({
    family: fc.constant(family),
    variant: fc.constantFrom("nft", "legacy"),
    rules: ruleSets(family),
    packets: fc.array(sentPackets(family), { minLength: PACKETS, maxLength: PACKETS }),
  }),
);

describe("the tracer and the real kernel", () => {
  const lab = labFor({ podPorts: listen, landingPorts: listen });

  beforeAll(async () => {
    // What kube-proxy asks for, so that the node reaches node ports at 127.0.0.1.
    await applySettings(lab.runner("node-a"), { "net/ipv4/conf/all/route_localnet": "1" });
  });

  async function withRules<T>(tool: string, text: string, use: (saved: string) => Promise<T>): Promise<T> {
    const runner = lab.runner("node-a");
    await runner.run([`${tool}-restore`], { input: text });
    try {
      return await use((await runner.run([`${tool}-save`])).stdout);
    } finally {
      await runner.run([`${tool}-restore`], { input: emptied(text) });
    }
  }

  test(`agree on ${numRuns * PACKETS} packets through random rules`, async () => {
    const seen = new Set<string>();
    const property = fc.asyncProperty(situations, async ({ family, variant, rules, packets }) => {
      const text = [...renderRuleSet(rules)].join("");
      const { differences, kinds } = await withRules(TOOLS[family][variant], text, (saved) =>
        compare(lab, parseSave(saved, { family }), packets, family),
      );
      for (const kind of kinds) seen.add(kind);
      expect(differences).toEqual([]);
    });
    await fc.assert(property, { numRuns, seed: Number(seed), endOnFailure: true });
    // By chance, and not in every run.
    seen.delete("accept, port taken");
    expect([...seen].sort()).toEqual(["accept", "accept, masqueraded", "drop", "reject"]);
  });

  describe("agree on the real kube-proxy's rules", () => {
    const rows = recorded.map((recording, at) => ({ ...recording, variant: at % 2 === 0 ? "nft" : "legacy" }) as const);

    test.each(rows)("$name $family ($variant)", async ({ text, family, variant }) => {
      const known = await withKnownCounters(text, createNfacct(lab.runner("node-a")));
      const { differences, kinds } = await withRules(TOOLS[family][variant], known, (saved) => {
        const ruleSet = parseSave(saved, { family });
        return compare(lab, ruleSet, thinned(packetsFor(ruleSet, family)), family);
      });
      expect(differences).toEqual([]);
      expect(kinds).not.toEqual(new Set());
    });
  });

  test("a packet of the node whose port is taken at the endpoint does not count as masqueraded", async () => {
    const [frontend] = FRONTENDS.IPv4;
    const [source, endpoint] = [NODE_A.addresses.IPv4, webA1.addresses.IPv4];
    // As a masqueraded one of a pod would be; an established one, for the kernel replaces one that waits for its end.
    const original = `--orig-src ${webA2.addresses.IPv4} --orig-dst ${frontend} --sport 10000 --dport 80`;
    const reply = `--reply-src ${endpoint} --reply-dst ${source} --reply-port-src 8080 --reply-port-dst 10000`;
    const words = `${original} ${reply} --state ESTABLISHED --timeout 600`.split(" ");
    await lab.runner("node-a").run(["conntrack", "-I", "-p", "tcp", ...words]);
    const text = `*nat\n-A OUTPUT -p tcp -d ${frontend} -j DNAT --to-destination ${endpoint}:8080\nCOMMIT\n`;
    const to = { protocol: "TCP", destination: frontend, port: 80 } as const;
    const packet = { ...to, from: NODE_A, family: "IPv4", source, sourcePort: 10_000 } as const;
    const compared = await withRules("iptables-nft", text, (saved) =>
      compare(lab, parseSave(saved, { family: "IPv4" }), [packet], "IPv4"),
    );
    expect(compared).toEqual({ differences: [], kinds: new Set(["accept, port taken"]) });
  });
});

function thinned<Item>(items: readonly Item[]): readonly Item[] {
  const every = Math.ceil(items.length / MOST);
  return items.filter((_, at) => at % every === 0);
}

/** The same tables with nothing in them. */
function emptied(text: string): string {
  const lines = text.split("\n");
  return `${lines.filter((line) => /^(\*|COMMIT)/.test(line)).join("\n")}\n`;
}
