import { createRunner, type Runner } from "@fairlead/kernel";
import { createNamespace, type NetworkNamespace, namespaceSupport } from "@fairlead/kernel/netns";
import { goldenScenario } from "@fairlead/testkit";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { fairlead } from "./support/run.ts";

const { CI = "" } = process.env;
const support = await namespaceSupport();
const scenario = goldenScenario("09-loadbalancer");
const stdin = JSON.stringify(scenario.objects);

const CLUSTER = ["--node", "node-a", "--cluster-cidr", "10.144.0.0/16"];

/** One address that nftables mode serves node ports at, and one more. */
const [PRIMARY, OTHER] = ["10.201.0.10", "198.51.100.20"];

interface Finding {
  readonly topic: string;
  readonly state: string;
  readonly found: string;
}

describe.skipIf(CI === "" && !support.ok)(
  `a report on a mode from a node's kernel${support.ok ? "" : ` (${support.reason})`}`,
  () => {
    let namespace: NetworkNamespace;
    let runner: Runner;

    beforeAll(async () => {
      namespace = await createNamespace();
      runner = createRunner({ prefix: namespace.argvPrefix, env: namespace.env });
      for (const address of [PRIMARY, OTHER]) await runner.run(["ip", "address", "add", `${address}/32`, "dev", "lo"]);
      await runner.run(["ip", "link", "set", "lo", "up"]);
      const plan = ["plan", "-f", "-", "--without-counters", "--node-address", PRIMARY, ...CLUSTER];
      await runner.run(["iptables-nft-restore"], { input: (await fairlead(plan, { stdin })).out });
    });
    afterAll(() => namespace.dispose());

    const report = async (...commands: readonly string[]) => {
      for (const command of commands) await runner.run(["iptables-nft", ...command.split(" ")]);
      const argv = ["migrate", "--to-mode", "nftables", "-f", "-", "--live", "-o", "json", ...CLUSTER];
      const { nodes } = JSON.parse((await fairlead(argv, { stdin, runner })).out);
      const findings: readonly Finding[] = nodes[0].findings;
      return (topic: string) => findings.find((one) => one.topic === topic);
    };

    test("names the addresses that node ports are no longer at", async () => {
      const about = await report();
      expect(about("node ports, IPv4")?.found).toContain(OTHER);
      expect(about("firewall, IPv4")).toMatchObject({ state: "fits" });
    });

    test("a firewall that drops what it does not know stops services in nftables mode, and says which", async () => {
      const about = await report("-P FORWARD DROP");
      expect(about("firewall, IPv4")).toMatchObject({ state: "differs", found: expect.stringContaining("drop") });
      const accepted = await report("-A FORWARD -j ACCEPT");
      expect(accepted("firewall, IPv4")).toMatchObject({ state: "fits" });
    });

    test("a rule that leads to a chain of kube-proxy is named", async () => {
      const about = await report("-I INPUT -p tcp -j KUBE-NODEPORTS");
      expect(about("firewall, IPv4")).toMatchObject({
        state: "differs",
        found: expect.stringContaining("filter INPUT: -p tcp -j KUBE-NODEPORTS"),
      });
    });
  },
);
