import type { AgentConfig } from "@fairlead/config";
import { nodeStateText, parseNodeState } from "@fairlead/inspect";
import { readTables } from "@fairlead/netfilter/nft";
import { goldenScenario, goldenScenarios } from "@fairlead/testkit";
import { describe, expect, test } from "vitest";
import { comparedFastPath } from "../src/commands/verify/check.ts";
import { configFile, fileOf } from "./support/files.ts";
import { agent, objects, recorded, stdin } from "./support/recorded.ts";
import { fairlead } from "./support/run.ts";

const planFile = fileOf((await fairlead(["plan", ...agent], { stdin })).out, "plan.nft");

describe("plan --mode nftables", () => {
  test("is a table that nft takes, under the command that takes it", async () => {
    const { out, err, code } = await fairlead(["plan", ...agent], { stdin });
    expect({ err, code }).toEqual({ err: "", code: 0 });
    expect(out).toMatch(/^# nft -f -\ntable ip kube-proxy\ndelete table ip kube-proxy\ntable ip kube-proxy \{\n/);
    expect(readTables(out).map(({ family, name }) => `${family} ${name}`)).toEqual(["ip kube-proxy"]);
    expect(out).toContain('10.96.1.10 . tcp . 80 comment "default/lbs" : goto endpoints-');
  });

  test("drops what is sent to ClusterIPs of no service, where there is a ServiceCIDR", async () => {
    const range = { apiVersion: "networking.k8s.io/v1", kind: "ServiceCIDR", metadata: { name: "kubernetes" } };
    const more = [...objects, { ...range, spec: { cidrs: ["10.96.0.0/12"] } }];
    const { out } = await fairlead(["plan", ...agent], { stdin: JSON.stringify(more) });
    expect(out).toContain("ip daddr 10.96.0.0/12 drop");
  });
});

describe("trace", () => {
  const to = ["trace", "--node-address", "10.201.0.10", "--from"];

  test("goes through a plan", async () => {
    const { out, code } = await fairlead([...to, "198.51.100.7", "--to", "203.0.113.10:80", "--rules", planFile]);
    expect(code).toBe(0);
    expect(out).toMatch(/→ 10\.144\.1\.5:8080.*masqueraded/);
    expect(out).toMatch(
      / {4}ip kube-proxy firewall-check 1 {2}ip daddr \. meta l4proto \. th dport vmap @firewall-ips/,
    );
  });

  test("goes through what nft listed of kube-proxy", async () => {
    const argv = [...to, "198.51.101.7", "--to", "203.0.113.10:80", "--rules", "-"];
    const { out, code } = await fairlead(argv, { stdin: recorded });
    expect(code).toBe(1);
    expect(out).toContain("drop in PREROUTING, ip kube-proxy");
  });

  test("takes a rule that may not match both ways, and knows what it does where it does", async () => {
    const rule = "limit rate over 5/second drop";
    const stdin = `table ip t {\n\tchain c {\n\t\ttype filter hook prerouting priority raw;\n\t\t${rule}\n\t}\n}\n`;
    const { out } = await fairlead([...to, "198.51.101.7", "--to", "203.0.113.10:80", "--rules", "-"], { stdin });
    expect(out).toContain("drop in PREROUTING, ip t, if ip t c 1 matches");
    expect(out).toContain("→ 203.0.113.10:80, if ip t c 1 does not match");
  });
});

test("explain agrees with kube-proxy's tables and with the own plan", async () => {
  for (const rules of [planFile, fileOf(recorded)]) {
    const { err, code } = await fairlead(["explain", "lbs", ...agent, "--rules", rules], { stdin });
    expect({ err, code }).toEqual({ err: "", code: 0 });
  }
});

test("diff: no packet's fate differs from that with kube-proxy", async () => {
  const file = fileOf(recorded);
  const { out, code } = await fairlead(["diff", planFile, file, "--traffic-only", "--node-address", "10.201.0.10"]);
  expect(out).toMatch(/^Traffic: the same, \d\d kinds of packets traced\n$/);
  expect(code).toBe(0);
});

describe("the fast path in verify", () => {
  const withFlowtable = () => {
    const flowtable = { name: "fast-path", priority: 0, devices: ["cali1"] };
    const [table] = readTables("table ip kube-proxy {\n}\n");
    return table && { ...table, flowtables: new Map([[flowtable.name, flowtable]]) };
  };
  const args = async (nftables: object = { fastPath: { devices: ["cali*"] } }) => [
    ...["--config", configFile({ nftables }, { mode: "nftables" })],
    ...agent.filter((one) => !/mode|^nftables$/.test(one)),
  ];
  const verify = async (...more: string[]) => fairlead(["verify", ...(await args()), ...more], { stdin });

  test("nothing differs from a plan with it", async () => {
    const { out: plan } = await fairlead(["plan", ...(await args())], { stdin });
    expect(plan).toContain("flow add @fast-path");
    const { out, code } = await verify("--rules", fileOf(plan));
    expect({ out, code }).toEqual({ out: "OK: nothing differs (IPv4)\n", code: 0 });
  });

  test("a node that has disabled it is a note, not a difference", async () => {
    const { out: without } = await fairlead(["plan", ...(await args({}))], { stdin });
    const { out, code } = await verify("--rules", fileOf(without));
    expect(out).toBe(
      "note, IPv4: the fast path is configured and disabled on this node; `fairlead doctor` says why\nOK: nothing differs (IPv4)\n",
    );
    expect(code).toBe(0);
  });

  test.each([
    [["cali1"], []],
    [["cali1", "cali2"], [{ kind: "missing", where: "flowtable fast-path", what: "device cali2" }]],
    [[], [{ kind: "extra", where: "flowtable fast-path", what: "device cali1" }]],
  ])("its devices are compared with those that the agent chooses: %j", (wanted, findings) => {
    const config = { nftables: { fastPath: { devices: ["cali*"] } } } as unknown as AgentConfig;
    expect(comparedFastPath(config, withFlowtable(), new Set(wanted)).findings).toEqual(findings);
  });

  test("nothing is compared where auto cannot choose, and a note says why", () => {
    const multiCNI = { excludeCIDRsFrom: [], clusterCIDRsFrom: [] };
    const nftables = { fastPath: { devices: "auto" } };
    const config = { nftables, multiCNI, clusterCIDRs: [] } as unknown as AgentConfig;
    expect(comparedFastPath(config, withFlowtable(), undefined)).toMatchObject({
      note: "the flowtable's devices are not compared: devices: auto needs clusterCIDR; give it, or name the devices",
      findings: [],
    });
  });

  test("a flowtable is there when one `fairlead` gives its tables to another", async () => {
    const { out } = await fairlead(["plan", ...(await args())], { stdin });
    const tables = readTables(out);
    expect(tables[0]?.flowtables?.size).toBe(1);
    expect(parseNodeState(nodeStateText({ tables, problems: {} })).tables).toEqual(tables);
  });
});

describe("verify", () => {
  const verify = (...more: string[]) => fairlead(["verify", ...agent, ...more], { stdin });

  test("nothing differs from the own plan", async () => {
    const { out, err, code } = await verify("--rules", planFile);
    expect({ out, err, code }).toEqual({ out: "OK: nothing differs (IPv4)\n", err: "", code: 0 });
  });

  describe("of what kube-proxy itself has written, which has chains for services where Fairlead has maps", () => {
    const verifyRecorded = async (name: string, change: (text: string) => string = (text) => text) => {
      const { objects: own, nft, node } = goldenScenario(name);
      const rules = ["--rules", fileOf(change(nft))];
      const as = [
        "--node",
        node.name,
        ...node.addresses.flatMap((one) => ["--node-address", one]),
        "--mode",
        "nftables",
      ];
      const cidrs = ["--cluster-cidr", node.clusterCIDRs.join(), "--agent-flag", "ownership-annotation=false"];
      const ranges = { kind: "ServiceCIDR", metadata: { name: "kubernetes" }, spec: { cidrs: node.serviceCIDRs } };
      const given = [...own, { apiVersion: "networking.k8s.io/v1", ...ranges }];
      return fairlead(["verify", ...as, ...cidrs, "-f", "-", ...rules], { stdin: JSON.stringify(given) });
    };

    test.each(goldenScenarios().map(({ name }) => name))("%s: nothing differs", async (name) => {
      const { out, code } = await verifyRecorded(name);
      expect({ out, code }).toEqual({ out: "OK: nothing differs (IPv4)\n", code: 0 });
    });

    const damages: readonly (readonly [name: string, from: RegExp, to: string, found: RegExp])[] = [
      ["03-three-endpoints", /1 : 10\.144\.2\.6/, "1 : 10.144.2.9", /^default\/web IPv4: different\n {2}~ traffic/],
      ["03-three-endpoints", /10\.96\.1\.3 \. tcp .*,/, "", /^default\/web IPv4: missing\n {2}- map service-ips/],
      ["10-lb-source-ranges", /, 198\.51\.100\.0\/24/, "", /^default\/lbs IPv4: different\n {2}~ traffic/],
      ["03-three-endpoints", /ct state new jump service-endpoints-check/, "accept", /[-+] chain filter-input: /],
    ];

    test.each(damages)("%s: %s in other words is found", async (name, from, to, wanted) => {
      const { out, code } = await verifyRecorded(name, (text) => text.replace(from, to));
      expect(out).toMatch(wanted);
      expect(code).toBe(1);
    });
  });
});
