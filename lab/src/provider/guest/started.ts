import type { Script } from "../../support/script.ts";
import type { Pod } from "../cluster.ts";
import type { ClusterNode, Removable } from "../node.ts";
import type { GuestCalls } from "./calls.ts";

type Calls = "startLocalInstance" | "removeLocalInstance" | "startPodScript" | "askScript" | "stopScript";

/** What is started alongside agents and pods, and goes by a name from then on. */
export function startedCalls(
  node: (name: string) => Promise<Pick<ClusterNode, "startLocalInstance">>,
  pod: (name: string) => Promise<Pick<Pod, "startScript">>,
): Pick<GuestCalls, Calls> {
  const instances = new Map<string, Removable>();
  const scripts = new Map<string, Script>();
  return {
    startLocalInstance: async (at, name) => {
      const start = possible((await node(at)).startLocalInstance);
      instances.set(`${at}/${name}`, await start(name));
    },
    removeLocalInstance: (at, name) => known(instances.get(`${at}/${name}`)).remove(),
    startPodScript: async (at, file, args) => {
      const script = await possible((await pod(at)).startScript)(file, args);
      const name = `${at} ${scripts.size}`;
      scripts.set(name, script);
      return { name, ready: script.ready };
    },
    askScript: (name, line) => known(scripts.get(name)).ask(line),
    stopScript: (name) => known(scripts.get(name)).stop(),
  };
}

function possible<T>(method: T | undefined): T {
  if (method === undefined) throw new Error("this cluster cannot start it");
  return method;
}

function known<T>(value: T | undefined): T {
  if (value === undefined) throw new Error("nobody has started it");
  return value;
}
