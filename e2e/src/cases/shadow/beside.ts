import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type AgentProcess, agentFolder, startAgent } from "@fairlead/lab/agent";
import { kubeconfig, USERS } from "@fairlead/lab/control-plane/control-plane";
import { type KubeProxyMode, startApi, startKubeProxy } from "@fairlead/lab/plain/kube-proxy";
import type { Lab } from "@fairlead/lab/plain/lab";
import { waitUntil } from "@fairlead/lab/support/wait-until";
import { tool } from "@fairlead/lab/tools/fairlead";
import { clusterObjects, type RawObject } from "@fairlead/testkit";
import { agrees, askShadow, kindsOf, type ShadowPage } from "./page.ts";

/** A busy machine takes its time to start both, and a guest for every sync of kube-proxy. */
const AGREED_MS = 600_000;
/** Each question is a process, which in a guest takes its time from those that are to agree. */
const AGREED_PAUSE_MS = 1_000;

export interface BesideSettings extends KubeProxyMode {
  /** The real kube-proxy. */
  readonly program: string;
  /** More flags for the shadow. */
  readonly flags?: readonly string[];
}

/** The real kube-proxy on node-a of a lab, and `fairlead verify --watch` alongside it: the shadow. */
export interface Beside extends AsyncDisposable {
  readonly shadow: AgentProcess;
  put(objects: readonly RawObject[]): Promise<void>;
  /** Waits until all was looked at since that moment (of Date) and nothing differs. */
  agreed(since: number): Promise<ShadowPage>;
  /** Waits until a difference (of the kind) is told, and gives after how many milliseconds. */
  told(what: string, withinMs: number, kind?: string): Promise<number>;
  /** With SIGKILL: whatever is done to the kernel stays. */
  killKubeProxy(): Promise<void>;
}

export async function openBeside(
  lab: Lab,
  { program, flags = [], ...mode }: BesideSettings,
  objects: readonly RawObject[],
): Promise<Beside> {
  await using opening = new AsyncDisposableStack();
  const { path } = await agentFolder([]);
  opening.defer(() => rm(path, { recursive: true }));
  const { url, put, stop } = await startApi(lab.namespace("node-a"), [...clusterObjects, ...objects]);
  opening.defer(stop);
  const access = join(path, "kubeconfig");
  await writeFile(access, kubeconfig({ server: url, token: USERS.proxy.token }));
  const folder = join(path, "kube-proxy");
  const kubeProxy = await startKubeProxy(lab, { ...mode, program, kubeconfig: access, folder });
  const killKubeProxy = () => kubeProxy.stop("SIGKILL");
  opening.defer(killKubeProxy);
  const shadow = startAgent(lab.namespace("node-a"), {
    bundle: tool,
    flags: ["verify", "--watch", `--config=${join(folder, "config.conf")}`, "--node=node-a", ...OWN, ...flags],
  });
  opening.defer(async () => void (await shadow.kill()));
  const opened = opening.move();
  const page = () => askShadow(lab.runner("node-a"));
  const until = (what: string, withinMs: number, holds: (seen: ShadowPage) => boolean, pauseMs?: number) =>
    waitUntil(
      what,
      withinMs,
      async () => {
        const seen = await page();
        return seen !== undefined && holds(seen) ? seen : undefined;
      },
      pauseMs,
    ).catch(async (error: unknown) => {
      const seen = JSON.stringify((await page()) ?? "no page", undefined, 1);
      const all = [seen, shadow.log(), await kubeProxy.log()].map((text) => text.slice(-20_000));
      throw new Error(`${what}: ${all.join("\n")}`, { cause: error });
    });
  return {
    shadow,
    put,
    agreed: (since) => until("the shadow to agree", AGREED_MS, (seen) => agrees(seen, since), AGREED_PAUSE_MS),
    told: async (what, withinMs, kind) => {
      const began = performance.now();
      await until(`${what} to be told`, withinMs, (seen) =>
        kind === undefined ? kindsOf(seen).length > 0 : kindsOf(seen).includes(kind),
      );
      return Math.round(performance.now() - began);
    },
    killKubeProxy,
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  };
}

/** The test's services have no annotation that says whose they are. */
const OWN = ["--agent-flag=ownership-annotation=false"];
