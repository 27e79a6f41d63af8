import {
  type ClientRequest,
  createServer,
  type IncomingMessage,
  request as overHttp,
  type ServerResponse,
} from "node:http";
import { request as overTls } from "node:https";
import type { AddressInfo } from "node:net";
import { Duplex } from "node:stream";
import { text } from "node:stream/consumers";
import { textAt } from "@fairlead/base";
import { type PodName, type PodProgram, type Refusal, selection, servePods } from "@fairlead/testkit/api-server";
import { execa } from "execa";
import { answerLines } from "../../support/script.ts";

/**
 * An API server whose nodes are namespaces, with the pods of their agents: it lists those, starts programs and reaches
 * ports in the namespaces, and gives every other request on to the real server. What the real one does not allow an
 * impersonated user is refused in its words, of pods as well. Arguments: the real one's URL, and as JSON the file of
 * each node's namespace. Its token is in FAIRLEAD_FRONT_TOKEN: a command line is what errors print. The first line
 * that it prints is its own URL.
 */
const [, , server = "", nodes = "{}"] = process.argv;
const { FAIRLEAD_FRONT_TOKEN: token = "" } = process.env;
const files: ReadonlyMap<string, string> = new Map(Object.entries(JSON.parse(nodes)));
const NAMESPACE = "kube-system";

const pods = [...files.keys()].map((nodeName) => ({
  metadata: {
    namespace: NAMESPACE,
    name: `fairlead-${nodeName}`,
    labels: { "app.kubernetes.io/name": "fairlead" },
  },
  spec: { nodeName, containers: [{ name: "fairlead" }] },
  status: { phase: "Running" },
}));

const PODS = new Set(["/api/v1/pods", `/api/v1/namespaces/${NAMESPACE}/pods`]);

const front = createServer((request, response) => {
  const { pathname, searchParams } = new URL(request.url ?? "/", "http://front");
  if (request.method !== "GET" || !PODS.has(pathname)) return void forward(request, response);
  void refusal(request).then((refused) => {
    const items = pods.filter(selection(searchParams));
    const list = { kind: "PodList", apiVersion: "v1", metadata: { resourceVersion: "1" }, items };
    response.writeHead(refused?.code ?? 200, { "content-type": "application/json" });
    response.end(JSON.stringify(refused === undefined ? list : { kind: "Status", status: "Failure", ...refused }));
  });
});
servePods(front, () => ({
  refuse: (_path, request) => refusal(request),
  exec: (pod, _container, argv) => inNamespace(pod, argv),
  connect: (pod, port) => {
    const { stdin, stdout } = inNamespace(pod, ["bash", "-c", PIPE, "bash", String(port)]);
    return Duplex.from({ readable: stdout, writable: stdin });
  },
}));
front.listen(0, "127.0.0.1", () => {
  // A listening TCP server has an AddressInfo.
  answerLines(() => "here", `http://127.0.0.1:${(front.address() as AddressInfo).port}`);
});

const PIPE = 'exec 3<>"/dev/tcp/127.0.0.1/$1" || exit 1; cat <&3 & cat >&3; wait';

function inNamespace({ name }: PodName, argv: readonly string[]): PodProgram {
  const file = files.get(name.replace(/^fairlead-/, "")) ?? "none";
  const env = { ...process.env, XTABLES_LOCKFILE: file };
  const options = { env, stdin: "pipe", buffer: false, reject: false } as const;
  const [program, ...args] = ["nsenter", `--net=${file}`, "--", ...argv] as const;
  const child = execa(program, args, options);
  const { stdin, stdout, stderr } = child;
  const exitCode = child.then(({ exitCode: code }) => code ?? 1);
  return { stdin, stdout, stderr, exitCode, kill: () => void child.kill("SIGKILL") };
}

/**
 * Why the real server would not do it; undefined: it would, or it is asked as its administrator. It decides before it
 * looks for the pod, which it does not know.
 */
function refusal(request: IncomingMessage): Promise<Refusal | undefined> {
  if (request.headers["impersonate-user"] === undefined) return Promise.resolve(undefined);
  return new Promise((resolve, reject) => {
    const sent = toServer(request, (answer) => {
      void text(answer).then((body) => {
        resolve(
          answer.statusCode === 403 ? { code: 403, message: textAt(JSON.parse(body), "message") ?? "" } : undefined,
        );
      }, reject);
    });
    sent.on("upgrade", (_answer, socket) => {
      socket.destroy();
      resolve(undefined);
    });
    sent.on("error", reject);
    sent.end();
  });
}

function forward(request: IncomingMessage, response: ServerResponse): void {
  const sent = toServer(request, (answer) => {
    response.writeHead(answer.statusCode ?? 502, answer.headers);
    answer.pipe(response);
    answer.on("error", () => response.destroy());
  });
  sent.on("error", () => response.destroy());
  response.on("close", () => sent.destroy());
  request.pipe(sent);
}

/** Clients are on the same machine, and in the same run of tests: the certificate is not checked. */
function toServer(request: IncomingMessage, answered: (answer: IncomingMessage) => void): ClientRequest {
  const { headersDistinct: headers, method = "GET", url = "/" } = request;
  const own = { authorization: `Bearer ${token}`, host: new URL(server).host };
  const send = server.startsWith("https:") ? overTls : overHttp;
  return send(new URL(url, server), { method, headers: { ...headers, ...own }, rejectUnauthorized: false }, answered);
}
