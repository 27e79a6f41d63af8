import { createServer, type ServerResponse } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { LightApiServer, type PodName, printed, type SeenRequest } from "@fairlead/testkit/api-server";
import { Kubeconfigs } from "./files.ts";

/** What runs on the cluster's nodes. */
export interface NodesState {
  readonly pods: readonly {
    readonly node: string;
    readonly labels: Readonly<Record<string, string>>;
    readonly name: string;
    readonly container: string;
    readonly nodeSelector?: Readonly<Record<string, string>>;
  }[];
  /** What programs print, by the whole command or by its first word. */
  readonly programs: Readonly<Record<string, string>>;
  /** What they print otherwise once the agent was asked for a full sync. */
  readonly synced?: Readonly<Record<string, string>>;
  /** What the agent answers, by path. */
  readonly endpoint: Readonly<Record<string, unknown>>;
}

const NAMESPACE = "kube-system";

/** The agent of the first node. */
export const AGENT_POD = {
  ...{ node: "node-a", name: "fairlead-x7k2p", container: "fairlead" },
  labels: { "app.kubernetes.io/name": "fairlead" },
};

/**
 * A cluster whose nodes have an agent each: a real API server's paths and WebSockets over HTTP, programs and answers
 * from memory.
 */
export class NodeCluster {
  readonly api = new LightApiServer();
  readonly execs: { readonly pod: string; readonly container: string; readonly argv: readonly string[] }[] = [];
  readonly connections: { readonly pod: string; readonly port: number }[] = [];
  readonly #agent = createServer(({ url = "" }, response) => {
    const answer = this.#state.endpoint[url];
    response.writeHead(url in this.#state.endpoint ? 200 : 404);
    response.end(typeof answer === "string" ? answer : JSON.stringify(answer));
  });
  #state: NodesState = { pods: [], programs: {}, endpoint: {} };
  /** Of a file with the contexts `nodes` (the current one) and `production`. */
  kubeconfig = "";

  async start(): Promise<void> {
    const server = await this.api.start();
    await new Promise<void>((resolve) => this.#agent.listen(0, "127.0.0.1", resolve));
    const contexts = ["nodes", "production"].map((name) => ({ name, context: { cluster: "nodes", user: "nodes" } }));
    this.kubeconfig = new Kubeconfigs().write("nodes", { server }, {}, { contexts });
    this.api.pods = {
      exec: (pod, container, argv) => this.#exec(pod, container, argv),
      connect: (pod, port) => this.#connect(pod, port),
    };
  }

  async stop(): Promise<void> {
    await this.api.stop();
    this.#agent.closeAllConnections();
    await new Promise((resolve) => this.#agent.close(resolve));
  }

  set(state: NodesState): void {
    this.#state = state;
    this.execs.length = 0;
    this.connections.length = 0;
    this.api.requests.length = 0;
    for (const key of this.api.store.list("/api/v1/pods").map(keyOf)) this.api.store.delete("/api/v1/pods", key);
    for (const { name, labels, node, container, nodeSelector = {} } of state.pods) {
      this.api.store.put("/api/v1/pods", {
        metadata: { namespace: NAMESPACE, name, labels },
        spec: { nodeName: node, nodeSelector, containers: [{ name: container }] },
        status: { phase: "Running" },
      });
    }
  }

  #exec({ name }: PodName, container: string, argv: readonly string[]) {
    this.execs.push({ pod: name, container, argv });
    if (argv.join(" ") === "fairlead __full-sync" && this.#state.synced !== undefined) {
      this.#state = { ...this.#state, programs: { ...this.#state.programs, ...this.#state.synced } };
      return printed("");
    }
    const text = this.#state.programs[argv.join(" ")] ?? this.#state.programs[argv[0] ?? ""];
    return text === undefined ? notFound(argv) : printed(text);
  }

  #connect({ name }: PodName, port: number) {
    this.connections.push({ pod: name, port });
    return connect((this.#agent.address() as AddressInfo).port, "127.0.0.1");
  }
}

/** For a server: the caller has every right that it asks about. */
export function allRights({ path }: SeenRequest, response: ServerResponse): boolean {
  if (!path.endsWith("/selfsubjectaccessreviews")) return false;
  response.writeHead(201).end(JSON.stringify({ status: { allowed: true } }));
  return true;
}

/** Answers for as long as anything reads. */
export function endless(response: ServerResponse): void {
  const piece = "x".repeat(1 << 16);
  const more = () => {
    while (response.write(piece));
  };
  response.on("drain", more);
  more();
}

/** In containerd's words. */
export function notFound([program = ""]: readonly string[]): string {
  return `OCI runtime exec failed: exec: "${program}": executable file not found in $PATH: unknown`;
}

function keyOf(object: object): string {
  const { namespace, name } = (object as { readonly metadata: { readonly namespace: string; readonly name: string } })
    .metadata;
  return `${namespace}/${name}`;
}
