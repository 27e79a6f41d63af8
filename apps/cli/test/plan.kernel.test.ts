import { createNfacct, createRunner } from "@fairlead/kernel";
import { createNamespace, namespaceSupport } from "@fairlead/kernel/netns";
import { compareRuleSets, parseSave } from "@fairlead/netfilter";
import { goldenScenarios } from "@fairlead/testkit";
import { describe, expect, test } from "vitest";
import { fairlead } from "./support/run.ts";

const { CI = "" } = process.env;
const support = await namespaceSupport();
const AGENT = [
  "--node",
  "node-a",
  "--node-address",
  "10.201.0.10",
  "--node-address",
  "fd00:201::10",
  "--cluster-cidr",
  "10.144.0.0/16,fd00:144::/48",
];

describe("rules", () => {
  test.skipIf(CI === "" && !support.ok)(
    `load with the real iptables-restore and are kube-proxy's${support.ok ? "" : ` (${support.reason})`}`,
    async () => {
      for (const { name, objects, iptables, ip6tables } of goldenScenarios()) {
        await using namespace = await createNamespace();
        const runner = createRunner({ prefix: namespace.argvPrefix, env: namespace.env });
        const families = [
          { family: "IPv4", tool: "iptables-nft", expected: iptables },
          { family: "IPv6", tool: "ip6tables-nft", expected: ip6tables },
        ] as const;
        for (const { family, tool, expected } of families) {
          if (expected === undefined) continue;
          const { out, code } = await fairlead(["plan", "-f", "-", "--family", family.toLowerCase(), ...AGENT], {
            stdin: JSON.stringify(objects),
          });
          expect(code).toBe(0);
          const needed = [...out.matchAll(/^# needs: nfacct add (\S+)$/gm)].map(([, counter = ""]) => counter);
          for (const counter of needed) expect(await createNfacct(runner).ensure(counter)).toMatchObject({ ok: true });
          await runner.run([`${tool}-restore`, "--noflush"], { input: out });
          const { stdout } = await runner.run([`${tool}-save`]);
          const of = (text: string) => parseSave(text, { family });
          const chains = (_table: string, chain: string) => chain !== "KUBE-IPTABLES-HINT";
          expect(compareRuleSets(of(expected), of(stdout), { chains }), `${name} ${family}`).toEqual([]);
        }
      }
    },
  );
});
