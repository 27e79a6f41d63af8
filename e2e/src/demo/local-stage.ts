import { once } from "node:events";
import { createServer, request } from "node:http";
import { agentFolder, requireAgent, startAgent } from "@fairlead/lab/agent";
import { waitUntil } from "@fairlead/lab/support/wait-until";
import { nginxCalico, type RawObject } from "@fairlead/testkit";
import { localChecks } from "./checks/local.ts";
import { leftovers } from "./leftovers.ts";
import { localObjects } from "./local-objects.ts";
import { LOCAL_FLAGS, serviceAt, webPods } from "./services.ts";
import type { Ask, DemoEnvironment, Reply } from "./stage.ts";

const START_MS = 120_000;
const TIMEOUT_MS = 30_000;
const AT_ONCE = 4;

/** This process's own environment: no namespace. */
const HERE = { argvPrefix: ["env"], env: {} } as const;

/**
 * The demo where there are neither root nor namespaces: real servers on loopback ports as pods, and the built agent
 * with --userspace-only, which serves the services on local ports. A request to a cluster IP goes to its service's
 * port.
 *
 * @throws Error when the agent is not built or does not come up
 */
export async function localStage(objects: readonly RawObject[]): Promise<DemoEnvironment> {
  await requireAgent();
  const opened = new AsyncDisposableStack();
  try {
    const ports = new Map<string, number>();
    for (const pod of [nginxCalico, ...webPods]) ports.set(pod.addresses.IPv4, await openPod(opened, pod.name));
    const folder = await agentFolder(localObjects(objects, ports));
    opened.defer(() => folder.remove());
    const paths = [`--manifests=${folder.manifests}`, `--state-dir=${folder.state}`];
    const agent = startAgent(HERE, { flags: [...LOCAL_FLAGS, ...paths] });
    opened.defer(async () => void (await agent.stop()));
    await waitUntil("the first table of services", START_MS, async () =>
      tableIn(agent.log()).length > 1 ? true : undefined,
    );
    const kept = opened.move();
    return {
      ground: "local ports of this machine (--userspace-only): real requests, without root and without a rule",
      proof: "with real requests to local ports",
      real: false,
      nodePortsAt: [],
      patienceMs: 60_000,
      checks: localChecks,
      change: (next) => folder.write(localObjects(next, ports)),
      ask: (ask) => requests(ask, tableIn(agent.log())),
      rules: async () => tableIn(agent.log()),
      manifests: folder.manifests,
      tour: [],
      close: async () => {
        await kept.disposeAsync();
        return leftovers([agent.pid], folder.path);
      },
    };
  } catch (error) {
    await opened.disposeAsync();
    throw error;
  }
}

/** The lines of the last table that the agent has printed, without its head. */
function tableIn(log: string): readonly string[] {
  const [, ...tables] = log.split(/^SERVICE +PROTOCOL +LOCAL ADDRESS\n/m);
  return (tables.at(-1) ?? "").split("\n").filter((line) => /^\S+\/\S+ +(TCP|UDP|SCTP) /.test(line));
}

async function openPod(opened: AsyncDisposableStack, name: string): Promise<number> {
  const server = createServer((_, response) => response.end(name));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  opened.defer(() => void server.close());
  const bound = server.address();
  if (bound === null || typeof bound === "string") throw new Error("a pod has no port");
  return bound.port;
}

async function requests({ to, count }: Ask, table: readonly string[]): Promise<readonly Reply[]> {
  const row = table.find((line) => line.startsWith(`default/${serviceAt(to)} `)) ?? "";
  const address = / (127\.0\.0\.1):(\d+)$/.exec(row);
  const replies: Reply[] = [];
  let left = count;
  const lane = async () => {
    while (left-- > 0) replies.push(await get(address?.[1] ?? "", Number(address?.[2])));
  };
  if (address === null) return Array.from({ length: count }, () => ({ at: now(), end: "no local port" }));
  await Promise.all(Array.from({ length: AT_ONCE }, lane));
  return replies;
}

function get(host: string, port: number): Promise<Reply> {
  return new Promise((resolve) => {
    const end = (what: string) => resolve({ at: now(), end: what });
    const call = request({ host, port, agent: false, timeout: TIMEOUT_MS });
    call.on("response", async (response) => {
      let body = "";
      for await (const piece of response.setEncoding("utf8")) body += piece;
      end(body);
    });
    call.on("timeout", () => {
      end("silence");
      call.destroy();
    });
    call.on("error", (error: NodeJS.ErrnoException) =>
      end(error.code === "ECONNREFUSED" ? "refused" : String(error.code)),
    );
    call.end();
  });
}

function now(): number {
  return performance.timeOrigin + performance.now();
}
