import { once } from "node:events";
import { createServer, request } from "node:http";
import { agentFolder, requireAgent, startAgent } from "@fairlead/lab/agent";
import { now, waitUntil } from "@fairlead/lab/support/wait-until";
import { endpointSlice, nginxCalico, type RawObject } from "@fairlead/testkit";
import { localChecks } from "./checks.ts";
import { type Ask, type DemoEnvironment, LOCAL_FLAGS, leftovers, type Reply, serviceAt, webPods } from "./stage.ts";

/** This process's own environment: no namespace. */
const HERE = { argvPrefix: ["env"], env: {} } as const;

const START_MS = 300_000;

/**
 * The demo where there are neither root nor namespaces: real servers on loopback ports as pods, and the built agent
 * with --userspace-only, which serves the services on local ports. A request to a cluster IP goes to its service's
 * port.
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
      patienceMs: 180_000,
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

const TIMEOUT_MS = 30_000;
const AT_ONCE = 4;

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

/**
 * The same objects with pods on ports of this machine: each endpoint whose address is known becomes a slice of its own
 * with its port. The others, such as the other network's, stay where no client here can reach them.
 *
 * @param ports of 127.0.0.1, by the address that a pod would have
 */
function localObjects(objects: readonly RawObject[], ports: ReadonlyMap<string, number>): readonly RawObject[] {
  return objects.flatMap((object) => (object.kind === "EndpointSlice" ? localSlices(object, ports) : [object]));
}

function localSlices(slice: RawObject, ports: ReadonlyMap<string, number>): readonly RawObject[] {
  const addresses = addressesOf(slice);
  if (!addresses.some((address) => ports.has(address))) return [slice];
  const service = serviceOf(slice);
  return addresses.flatMap((address) => {
    const port = ports.get(address);
    if (port === undefined) return [];
    const endpoints = [{ address: "127.0.0.1" }];
    return [endpointSlice(`${service}-${port}`, { service, family: "IPv4", ports: [{ port }], endpoints })];
  });
}

function addressesOf({ endpoints }: RawObject): readonly string[] {
  if (!Array.isArray(endpoints)) return [];
  return endpoints.flatMap(({ addresses }: { addresses?: readonly string[] }) => addresses ?? []);
}

function serviceOf({ metadata }: RawObject): string {
  return metadata.labels?.["kubernetes.io/service-name"] ?? "";
}
