/** Cases of advice about a node: its kernel, and the proxies on it. */

import { fileURLToPath } from "node:url";
import type { ClusterNode } from "@fairlead/lab/provider/cluster";
import { until } from "../expect.ts";
import { configFlag, KUBE_PROXY } from "../operator.ts";
import { able } from "../spec.ts";
import { type AdviceCase, type AdviceCases, type Bench, fullyGiven, given, printed, runPrinted } from "./bench.ts";

/** A setting of the node's network that is off. */
function setting(key: string, why: string): AdviceCase {
  return {
    what: why,
    check: key,
    anyProxy: true,
    interrupts: true,
    make: async ({ sh }, later) => {
      later(() => sh(`sysctl -w ${key}=1`));
      await sh(`sysctl -w ${key}=0`);
    },
  };
}

/** kube-ovn's rules, and the set of ipvs mode for which it makes them. */
const KUBE_OVN = `
  ipset create KUBE-CLUSTER-IP hash:ip,port
  ipset create ovn40services hash:net
  ipset add ovn40services 10.96.0.0/12`;
const REJECT =
  "-p tcp -m mark ! --mark 0x4000/0x4000 -m set --match-set ovn40services dst -m conntrack --ctstate NEW -j REJECT";

/** It looks for the set again and again, and has no rules without it. */
const WITHOUT_SET = `
  ipset list -n KUBE-CLUSTER-IP 2>/dev/null && exit 0
  for chain in INPUT OUTPUT; do iptables -D $chain ${REJECT} 2>/dev/null || true; done
  ipset destroy ovn40services 2>/dev/null || true`;

const LEGACY = "iptables-legacy -t nat";

const leftInLegacy: AdviceCase["make"] = async ({ sh }, later) => {
  later(() => sh(`${LEGACY} -F; ${LEGACY} -X`));
  const jump = `-m comment --comment "kubernetes service portals" -j KUBE-SERVICES`;
  const rule = `-d 192.0.2.1/32 -p tcp --dport 80 -j DNAT --to-destination 192.0.2.2:80`;
  await sh(`${LEGACY} -N KUBE-SERVICES; ${LEGACY} -A PREROUTING ${jump}; ${LEGACY} -A KUBE-SERVICES ${rule}`);
};

/** By which kubelet says that this host uses the nft variant. */
const HINT = "iptables-nft -t mangle -N KUBE-IPTABLES-HINT";
const noHint = ({ sh }: Bench) => sh("iptables-nft -t mangle -X KUBE-IPTABLES-HINT");

function routesInPods({ scene }: Bench): readonly (readonly [flag: string, cidr: string])[] {
  const { IPv4, IPv6 } = scene.network.podCIDRs;
  return [
    ...(IPv4 === undefined ? [] : [["-4", IPv4] as const]),
    ...(IPv6 === undefined ? [] : [["-6", IPv6] as const]),
  ];
}

export const kernelCases = {
  sysctl: [
    setting("net.ipv4.ip_forward", "IPv4 is not forwarded"),
    setting("net.ipv6.conf.all.forwarding", "IPv6 is not forwarded"),
    setting("net.bridge.bridge-nf-call-iptables", "pods on one bridge meet no rules"),
  ],
  "rp-filter": {
    what: "a strict filter on a second uplink, whose clients are answered by it",
    make: async (bench, later) => {
      const { node, scene, sh } = bench;
      const flags = [await configFlag(scene, node, { replyVia: [{ interface: "up1" }] })];
      await sh("ip link add up1 type veth peer name up1-far");
      later(() => sh("ip link delete up1"));
      later(() => node.agent.restart());
      await sh("sysctl -w net.ipv4.conf.up1.rp_filter=1");
      await node.agent.restart({ flags });
    },
  },
  "let-through": {
    what: "FORWARD drops by default, as Docker sets it",
    anyProxy: true,
    interrupts: true,
    make: async ({ sh }, later) => {
      later(() => sh("iptables -P FORWARD ACCEPT"));
      await sh("iptables -P FORWARD DROP");
    },
    follow: async ({ sh }) => void (await sh("iptables -P FORWARD ACCEPT")),
  },
  "check-tables": {
    what: "a firewall has a table",
    anyProxy: true,
    stays: true,
    make: async ({ sh }, later) => {
      later(() => sh("nft delete table inet firewalld"));
      await sh("nft 'table inet firewalld { chain input { type filter hook input priority 10; accept; }; }'");
    },
    follow: async ({ sh }) => void (await sh("nft list table inet firewalld")),
  },
  "left-dns-rules": {
    what: "node-local DNS was killed, and left its rules",
    anyProxy: true,
    make: async ({ sh }, later) => {
      const rule = "PREROUTING -d 169.254.20.10 -p udp --dport 53 -j NOTRACK";
      later(() => sh(`iptables -t raw -D ${rule} 2>/dev/null || true`));
      await sh(`iptables -t raw -I ${rule}`);
    },
  },
  "one-variant": {
    what: "a firewall uses the other variant",
    anyProxy: true,
    make: async ({ sh }) => void (await sh("iptables-legacy -A INPUT -p tcp --dport 9 -j DROP")),
    follow: async ({ sh }) =>
      void (await sh(
        "iptables-nft -A INPUT -p tcp --dport 9 -j DROP; iptables-legacy -D INPUT -p tcp --dport 9 -j DROP",
      )),
  },
  "remove-other-variant": {
    what: "a proxy that ran in the other variant left its rules",
    anyProxy: true,
    make: async (bench, later) => {
      later(() => noHint(bench));
      await bench.sh(HINT);
      await leftInLegacy(bench, later);
    },
  },
  "decide-variant": {
    what: "both variants have rules of a proxy, and kubelet has left no hint",
    anyProxy: true,
    modes: ["iptables"],
    make: leftInLegacy,
    follow: async (bench, { commands }) => {
      bench.scene.later(async () => void (await noHint(bench)));
      for (const command of commands) await bench.sh(command);
      await bench.node.agent.restart();
      const left = given(await bench.doctor(fullyGiven(bench)), "remove-other-variant");
      if (left === undefined) throw new Error("what is left in the other variant is not named");
      await runPrinted(bench, printed(left));
    },
  },
  "kube-ovn-set": {
    what: "ipvs mode left the set for which kube-ovn rejects",
    anyProxy: true,
    make: async ({ sh }, later) => {
      later(() => sh(`ipset destroy KUBE-CLUSTER-IP 2>/dev/null || true; ${WITHOUT_SET}`));
      await sh(`${KUBE_OVN}\nfor chain in INPUT OUTPUT; do iptables -I $chain ${REJECT}; done`);
    },
    follow: async ({ sh }, { commands }) => {
      for (const command of commands) await sh(command);
      await sh(WITHOUT_SET);
    },
  },
  "pod-network": {
    what: "the pod network's routes are gone",
    anyProxy: true,
    interrupts: true,
    make: async (bench, later) => {
      const routes = await Promise.all(
        routesInPods(bench).map(async ([flag, cidr]) => {
          const listed = await bench.sh(`ip ${flag} route show root ${cidr}`);
          return listed
            .split("\n")
            .flatMap((route) => (route.trim() === "" ? [] : [`${flag} route replace ${route.trim()}`]));
        }),
      );
      const restore = () =>
        bench.sh(
          routes
            .flat()
            .map((line) => `ip ${line}`)
            .join("\n"),
        );
      later(restore);
      restorers.set(bench, restore);
      await bench.sh(
        routes
          .flat()
          .map((line) => `ip ${line.replace("replace", "del")}`)
          .join("\n"),
      );
    },
    follow: async (bench) => void (await restorers.get(bench)?.()),
  },
} satisfies AdviceCases;

