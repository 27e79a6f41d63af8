import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import type { NetworkNamespace } from "@fairlead/kernel/netns";
import { execa } from "execa";

const MAIN = fileURLToPath(new URL("front-main.ts", import.meta.url));

export interface PodFront extends AsyncDisposable {
  /** Of an API server without TLS that knows the agents' pods. */
  readonly url: string;
}

export interface FrontSettings {
  /** The real API server. */
  readonly server: string;
  readonly token: string;
  /** `NetworkNamespace.file` of each node, by the nodes' names, which have a pod each. */
  readonly nodes: ReadonlyMap<string, string>;
}

/** Starts an API server for tools that look into the agents' pods, alongside the real one, which has no kubelets. */
export async function startPodFront(
  { argvPrefix, env }: Pick<NetworkNamespace, "argvPrefix" | "env">,
  { server, token, nodes }: FrontSettings,
): Promise<PodFront> {
  const argv = [process.execPath, "--no-warnings", "--conditions=@fairlead/source", MAIN, server];
  const [program = "", ...rest] = [...argvPrefix, "setpriv", "--pdeathsig", "KILL", ...argv];
  const args = [...rest, JSON.stringify(Object.fromEntries(nodes))];
  const child = execa(program, args, {
    env: { ...env, FAIRLEAD_FRONT_TOKEN: token },
    stdin: "ignore",
    buffer: false,
    reject: false,
  });
  const [url = ""] = await once(createInterface(child.stdout), "line");
  return {
    url: String(url),
    [Symbol.asyncDispose]: async () => {
      child.kill("SIGTERM");
      await child;
    },
  };
}
