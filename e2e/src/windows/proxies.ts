/** The service proxies that are played to. */

import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { kubeconfig } from "@fairlead/lab/control-plane/control-plane";
import { WINDOWS_NODE, type WindowsCase } from "@fairlead/testkit/windows";
import { stringify } from "yaml";
import type { ProxyPlace, ServiceProxy } from "./play.ts";

/** @param program kube-proxy.exe, below the folder of Wine */
export function kubeProxy(program: string): ServiceProxy {
  return {
    name: "kube-proxy",
    async command(of, at) {
      const file = await writeConfiguration(of, at, "kube-proxy");
      return [at.wine.path(program), "--config", at.wine.path(file), "--v=2"];
    },
  };
}

/**
 * @param node node.exe, below the folder of Wine
 * @param main the agent's bundle for Windows
 * @param flags in addition to its configuration
 */
export function agent(node: string, main: string, flags: readonly string[] = []): ServiceProxy {
  return {
    name: "agent",
    async command(of, at) {
      const file = await writeConfiguration(of, at, "agent");
      const state = join(at.folder, `state-${at.number}`);
      const { wine } = at;
      return [wine.path(node), wine.path(main), "--config", wine.path(file), "--state-dir", wine.path(state), ...flags];
    },
  };
}

/** Starts a program with a pipe as its standard input, and closes the pipe once a file is there. */
const WITH_PIPE = `
const { existsSync } = require("node:fs");
const [file, program, ...argv] = process.argv.slice(2);
const child = require("node:child_process").spawn(program, argv, { stdio: ["pipe", "inherit", "inherit"] });
setInterval(() => existsSync(file) && child.stdin.end(), 100).unref();
child.once("exit", (code) => process.exit(code ?? 1));
`;

/** The same proxy as another program's child, as service wrappers start it. `stop` closes the pipe to it. */
export function withPipe(proxy: ServiceProxy, node: string): ServiceProxy & { stop(at: ProxyFolder): Promise<void> } {
  return {
    name: proxy.name,
    async command(of, at) {
      const script = join(at.folder, "with-pipe.cjs");
      await writeFile(script, WITH_PIPE);
      const { wine } = at;
      return [wine.path(node), wine.path(script), wine.path(stopFile(at)), ...(await proxy.command(of, at))];
    },
    stop: (at) => writeFile(stopFile(at), ""),
  };
}

type ProxyFolder = Pick<ProxyPlace, "folder">;

function stopFile({ folder }: ProxyFolder): string {
  return join(folder, "stop");
}

async function writeConfiguration(of: WindowsCase, at: ProxyPlace, name: string): Promise<string> {
  const kubeconfigFile = join(at.folder, `kubeconfig-${at.number}`);
  await writeFile(kubeconfigFile, kubeconfig({ server: at.apiServer }));
  const file = join(at.folder, `${name}-${at.number}.yaml`);
  const overlay = of.network === "Overlay";
  await writeFile(
    file,
    stringify({
      apiVersion: "kubeproxy.config.k8s.io/v1alpha1",
      kind: "KubeProxyConfiguration",
      mode: "kernelspace",
      bindAddress: of.families[0] === "IPv6" ? WINDOWS_NODE.address6 : WINDOWS_NODE.address,
      hostnameOverride: WINDOWS_NODE.name,
      clientConnection: { kubeconfig: at.wine.path(kubeconfigFile), contentType: "application/json" },
      // The port of healthz is one of load balancers: it is the same for all proxies.
      healthzBindAddress: `127.0.0.${1 + (at.number % 250)}:${WINDOWS_NODE.healthzPort}`,
      metricsBindAddress: `127.0.0.${1 + (at.number % 250)}:10249`,
      winkernel: {
        networkName: overlay ? "vxlan0" : "cbr0",
        enableDSR: of.enableDSR,
        ...(overlay && { sourceVip: WINDOWS_NODE.sourceVip }),
        ...(of.forwardHealthCheckVip && { forwardHealthCheckVip: true, rootHnsEndpointName: "cbr0" }),
      },
    }),
  );
  return file;
}
