import { fileURLToPath } from "node:url";
import type { ClusterNode } from "@fairlead/lab/provider/cluster";
import { until } from "../expect.ts";
import { able } from "../spec.ts";
import { type AdviceCase, type Bench, fullyGiven } from "./bench.ts";
import { ELSEWHERE } from "./kernel-cases.ts";

const BESIDE = fileURLToPath(new URL("programs/beside-main.ts", import.meta.url));
const OTHER_PORT = "--metrics-bind-address=127.0.0.1:10299";
const TABLES = ["ip kube-proxy", "ip6 kube-proxy"];
const INSTANCE = "edge";

const swapTo = (node: ClusterNode, proxy: Bench["proxy"]) => able(node.agent.swap)(proxy);

/** The tables of nftables mode, loaded while a proxy serves in another one. */
async function leftTables({ node, proxy, sh }: Bench): Promise<void> {
  await swapTo(node, { mode: "nftables" });
  const tables = await Promise.all(TABLES.map((table) => sh(`nft list table ${table} 2>/dev/null || true`)));
  // Fairlead keeps serving from one mode to the next; kube-proxy removes the last one's rules first.
  await swapTo(node, { mode: proxy.mode });
  // It removes them once it serves.
  await until("the tables to go", async () =>
    (await sh("nft list tables")).match(/ kube-proxy$/m) ? "tables" : undefined,
  );
  if (proxy.kubeProxy !== undefined) await swapTo(node, proxy);
  for (const table of tables) await sh(`nft -f - <<'TABLE'\n${table}\nTABLE`);
}

/** Who serves, and what is left of it. */
export const proxyCases: readonly AdviceCase[] = [
  {
    advice: "start-agent",
    what: "no proxy runs",
    anyProxy: true,
    make: async ({ node }) => node.agent.kill(),
    follow: async ({ node }) => node.agent.restart(),
  },
  {
    advice: "one-proxy",
    what: "two proxies run",
    make: async (bench, later) => {
      const { node, proxy, kubeconfig } = bench;
      const { FAIRLEAD_KUBE_PROXY: program = "" } = process.env;
      const ports = ["--metrics-bind-address=127.0.0.1:10259", "--healthz-bind-address=127.0.0.1:10266"];
      const flags = [`--kubeconfig=${kubeconfig}`, `--hostname-override=${node.name}`, `--proxy-mode=${proxy.mode}`];
      const limits = ["--conntrack-max-per-core=0", "--conntrack-min=0"];
      const second = await able(node.startScript)(BESIDE, [program, ...flags, ...ports, ...limits]);
      later(() => second.stop());
      seconds.set(bench, () => second.stop());
    },
    follow: async (bench) => void (await seconds.get(bench)?.()),
  },
  {
    advice: "delete-left-tables",
    what: "tables of nftables mode are left, and the proxy serves in iptables mode",
    anyProxy: true,
    modes: ["iptables"],
    make: leftTables,
  },
  {
    advice: "make-table",
    what: "the mode's table is gone, and the agent is",
    modes: ["nftables"],
    interrupts: true,
    make: async (bench) => {
      await bench.node.agent.kill();
      for (const table of TABLES) await bench.sh(`nft delete table ${table} 2>/dev/null || true`);
      return () => bench.doctor([...fullyGiven(bench), "--mode", "nftables"]);
    },
    follow: async ({ node }) => node.agent.restart(),
  },
  {
    advice: "start-proxy-first",
    what: "tables serve, and no proxy runs: it is started",
    anyProxy: true,
    modes: ["nftables"],
    make: async ({ node }) => node.agent.kill(),
    follow: async ({ node }) => node.agent.restart(),
  },
  {
    advice: "start-proxy-first",
    what: "tables serve, and no proxy runs: it is started in another mode",
    modes: ["nftables"],
    make: async ({ node, proxy }, later) => {
      later(() => swapTo(node, proxy));
      await node.agent.kill();
    },
    follow: async ({ node, proxy }) => swapTo(node, { ...proxy, mode: "iptables" }),
  },
  {
    advice: "ask-running-proxy",
    what: "tables serve, and the proxy does not answer where it is asked",
    modes: ["nftables"],
    make: async ({ node }, later) => {
      later(() => node.agent.restart());
      await node.agent.restart({ flags: [OTHER_PORT] });
    },
    follow: async (bench) => () => bench.doctor([...fullyGiven(bench), "--mode", "nftables"]),
  },
  {
    advice: "look-in-host-processes",
    what: "processes cannot be seen, and the proxy does not answer where it is asked",
    check: "proxies on this node",
    make: async (bench, later) => {
      later(() => bench.node.agent.restart());
      await bench.node.agent.restart({ flags: [OTHER_PORT] });
      return () => bench.doctor(fullyGiven(bench), ELSEWHERE);
    },
    follow: async (bench) => () => bench.doctor(fullyGiven(bench)),
  },
  {
    advice: "instance",
    what: "an agent with a service proxy name was killed, and its tables are removed",
    make: async ({ node }, later) => {
      const instance = await able(node.startInstance)(INSTANCE);
      later(() => instance.remove());
      await instance.kill();
    },
  },
];

const seconds = new WeakMap<Bench, () => Promise<void>>();
