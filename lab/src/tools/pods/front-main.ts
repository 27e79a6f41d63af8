import { createServer, type IncomingMessage, request as overHttp, type ServerResponse } from "node:http";
import { request as overTls } from "node:https";
import type { AddressInfo } from "node:net";
import { Duplex } from "node:stream";
import { objectAt } from "@fairlead/base";
import { type PodName, type PodProgram, selection, servePods } from "@fairlead/testkit/api-server";
import { execa } from "execa";

/**
 * An API server whose nodes are namespaces, with the pods of their agents: it lists those, starts programs and reaches
 * ports in the namespaces, and gives every other request on to the real server. Arguments: the real one's URL, its
 * token, and as JSON a process in the namespace of each node. The first line that it prints is its own URL.
 */
const [, , server = "", token = "", nodes = "{}"] = process.argv;
const pids: ReadonlyMap<string, number> = new Map(Object.entries(JSON.parse(nodes)));
const NAMESPACE = "kube-system";

const pods = [...pids.keys()].map((nodeName) => ({
  metadata: {
    namespace: NAMESPACE,
    name: `fairlead-${nodeName}`,
    labels: { "app.kubernetes.io/name": "fairlead" },
  },
  spec: { nodeName, containers: [{ name: "fairlead" }] },
  status: { phase: "Running" },
}));

const front = createServer((request, response) => {
  const { pathname, searchParams } = new URL(request.url ?? "/", "http://front");
  if (request.method !== "GET" || pathname !== "/api/v1/pods") return void forward(request, response);
  const items = pods.filter(selection(searchParams));
  response.writeHead(200, { "content-type": "application/json" });
  response.end(JSON.stringify({ kind: "PodList", apiVersion: "v1", metadata: { resourceVersion: "1" }, items }));
});
servePods(front, () => ({
  exec: (pod, _container, argv) => inNamespace(pod, argv),
  connect: (pod, port) => {
    const { stdin, stdout } = inNamespace(pod, ["bash", "-c", PIPE, "bash", String(port)]);
    return Duplex.from({ readable: stdout, writable: stdin });
  },
}));
front.listen(0, "127.0.0.1", () => {
  // A listening TCP server has an AddressInfo.
  process.stdout.write(`http://127.0.0.1:${(front.address() as AddressInfo).port}\n`);
});

const PIPE = 'exec 3<>"/dev/tcp/127.0.0.1/$1" || exit 1; cat <&3 & cat >&3; wait';

function inNamespace({ name }: PodName, argv: readonly string[]): PodProgram {
  const pid = pids.get(name.replace(/^fairlead-/, ""));
  const env = { ...process.env, XTABLES_LOCKFILE: `/proc/${pid}/ns/net` };
  const options = { env, stdin: "pipe", buffer: false, reject: false } as const;
  const [program, ...args] = ["nsenter", "-t", String(pid), "-n", "--", ...argv] as const;
  const child = execa(program, args, options);
  const { stdin, stdout, stderr } = child;
  const exitCode = child.then(({ exitCode: code }) => code ?? 1);
  return { stdin, stdout, stderr, exitCode, kill: () => void child.kill("SIGKILL") };
}

/** Clients are on the same machine, and in the same run of tests: the certificate is not checked. */
function forward(request: IncomingMessage, response: ServerResponse): void {
  const headers = { ...objectAt(request, "headers"), authorization: `Bearer ${token}`, host: new URL(server).host };
  const send = server.startsWith("https:") ? overTls : overHttp;
  const options = {
    method: request.method ?? "GET",
    headers: headers as NodeJS.Dict<string>,
    rejectUnauthorized: false,
  };
  const sent = send(new URL(request.url ?? "/", server), options, (answer) => {
    response.writeHead(answer.statusCode ?? 502, answer.headers);
    answer.pipe(response);
    answer.on("error", () => response.destroy());
  });
  sent.on("error", () => response.destroy());
  response.on("close", () => sent.destroy());
  request.pipe(sent);
}
