/** Programs in pods: exec, port-forward, and logs. */

import type { IncomingMessage, Server } from "node:http";
import { type Duplex, PassThrough, Readable, type Writable } from "node:stream";
import { type RawData, type WebSocket, WebSocketServer } from "ws";

export interface PodProgram {
  readonly stdin: Writable;
  readonly stdout: Readable;
  readonly stderr: Readable;
  readonly exitCode: Promise<number>;
  readonly kill: () => void;
}

export interface PodName {
  readonly namespace: string;
  readonly name: string;
}

/** What is behind the pods of an API server. A text is why it is not done, as the kubelet says it. */
export interface Pods {
  exec(pod: PodName, container: string, argv: readonly string[]): PodProgram | string;
  connect(pod: PodName, port: number): Duplex | string;
  /** Answers a request before it is taken: the code and the message of its Status. */
  readonly refuse?: (path: string, request: IncomingMessage) => Refusal | undefined | Promise<Refusal | undefined>;
  /** Sent first of all to a program's client: what no server should say. */
  readonly stray?: Buffer;
  /** Subprotocols that the server knows. Default: those of Kubernetes 1.30 and later. */
  readonly protocols?: readonly string[];
}

export interface Refusal {
  readonly code: number;
  readonly message: string;
}

const PROTOCOLS = ["v5.channel.k8s.io", "v4.channel.k8s.io"];
const PATH = /^\/api\/v1\/namespaces\/([^/]+)\/pods\/([^/]+)\/(exec|portforward)$/;

/**
 * Serves `pods/exec` and `pods/portforward` by WebSockets (`*.channel.k8s.io`), as an API server with its kubelets
 * does: each message begins with the number of its stream.
 *
 * @returns breaks off all that are open
 */
export function servePods(server: Server, pods: () => Pods | undefined): () => void {
  const sockets = new WebSocketServer({
    noServer: true,
    handleProtocols: (offered) => {
      const known = pods()?.protocols ?? PROTOCOLS;
      return known.find((one) => offered.has(one)) ?? false;
    },
  });
  const upgrade = async (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    const { pathname, searchParams } = new URL(request.url ?? "/", "http://fake");
    const [, namespace = "", name = "", verb] = PATH.exec(pathname) ?? [];
    const backend = pods();
    const refusal = await backend?.refuse?.(pathname, request);
    const missing = { code: 404, message: "the server could not find the requested resource" };
    const refused = refusal ?? (verb === undefined ? missing : undefined);
    if (backend === undefined || refused !== undefined) {
      refuse(socket, refused ?? missing);
      return;
    }
    sockets.handleUpgrade(request, socket, head, (client) => {
      if (verb === "exec") serveExec(client, backend, { namespace, name }, searchParams);
      else serveForward(client, backend, { namespace, name }, Number(searchParams.get("ports")));
    });
  };
  server.on("upgrade", (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    // A client that has gone needs no answer.
    socket.on("error", () => {});
    void upgrade(request, socket, head);
  });
  return () => {
    for (const client of sockets.clients) client.terminate();
  };
}

/** A program that prints this and ends; what it reads is given to `onInput` first, where that is there. */
export function printed(text: string, { exitCode = 0, stderr = "", onInput }: PrintedOptions = {}): PodProgram {
  const stdin = new PassThrough();
  async function* output(): AsyncGenerator<string, void, void> {
    const input = onInput === undefined ? "" : Buffer.concat(await stdin.toArray()).toString();
    yield onInput?.(input) ?? text;
  }
  return {
    stdin,
    stdout: Readable.from(output()),
    stderr: Readable.from([stderr]),
    exitCode: Promise.resolve(exitCode),
    kill: () => {},
  };
}

const CHANNEL = { stdin: 0, stdout: 1, stderr: 2, status: 3, close: 255 } as const;
const FORWARD = { data: 0, error: 1 } as const;

function refuse(socket: Duplex, { code, message }: Refusal): void {
  const body = JSON.stringify({ kind: "Status", status: "Failure", code, message });
  const head = [
    `HTTP/1.1 ${code} Refused`,
    "content-type: application/json",
    `content-length: ${body.length}`,
    "connection: close",
  ];
  socket.end(`${head.join("\r\n")}\r\n\r\n${body}`);
}

function serveExec(client: WebSocket, pods: Pods, pod: PodName, query: URLSearchParams): void {
  // As the kubelet says that it is connected.
  send(client, CHANNEL.stdout, "");
  if (pods.stray !== undefined) client.send(pods.stray);
  const program = pods.exec(pod, query.get("container") ?? "", query.getAll("command"));
  if (typeof program === "string") {
    end(client, { status: "Failure", reason: "InternalError", message: program });
    return;
  }
  const { stdin, stdout, stderr, exitCode, kill } = program;
  stdin.on("error", () => {});
  if (query.get("stdin") !== "true") stdin.end();
  client.on("message", (message: RawData) => {
    const bytes = bytesOf(message);
    if (bytes[0] === CHANNEL.stdin) stdin.write(bytes.subarray(1));
    if (bytes[0] === CHANNEL.close && bytes[1] === CHANNEL.stdin) stdin.end();
  });
  client.on("close", kill);
  const read = [
    drained(stdout, (piece) => send(client, CHANNEL.stdout, piece)),
    drained(stderr, (piece) => send(client, CHANNEL.stderr, piece)),
  ];
  void Promise.all(read)
    .then(() => exitCode)
    .then((code) => end(client, exitStatus(code)));
}

/** As remotecommand's, of k8s.io/apimachinery. */
function exitStatus(code: number): object {
  if (code === 0) return { status: "Success" };
  const causes = [{ reason: "ExitCode", message: String(code) }];
  const message = `command terminated with non-zero exit code: exit status ${code}`;
  return { status: "Failure", reason: "NonZeroExitCode", message, details: { causes } };
}

function end(client: WebSocket, status: object): void {
  send(client, CHANNEL.status, JSON.stringify({ metadata: {}, ...status }));
  client.close(1000);
}

function serveForward(client: WebSocket, pods: Pods, pod: PodName, port: number): void {
  const number = Buffer.from([port & 0xff, port >> 8]);
  for (const stream of [FORWARD.data, FORWARD.error]) send(client, stream, number);
  const connected = pods.connect(pod, port);
  if (typeof connected === "string") {
    send(client, FORWARD.error, connected);
    client.close(1000);
    return;
  }
  client.on("message", (message: RawData) => connected.write(bytesOf(message).subarray(1)));
  client.on("close", () => connected.destroy());
  connected.on("error", () => client.close(1000));
  void drained(connected, (piece) => send(client, FORWARD.data, piece)).then(() => client.close(1000));
}

async function drained(stream: Readable, give: (piece: Buffer | string) => void): Promise<void> {
  try {
    for await (const piece of stream) give(piece);
  } catch {
    // It broke off: what came before was given.
  }
}

function bytesOf(message: RawData): Buffer {
  return Buffer.isBuffer(message) ? message : Buffer.concat([message].flat().map((one) => Buffer.from(one as never)));
}

function send(client: WebSocket, stream: number, piece: Buffer | string): void {
  if (client.readyState === client.OPEN) client.send(Buffer.concat([Buffer.from([stream]), Buffer.from(piece)]));
}

interface PrintedOptions {
  readonly exitCode?: number;
  readonly stderr?: string;
  /** What is printed in the place of the text, by what came in until the end of standard input. */
  readonly onInput?: (input: string) => string;
}
