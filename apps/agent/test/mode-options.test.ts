import { COUNTERS } from "@fairlead/backend-iptables";
import { DEVICE } from "@fairlead/backend-ipvs";
import { IP_FAMILIES, toEnd } from "@fairlead/base";
import type { AgentConfig } from "@fairlead/config";
import type { ForwardingPlan, IPFamily } from "@fairlead/core";
import { type DryRunOptions, dryRun, dryTables, MODES, type Mode, planNode, readCluster } from "@fairlead/inspect";
import { FakeSysctl } from "@fairlead/kernel/fake";
import { type LinkCommand, parseServerCommand, parseSetCommand, renderRuleSet } from "@fairlead/netfilter";
import { NFT_FAMILY, tableLines } from "@fairlead/netfilter/nft";
import { slotObjects, webState } from "@fairlead/testkit/histories";
import { createManifestsSnapshot } from "@fairlead/watch";
import { expect, test } from "vitest";
import { modes } from "../src/modes/index.ts";
import { Progress } from "../src/sync/follower.ts";
import { configOf, fakeKernel, filterOf, recordedLog } from "./support/fake-node.ts";

/** Lines of a KubeProxyConfiguration that change what a mode programs. */
const CONFIGURATIONS = [
  "",
  "iptables: {masqueradeAll: true, masqueradeBit: 3, localhostNodePorts: false}",
  "ipvs: {scheduler: lc, excludeCIDRs: [10.96.0.0/16]}",
  "nftables: {masqueradeAll: true, masqueradeBit: 31}",
  "conntrack: {tcpBeLiberal: true}",
  "iptables: {masqueradeBit: 5}\nnftables: {masqueradeBit: 6}\nipvs: {scheduler: sh}\nconntrack: {tcpBeLiberal: true}",
];

function configured(mode: Mode, lines: string): AgentConfig {
  const head = "apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\n";
  const text = `${head}mode: ${mode}\nfeatureGates: {KubeProxyIPVS: true}\nclusterCIDR: 10.144.0.0/16\n${lines}\n`;
  return configOf(["--config=config.yaml"], { "config.yaml": text });
}

const OBJECTS = [
  slotObjects(1, webState({ type: "NodePort", internal: "Local" })),
  slotObjects(2, webState({ type: "LoadBalancer", external: "Local", affinity: true, externalIP: true })),
].flat();

async function plansOf(mode: Mode, config: AgentConfig) {
  const readStandardInput = async () => Buffer.from(JSON.stringify(OBJECTS));
  const source = createManifestsSnapshot({ paths: ["-"], nodeName: "node-a", readStandardInput });
  const cluster = await readCluster(source, new AbortController().signal);
  const addresses = ["127.0.0.1", "::1", "10.201.0.10"];
  const { planner } = planNode({ cluster, config, filter: filterOf(config), nodeName: "node-a", mode, addresses });
  return (family: IPFamily) => planner.plan(family);
}

/** A node's kernel in memory, with what its rules may count with. */
function emptyNode(liberal: boolean) {
  const sysctl = new FakeSysctl({ "net/netfilter/nf_conntrack_tcp_be_liberal": liberal ? 1 : 0 });
  const { kernel, ipvs, nfacct, tables, nftables } = fakeKernel({ sysctl });
  const held = () => ({
    rules: IP_FAMILIES.map((family) => [...renderRuleSet(tables[family].ruleSet())].join("").split("\n").sort()),
    nftables: IP_FAMILIES.map((family) => {
      const table = nftables.tableNow(NFT_FAMILY[family], "kube-proxy");
      // A kernel gives back the flags of a set in an order of its own.
      return (
        table && Array.from(tableLines(table), (line) => line.replace("dynamic,timeout", "timeout,dynamic")).sort()
      );
    }),
    servers: ipvs.servers.servers(),
    sets: ipvs.sets.sets().map(({ name, members }) => `${name}: ${[...members].sort()}`),
    addresses: ipvs.links.device(DEVICE),
  });
  return { kernel, ipvs, nfacct, tables, nftables, held };
}

async function written(
  mode: Mode,
  config: AgentConfig,
  planOf: (family: IPFamily) => ForwardingPlan,
  liberal: boolean,
) {
  const found = modes.find(({ facts }) => facts.name === mode);
  if (found === undefined) throw new Error(`no mode ${mode}`);
  const { kernel, held } = emptyNode(liberal);
  const log = recordedLog();
  const { backends } = await found.serve({ config, families: IP_FAMILIES, kernel, log, progress: new Progress() });
  for (const [family, backend] of backends) await backend.sync(planOf(family));
  return held();
}

async function predicted(settings: DryRunOptions, planOf: (family: IPFamily) => ForwardingPlan) {
  const { ipvs, nfacct, tables, nftables, held } = emptyNode(false);
  for (const name of COUNTERS) await nfacct.ensure(name);
  for (const family of IP_FAMILIES) {
    for (const table of toEnd(dryTables(planOf(family), settings))) nftables.put(table);
    for (const { argv, pieces } of await dryRun(planOf(family), settings)) {
      const text = pieces.join("");
      const lines = text.trimEnd().split("\n");
      if (argv[0].endsWith("tables-restore")) await tables[family].restore(text);
      if (argv[0] === "ipvsadm") await ipvs.servers.change(lines.flatMap((line) => parseServerCommand(line) ?? []));
      if (argv[0] === "ipset") await ipvs.sets.change(lines.map(parseSetCommand));
      if (argv[0] === "ip") ipvs.links.meddle(...linksIn(lines, ipvs.links.device(DEVICE) !== undefined));
    }
  }
  return held();
}

function linksIn(lines: readonly string[], hasDevice: boolean): readonly LinkCommand[] {
  return lines.flatMap((line): LinkCommand[] => {
    const [, address] = /^addr add ([^/]+)\//.exec(line) ?? [];
    if (address !== undefined) return [{ kind: "add-address", device: DEVICE, address }];
    return hasDevice ? [] : [{ kind: "add-device", device: DEVICE }];
  });
}

/** Kernelspace mode has a host of its own: windows.test.ts does the same for it. */
const LINUX = MODES.filter((mode) => modes.some(({ facts }) => facts.name === mode));

const MATRIX = LINUX.flatMap((mode) =>
  CONFIGURATIONS.flatMap((lines) => [false, true].map((liberal) => ({ mode, lines, liberal }))),
);

test.each(MATRIX)(
  "$mode, $lines, node's be_liberal $liberal: what the agent writes is what the tools expect",
  async ({ mode, lines, liberal }) => {
    const config = configured(mode, lines);
    const planOf = await plansOf(mode, config);
    const expected = await predicted({ mode, config, counters: true, tcpBeLiberal: liberal }, planOf);
    expect(await written(mode, config, planOf, liberal)).toEqual(expected);
  },
);

test("every line of the matrix changes what its mode writes", async () => {
  for (const mode of LINUX) {
    const rules = new Set<string>();
    for (const lines of CONFIGURATIONS.filter((one) => one === "" || one.startsWith(mode))) {
      const config = configured(mode, lines);
      const planOf = await plansOf(mode, config);
      rules.add(
        JSON.stringify(await Promise.all(IP_FAMILIES.map((family) => dryRun(planOf(family), { mode, config })))),
      );
    }
    expect(rules.size).toBeGreaterThan(1);
  }
});
