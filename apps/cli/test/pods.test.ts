import { once } from "node:events";
import { createServer } from "node:http";
import { type AddressInfo, connect, createServer as createTcpServer } from "node:net";
import { PassThrough } from "node:stream";
import { CommandError, type Runner } from "@fairlead/kernel";
import { LightApiServer, type PodProgram, type Pods, printed } from "@fairlead/testkit/api-server";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Cluster } from "../src/cluster/cluster.ts";
import { httpOver } from "../src/cluster/pods.ts";
import { runnerInPod } from "../src/node/agent-pods.ts";
import { Kubeconfigs } from "./support/files.ts";
import { notFound } from "./support/node-cluster.ts";

const POD = { namespace: "kube-system", name: "fairlead-x", container: "fairlead" };

let api: LightApiServer;
const files = new Kubeconfigs();
let cluster: Cluster;
let pod: Runner;

beforeEach(async () => {
  api = new LightApiServer();
  const server = await api.start();
  cluster = files.cluster({ KUBECONFIG: files.write("c", { server }, {}) });
  pod = cluster.runner(POD);
});
afterEach(() => api.stop());

function serve(exec: Pods["exec"], more: Partial<Pods> = {}): void {
  api.pods = { exec, connect: () => "nothing listens there", ...more };
}

/** A program that runs until it is killed. */
function endless(): PodProgram & { readonly killed: Promise<void>; readonly stdout: PassThrough } {
  const stdout = new PassThrough();
  const { promise, resolve } = Promise.withResolvers<void>();
  const exited = Promise.withResolvers<number>();
  const kill = () => {
    resolve();
    stdout.end();
    exited.resolve(137);
  };
  const [stdin, stderr] = [new PassThrough(), new PassThrough().end()];
  return { stdin, stdout, stderr, exitCode: exited.promise, kill, killed: promise };
}

const failure = async (running: Promise<unknown>): Promise<CommandError> => {
  const error = await running.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  if (error instanceof CommandError) return error;
  throw error ?? new Error("it did not fail");
};

describe("a program in a pod", () => {
  test("is the container's, with its arguments, and gives what it prints", async () => {
    const seen: unknown[] = [];
    serve((...call): PodProgram => {
      seen.push(call);
      return printed("größer\n", { stderr: "a warning" });
    });
    expect(await pod.run(["ip", "-json", "a b&c"])).toEqual({ stdout: "größer\n", stderr: "a warning" });
    expect(seen).toEqual([[{ namespace: "kube-system", name: "fairlead-x" }, "fairlead", ["ip", "-json", "a b&c"]]]);
  });

  test("gets its input whole, and its end", async () => {
    serve(() => printed("", { onInput: (input) => `${input.length} ${input.slice(-3)}` }));
    const input = `${"x".repeat(100_000)}end`;
    expect((await pod.run(["ip", "-batch", "-"], { input })).stdout).toBe("100003 end");
  });

  test("a large listing comes whole, and not more of it than was asked for", async () => {
    const listing = "-A KUBE-SERVICES\n".repeat(200_000);
    serve(() => printed(listing));
    expect((await pod.run(["iptables-save"])).stdout).toBe(listing);
    expect(await failure(pod.run(["iptables-save"], { maxStdout: 1_000 }))).toMatchObject({ reason: "output" });
  });

  test.each<[string, () => PodProgram | string, object]>([
    [
      "another exit code, with what was printed before,",
      () => printed("half", { exitCode: 2, stderr: "bad rule" }),
      { reason: "exit", exitCode: 2, stdout: "half", stderr: "bad rule" },
    ],
    ["a program that there is not", () => notFound(["nft"]), { reason: "not-found" }],
    [
      "a shell's word for that",
      () => printed("", { exitCode: 127, stderr: "No such file or directory" }),
      { reason: "not-found" },
    ],
    ["what the kubelet cannot do", () => "container not running", { reason: "start" }],
  ])("%s is an error of its own", async (_what, program, wanted) => {
    serve(program);
    expect(await failure(pod.run(["nft", "list"]))).toMatchObject(wanted);
  });

  test("what an image without coreutils lacks, its own fairlead prints; with neither it is not there", async () => {
    const inPod = runnerInPod(cluster, POD);
    serve((_pod, _container, argv) => (argv[0] === "fairlead" ? printed(argv.join(" ")) : notFound(argv)));
    expect((await inPod.run(["cat", "/proc/uptime"])).stdout).toBe("fairlead __coreutils cat /proc/uptime");
    expect(await failure(inPod.run(["nft", "list"]))).toMatchObject({ reason: "not-found" });
    serve((_pod, _container, argv) =>
      argv[0] === "fairlead" ? printed("", { exitCode: 1, stderr: "cat: EACCES" }) : notFound(argv),
    );
    expect(await failure(inPod.run(["cat", "/x"]))).toMatchObject({ reason: "exit", stderr: "cat: EACCES" });
    serve((_pod, _container, argv) => notFound(argv));
    expect(await failure(inPod.run(["cat", "/x"]))).toMatchObject({ reason: "not-found", argv: ["cat", "/x"] });
  });

  test("a connection that breaks off is an error, not an end", async () => {
    const program = endless();
    serve(() => program);
    const running = failure(pod.run(["conntrack", "-L"]));
    program.stdout.write("a line\n");
    await api.requestsCame(1);
    api.cutPods();
    expect(await running).toMatchObject({ reason: "start", message: expect.stringContaining("connection broke off") });
  });

  test("ends with its time, with its signal, and when its reader stops", async () => {
    const programs = [endless(), endless(), endless()];
    const [late, aborted, left] = programs;
    const queue = [...programs];
    serve(() => queue.shift() ?? "no more");
    expect(await failure(pod.run(["tail"], { timeoutMs: 1 }))).toMatchObject({ reason: "timeout" });
    await late?.killed;
    const stop = new AbortController();
    const running = failure(pod.run(["tail"], { signal: stop.signal }));
    stop.abort();
    expect(await running).toMatchObject({ reason: "aborted" });
    await aborted?.killed;
    left?.stdout.write("an event\n");
    for await (const piece of pod.stream(["conntrack", "-E"], { timeoutMs: 0 })) {
      expect(piece).toBe("an event\n");
      break;
    }
    await left?.killed;
  });

  test("a stream gives pieces as they come, and its failure after the last", async () => {
    serve(() => printed("one\ntwo\n", { exitCode: 3, stderr: "late" }));
    const pieces: string[] = [];
    const read = async () => {
      for await (const piece of pod.stream(["conntrack", "-E"])) pieces.push(piece);
    };
    expect(await failure(read())).toMatchObject({ reason: "exit", exitCode: 3 });
    expect(pieces.join("")).toBe("one\ntwo\n");
  });

  test("a user without the right to start one gets the API server's words", async () => {
    const message = 'pods "fairlead-x" is forbidden: User "eve" cannot create resource "pods/exec"';
    serve(() => printed(""), { refuse: () => ({ code: 403, message }) });
    await expect(pod.run(["ip"])).rejects.toThrow(
      /^the API server http:\S+ answers 403: pods "fairlead-x" is forbidden/,
    );
  });

  test("older servers cannot end its input: only a program without input runs", async () => {
    serve(() => printed("x"), { protocols: ["v4.channel.k8s.io"] });
    expect((await pod.run(["ip"])).stdout).toBe("x");
    await expect(pod.run(["ip"], { input: "x" })).rejects.toThrow(/takes an API server of Kubernetes 1\.30/);
  });
});

