import type { IPFamily } from "@fairlead/core";
import type { Runner } from "@fairlead/kernel";
import type { NetworkNamespace } from "@fairlead/kernel/netns";
import type { ApiClient, ApiObject } from "../control-plane/api-client.ts";
import type { Peer } from "../peer/process.ts";
import { orDispose } from "../support/processes.ts";
import { type Script, startScript } from "../support/script.ts";
import type { AgentOnNode, Pod, WantedPod } from "./cluster.ts";

/** How long what is terminated goes on serving: longer than any spec. */
export const GRACE_SECONDS = 600;

interface PodParts {
  readonly name: string;
  readonly wanted: WantedPod;
  readonly addresses: Pod["addresses"];
  readonly api: ApiClient;
  /** Of its object in the API. */
  readonly path: string;
  readonly peer: Peer;
  setReady(ready: boolean): Promise<unknown>;
}

/** A pod that serves, before a caller has it. */
type OpenedPod = Omit<Pod, "remove">;

export function podHandle({ name, wanted, addresses, api, path, peer, setReady }: PodParts): OpenedPod {
  const { network, node, namespace } = wanted;
  return {
    ...{ name, addresses, network, node, namespace },
    send: (probe) => peer.send(probe),
    setReady: async (ready) => void (await setReady(ready)),
    terminate: () => api.delete(path, GRACE_SECONDS),
  };
}

/** Starts scripts in a pod's network, which end with `undo`. */
export function scriptStarter(namespace: NetworkNamespace, undo: AsyncDisposableStack) {
  return async (file: string, args?: readonly string[]): Promise<Script> => {
    const script = await startScript(namespace, file, args);
    undo.defer(() => script.stop());
    return script;
  };
}

/**
 * Starts pods, and removes at the end those that are still there.
 *
 * @param open gives `undo` what is to be undone when the pod is removed, or does not come to serve
 */
export function podStarter(open: (wanted: WantedPod, undo: AsyncDisposableStack) => Promise<OpenedPod>) {
  const running = new Set<Pod>();
  const start = (wanted: WantedPod): Promise<Pod> =>
    orDispose(async (undo) => {
      const remove = async () => {
        running.delete(pod);
        await undo.disposeAsync();
      };
      const pod: Pod = { ...(await open(wanted, undo)), remove };
      running.add(pod);
      return pod;
    });
  const dispose = async () => {
    await Promise.all([...running].map((pod) => pod.remove()));
  };
  return { start, dispose };
}

/** A pod bound to its node; `spec` has its containers. */
export function podObject(
  name: string,
  { namespace, node, labels = {} }: WantedPod,
  spec: Readonly<Record<string, unknown>>,
): ApiObject {
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name, namespace, labels },
    spec: { nodeName: node.name, enableServiceLinks: false, ...spec },
  };
}

/** HTTP/1.0 by the shell: bare nodes have no client. */
const GET = 'exec 3<>"/dev/tcp/$1/$2" && printf "GET %s HTTP/1.0\\r\\nHost: node\\r\\n\\r\\n" "$3" >&3 && cat <&3';

/** `/healthz` and `/livez` are asked of the health port, everything else of the metrics port. */
async function httpGet(runner: Runner, path: string): Promise<string> {
  const port = path === "/healthz" || path === "/livez" ? "10256" : "10249";
  const answer = await ask(runner, "127.0.0.1", port, path);
  const end = answer.indexOf("\r\n\r\n");
  return end === -1 ? answer : answer.slice(end + 4);
}

/** 0 when nothing answers. */
async function httpStatus(runner: Runner, address: string, port: number): Promise<number> {
  const answer = await ask(runner, address, String(port), "/").catch(() => "");
  return Number(/^HTTP\/\S+ (\d+)/.exec(answer)?.[1] ?? "0");
}

/** What an agent is asked, by the node that it is on. */
export function asksOf(
  runner: Runner,
  addresses: Readonly<Partial<Record<IPFamily, string>>>,
): Pick<AgentOnNode, "get" | "status"> {
  return {
    get: (path) => httpGet(runner, path),
    status: (family, port) => httpStatus(runner, addresses[family] ?? "", port),
  };
}

async function ask(runner: Runner, address: string, port: string, path: string): Promise<string> {
  const { stdout } = await runner.run(["bash", "-c", GET, "bash", address, port, path], { timeoutMs: 30_000 });
  return stdout;
}

/** An agent may fall back to another mode, where specs would be green for the wrong reason. */
export async function requireMode({ get }: Pick<AgentOnNode, "get">, mode: string): Promise<void> {
  const answer = (await get("/proxyMode")).trim();
  if (answer !== mode) throw new Error(`Fairlead runs in ${answer} mode where ${mode} was asked for`);
}
