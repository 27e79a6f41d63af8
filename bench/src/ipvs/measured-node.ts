import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createRunner, type Runner } from "@fairlead/kernel";
import { createNamespace, type NetworkNamespace } from "@fairlead/kernel/netns";
import { agentFile } from "@fairlead/lab/agent/agent-file";
import { FABRIC_ADDRESS, nodeAddress } from "@fairlead/lab/provider/netns/addresses";
import { type Daemon, startDaemon } from "@fairlead/lab/support/daemon";
import { applyLines, applySettings, runnerIn } from "@fairlead/lab/wire/apply";
import { ANYWHERE, address, route, up, veth } from "@fairlead/lab/wire/ip-lines";
import { kernelSettings } from "@fairlead/lab/wire/settings";
import { POD_RANGE } from "../cluster/objects.ts";
import { fairlead, kubeProxy, type ProxyName } from "../proxy/measured-proxy.ts";
import type { GuestSettings } from "./settings.ts";

/** A node with an empty kernel, on which one proxy is started and ended. */
export interface MeasuredNode {
  readonly namespace: NetworkNamespace;
  readonly runner: Runner;
  start(): Promise<Daemon>;
  /** The text of a metric's lines, or none while nothing answers. */
  metrics(): Promise<string>;
  /** /proc/net/ip_vs: every virtual server and destination in one line, addresses in hexadecimal. */
  virtualServers(): Promise<string>;
  dispose(): Promise<void>;
}

const METRICS_PORT = 10_249;
const here = nodeAddress.IPv4(1);

/** @param folder for configuration and logs */
export async function openNode(proxy: ProxyName, settings: GuestSettings, folder: string): Promise<MeasuredNode> {
  const namespace = await createNamespace();
  const runner = runnerIn(namespace);
  await applySettings(runner, kernelSettings("node-a"));
  await applyLines(createRunner(), [
    veth("bench", "eth0", namespace.pid),
    up("bench"),
    address("bench", `${FABRIC_ADDRESS.IPv4}/24`),
  ]);
  await applyLines(runner, [
    up("eth0"),
    address("eth0", `${here}/24`),
    route(ANYWHERE.IPv4, { via: FABRIC_ADDRESS.IPv4 }),
  ]);
  const config = join(folder, `${proxy}.json`);
  await writeFile(config, JSON.stringify(configuration(settings)));
  const subject = proxy === "kube-proxy" ? kubeProxy(settings.kubeProxy) : fairlead();
  const argv = subject.argv({ configFile: config, stateFolder: join(folder, "state"), agent: agentFile() });
  return {
    namespace,
    runner,
    start: () => startDaemon(namespace, { name: proxy, argv, logFile: join(folder, `${proxy}.log`) }),
    metrics: () =>
      fetch(`http://${here}:${METRICS_PORT}/metrics`).then(
        (answer) => answer.text(),
        () => "",
      ),
    virtualServers: () => readFile(`/proc/${namespace.pid}/net/ip_vs`, "utf8"),
    dispose: async () => {
      await createRunner().run(["ip", "link", "delete", "bench"]);
      await namespace.dispose();
    },
  };
}

/** The same for both, with upstream's defaults for what is not here. JSON is YAML. */
function configuration({ proxyKubeconfig }: GuestSettings) {
  return {
    apiVersion: "kubeproxy.config.k8s.io/v1alpha1",
    kind: "KubeProxyConfiguration",
    mode: "ipvs",
    clusterCIDR: POD_RANGE,
    clientConnection: { kubeconfig: proxyKubeconfig },
    metricsBindAddress: `0.0.0.0:${METRICS_PORT}`,
    conntrack: { maxPerCore: 0, min: 0, tcpEstablishedTimeout: "0s", tcpCloseWaitTimeout: "0s" },
  };
}