test("a message that belongs to no stream ends the program with an error", async () => {
  const program = endless();
  serve(() => program, { stray: Buffer.from([9, 1, 2]) });
  expect(await failure(pod.run(["ip"]))).toMatchObject({ reason: "start" });
  await program.killed;
});

describe("a port of a pod", () => {
  const get = async (port: number) => {
    const connection = await cluster.connect(POD, port);
    try {
      return await httpOver(connection, { path: "/livez", timeoutMs: 60_000 });
    } finally {
      connection.destroy();
    }
  };

  test("answers as if it were here", async () => {
    const agent = createServer(({ url, method, headers }, response) => {
      response.writeHead(503);
      response.end(`${method} ${url} of ${headers.host} ${"x".repeat(300_000)}`);
    });
    await new Promise<void>((resolve) => agent.listen(0, "127.0.0.1", resolve));
    const ports: number[] = [];
    serve(() => "none", {
      connect: (_pod, port) => {
        ports.push(port);
        return connect((agent.address() as AddressInfo).port, "127.0.0.1");
      },
    });
    const answer = await get(10_256);
    expect(answer).toMatchObject({
      status: 503,
      text: expect.stringMatching(/^GET \/livez of 127\.0\.0\.1 x{300000}$/),
    });
    expect(ports).toEqual([10_256]);
    agent.close();
  });

  test("where nothing listens says so in the kubelet's words", async () => {
    serve(() => "none", { connect: () => "error forwarding port 10249 to pod x: connection refused" });
    await expect(get(10_249)).rejects.toThrow("error forwarding port 10249 to pod x: connection refused");
  });

  test("that hangs up without an answer is an error", async () => {
    const rude = createTcpServer((socket) => socket.destroy());
    await new Promise<void>((resolve) => rude.listen(0, "127.0.0.1", resolve));
    serve(() => "none", { connect: () => connect((rude.address() as AddressInfo).port, "127.0.0.1") });
    await expect(get(10_249)).rejects.toThrow();
    rude.close();
    await once(rude, "close");
  });

  test("is closed with its connection", async () => {
    const far = new PassThrough();
    serve(() => "none", { connect: () => far });
    const closed = once(far, "close");
    const connection = await cluster.connect(POD, 1);
    connection.destroy();
    await closed;
  });
});
