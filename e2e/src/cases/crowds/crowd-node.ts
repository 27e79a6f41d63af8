import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { IP_FAMILIES } from "@fairlead/base";
import { PATIENCE_MS } from "@fairlead/base/testing";
import { type AgentProcess, agentFolder, startAgent } from "@fairlead/lab/agent";
import { kubeconfig, USERS } from "@fairlead/lab/control-plane/control-plane";
import { openCrowd } from "@fairlead/lab/plain/crowd";
import { type KubeProxyMode, startApi, startKubeProxy } from "@fairlead/lab/plain/kube-proxy";
import type { Lab } from "@fairlead/lab/plain/lab";
import { whoAnswersAt } from "@fairlead/lab/plain/requests";
import { rulesInPlace, SCENE_FLAGS } from "@fairlead/lab/plain/scene";
import { waitUntil } from "@fairlead/lab/support/wait-until";
import { clientA, clusterObjects, webA1, workload } from "@fairlead/testkit";
import type { CrowdGround } from "./followed-crowd.ts";

/** A proxy that serves the crowd's node. */
export type CrowdProxy =
  | { readonly fairlead: KubeProxyMode["mode"] }
  | (KubeProxyMode & { readonly kubeProxy: string });

/** A node of the lab with a crowd, an API server, and one proxy at a time. */
export interface CrowdNode extends CrowdGround, AsyncDisposable {
  /** Ends the proxy that runs, and starts this one; returns when it serves. */
  serve(proxy: CrowdProxy): Promise<void>;
  /** Ends the proxy that runs, and removes what it wrote: Fairlead's --cleanup knows kube-proxy's rules, too. */
  cleanUp(): Promise<void>;
}

interface Running {
  stop(): Promise<unknown>;
  log(): string | Promise<string>;
}

/** What waits for the proxy begins here; each number is a service of its own. */
const FIRST_PROOF = 100;

export const crowdPorts = { podPorts: { tcp: [8080], udp: [] }, landingPorts: { tcp: [8080], udp: [] } };

export async function openCrowdNode(lab: Lab): Promise<CrowdNode> {
  await using opened = new AsyncDisposableStack();
  const folder = await agentFolder([]);
  opened.defer(() => rm(folder.path, { recursive: true }));
  const api = await startApi(lab.namespace("node-a"), clusterObjects);
  opened.defer(() => api.stop());
  const config = join(folder.path, "kubeconfig");
  await writeFile(config, kubeconfig({ server: api.url, token: USERS.proxy.token }));
  const crowd = await openCrowd(lab);
  opened.defer(() => crowd.close());

  let running: Running | undefined;
  opened.defer(async () => void (await running?.stop()));
  let proofs = FIRST_PROOF;
  const settled = async () => {
    const { objects, clusterIP, port } = workload(proofs++, { endpoints: [webA1], families: IP_FAMILIES });
    await api.put(objects);
    for (const family of IP_FAMILIES) {
      const flow = { from: clientA, to: clusterIP[family], port };
      const answers = async () => ((await whoAnswersAt(lab, flow)) === webA1.name ? true : undefined);
      await waitUntil(`an answer at ${flow.to}`, PATIENCE_MS, answers).catch(async (error: unknown) => {
        throw new Error(`the proxy does not serve; its log:\n${await running?.log()}`, { cause: error });
      });
    }
  };
  const flags = [...SCENE_FLAGS, `--kubeconfig=${config}`, `--state-dir=${folder.state}`];
  const fairlead = async (mode: string): Promise<AgentProcess> => {
    const agent = startAgent(lab.namespace("node-a"), { flags: [...flags, `--proxy-mode=${mode}`] });
    await rulesInPlace(agent);
    return agent;
  };
  const kept = opened.move();
  return {
    crowd,
    put: api.put,
    remove: api.remove,
    settled,
    serve: async (proxy) => {
      await running?.stop();
      running =
        "fairlead" in proxy
          ? await fairlead(proxy.fairlead)
          : await startKubeProxy(lab, {
              ...proxy,
              program: proxy.kubeProxy,
              kubeconfig: config,
              folder: join(folder.path, "kube-proxy"),
            });
      await settled();
    },
    cleanUp: async () => {
      await running?.stop();
      running = undefined;
      const { exitCode, log } = await startAgent(lab.namespace("node-a"), { flags: [...flags, "--cleanup"] }).ended;
      if (exitCode !== 0) throw new Error(`--cleanup ended with ${exitCode}:\n${log}`);
    },
    [Symbol.asyncDispose]: () => kept.disposeAsync(),
  };
}