/** What a pod network does when it comes up again. */
const restorers = new WeakMap<Bench, () => Promise<unknown>>();

/** Without a view of the host's processes, as in a pod. */
const ELSEWHERE = ["unshare", "--pid", "--fork", "--mount-proc"];

const RUN_PROGRAM = fileURLToPath(new URL("programs/run-program-main.ts", import.meta.url));
const OTHER_PORT = "--metrics-bind-address=127.0.0.1:10299";
const TABLES = ["ip kube-proxy", "ip6 kube-proxy"];
const INSTANCE = "edge";

const swapTo = (node: ClusterNode, proxy: Bench["proxy"]) => able(node.agent.swap)(proxy);

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

/** The proxy that serves, and what is left of it. */
export const proxyCases = {
  "start-agent": {
    what: "no proxy runs",
    anyProxy: true,
    make: async ({ node }) => node.agent.kill(),
    follow: async ({ node }) => node.agent.restart(),
  },
  "one-proxy": {
    what: "two proxies run",
    make: async (bench, later) => {
      const { node, proxy, kubeconfig } = bench;
      const ports = ["--metrics-bind-address=127.0.0.1:10259", "--healthz-bind-address=127.0.0.1:10266"];
      const flags = [`--kubeconfig=${kubeconfig}`, `--hostname-override=${node.name}`, `--proxy-mode=${proxy.mode}`];
      const limits = ["--conntrack-max-per-core=0", "--conntrack-min=0"];
      const second = await able(node.startScript)(RUN_PROGRAM, [KUBE_PROXY, ...flags, ...ports, ...limits]);
      later(() => second.stop());
      seconds.set(bench, () => second.stop());
    },
    follow: async (bench) => void (await seconds.get(bench)?.()),
  },
  "delete-left-tables": {
    what: "tables of nftables mode are left, and the proxy serves in iptables mode",
    anyProxy: true,
    modes: ["iptables"],
    make: leftTables,
  },
  "make-table": {
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
  "start-proxy-first": [
    {
      what: "tables serve, and no proxy runs: it is started",
      anyProxy: true,
      modes: ["nftables"],
      make: async ({ node }) => node.agent.kill(),
      follow: async ({ node }) => node.agent.restart(),
    },
    {
      what: "tables serve, and no proxy runs: it is started in another mode",
      modes: ["nftables"],
      make: async ({ node, proxy }, later) => {
        later(() => swapTo(node, proxy));
        await node.agent.kill();
      },
      follow: async ({ node, proxy }) => swapTo(node, { ...proxy, mode: "iptables" }),
    },
  ],
  "ask-running-proxy": {
    what: "tables serve, and the proxy does not answer where it is asked",
    modes: ["nftables"],
    make: async ({ node }, later) => {
      later(() => node.agent.restart());
      await node.agent.restart({ flags: [OTHER_PORT] });
    },
    follow: async (bench) => () => bench.doctor([...fullyGiven(bench), "--mode", "nftables"]),
  },
  "look-in-host-processes": {
    what: "processes cannot be seen, and the proxy does not answer where it is asked",
    check: "proxies on this node",
    make: async (bench, later) => {
      later(() => bench.node.agent.restart());
      await bench.node.agent.restart({ flags: [OTHER_PORT] });
      return () => bench.doctor(fullyGiven(bench), ELSEWHERE);
    },
    follow: async (bench) => () => bench.doctor(fullyGiven(bench)),
  },
  instance: {
    what: "an agent with a service proxy name was killed, and its tables are removed",
    make: async ({ node }, later) => {
      const instance = await able(node.startInstance)(INSTANCE);
      later(() => instance.remove());
      await instance.kill();
    },
  },
} satisfies AdviceCases;

const seconds = new WeakMap<Bench, () => Promise<void>>();
