/**
 * kube-network-policies on the nodes of a cluster, a program of Kubernetes' SIG Network: the kernel asks it about the
 * first packet of each connection, after the proxy has chosen an endpoint and before it masquerades.
 */

import type { IPFamily } from "@fairlead/core";
import { DEFAULT_KUBERNETES, type ProgramSet, providePrograms } from "./control-plane/programs.ts";
import type { ApiServerControl, ClusterNode, Pod } from "./provider/cluster.ts";
import { PLAIN_TOOL } from "./support/machine.ts";
import { START_MS, waitUntil } from "./support/wait-until.ts";

const MODULE = { path: "sigs.k8s.io/kube-network-policies", version: "v0.8.0" };

const programs: ProgramSet<"kube-network-policies"> = {
  programs: { "kube-network-policies": { package: `${MODULE.path}/cmd`, module: MODULE } },
  folder: () => `kube-network-policies-${MODULE.version}`,
};

/** @throws Error that says what is missing, or what the build said */
export async function networkPoliciesProgram(progress: (line: string) => void): Promise<string> {
  return (await providePrograms(programs, DEFAULT_KUBERNETES, progress))["kube-network-policies"];
}

interface PolicyGround {
  readonly node: ClusterNode;
  readonly families: readonly IPFamily[];
  readonly apiServer: Pick<ApiServerControl, "url" | "token" | "ca">;
  /** The program. */
  readonly program: string;
}

/** Its own queue, and the chain that asks it. */
const QUEUE = "100";
const CHAIN = "NETWORK-POLICIES";

/**
 * Starts it on a node. What its own table would do is done by iptables: its rules need `nft_queue`, which kernels may
 * lack.
 *
 * @param pods those of the node that policies select
 * @returns what ends it, and takes the rules away
 */
export async function startNetworkPolicies(ground: PolicyGround, pods: readonly Pod[]): Promise<() => Promise<void>> {
  const { node, families } = ground;
  const pid = await startProgram(ground);
  const stop = async () => {
    for (const family of families) await node.run(["sh", "-c", WITHOUT_RULES, "sh", PLAIN_TOOL[family], CHAIN]);
    await node.run(["kill", "-KILL", pid]);
  };
  try {
    // It listens once it knows pods and policies.
    await waitUntil(`kube-network-policies on ${node.name}`, START_MS, async () => {
      const { stdout } = await node.run(["cat", "/proc/self/net/netfilter/nfnetlink_queue"]);
      return stdout.split("\n").some((line) => line.trim().startsWith(`${QUEUE} `)) ? true : undefined;
    });
    for (const family of families) await addRules(ground, family, pods);
  } catch (error) {
    await stop();
    throw error;
  }
  return stop;
}

/** It knows the API server as pods do, by a service account's files and two variables. */
const IN_POD = `
  mount -t tmpfs tmpfs /run
  folder=/run/secrets/kubernetes.io/serviceaccount
  mkdir -p $folder && printf %s "$1" > $folder/token && printf %s "$2" > $folder/ca.crt && shift 2
  exec "$@"
`;

const IN_BACKGROUND = 'setsid "$@" < /dev/null > /dev/null 2>&1 & echo $!';

async function startProgram({ node, apiServer, program }: PolicyGround): Promise<string> {
  const { hostname, port } = new URL(apiServer.url);
  const { stdout } = await node.run([
    "sh",
    ...["-c", IN_BACKGROUND, "sh"],
    ...["unshare", "--mount", "sh", "-ec", IN_POD, "sh", apiServer.token, apiServer.ca],
    ...["env", `KUBERNETES_SERVICE_HOST=${hostname.replace(/^\[|\]$/g, "")}`, `KUBERNETES_SERVICE_PORT=${port}`],
    ...[program, `--hostname-override=${node.name}`, `--nfqueue-id=${QUEUE}`, "--metrics-bind-address=127.0.0.1:9080"],
  ]);
  return stdout.trim();
}

/** A table that is not there is as good as one without them. */
const WITHOUT_RULES =
  '"$1" -w -t mangle -D POSTROUTING -j "$2"; "$1" -w -t mangle -F "$2"; "$1" -w -t mangle -X "$2"; :';

/** As its table has them at its own hook: not the node's own packets, nor those of a connection that was let in. */
async function addRules({ node }: PolicyGround, family: IPFamily, pods: readonly Pod[]): Promise<void> {
  const addresses = pods.flatMap(({ addresses }) => addresses[family] ?? []);
  const rules = [
    ...(family === "IPv6" ? ["-p ipv6-icmp -j RETURN"] : []),
    "-m owner --uid-owner 0 -j RETURN",
    "-m conntrack --ctstate ESTABLISHED,RELATED -j RETURN",
    ...addresses.flatMap((address) => ["-s", "-d"].map((side) => `${side} ${address} -j NFQUEUE --queue-num ${QUEUE}`)),
  ];
  const lines = ["*mangle", `:${CHAIN} -`, ...rules.map((rule) => `-A ${CHAIN} ${rule}`), `-A POSTROUTING -j ${CHAIN}`];
  await node.run([
    "sh",
    "-c",
    'printf %s "$2" | "$1-restore" -w --noflush',
    "sh",
    PLAIN_TOOL[family],
    `${lines.join("\n")}\nCOMMIT\n`,
  ]);
}
