import { once } from "node:events";
import { copyFile, readdir, readFile, readlink, rename, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { join } from "node:path";
import { follow, until } from "@fairlead/base/testing";
import { CommandError, createRunner, lines as linesOf } from "@fairlead/kernel";
import { endpointSlice, service } from "@fairlead/testkit";
import { LightApiServer, tlsFolder } from "@fairlead/testkit/api-server";
import { AGENT_NODE_OPTIONS } from "@fairlead/tooling/agent-node";
import { beforeAll, describe, expect, test } from "vitest";
import { BUNDLE, emptyFolder, onLocalPorts, started } from "./support/bundle.ts";
import { kubeconfigOf } from "./support/fake-node.ts";
import { freePort } from "./support/http.ts";

/** The bundle in a folder of its own: nothing but Node alongside it. */
let dir = "";
const bundle = () => join(dir, "main.js");

beforeAll(async () => {
  dir = await emptyFolder();
  await copyFile(BUNDLE, bundle());
});

/** In the machine's own network namespace: what begins to serve is given `onLocalPorts`, and so writes no rule. */
async function proxy(...args: string[]) {
  try {
    const { stdout, stderr } = await createRunner({ timeoutMs: 0 }).run([process.execPath, bundle(), ...args]);
    return { code: 0, out: stdout, err: stderr };
  } catch (error) {
    if (!(error instanceof CommandError) || error.exitCode === undefined) throw error;
    return { code: error.exitCode, out: "", err: error.stderr };
  }
}

describe("the bundle", () => {
  test("its text takes one byte a letter in memory, and nothing of it has Node load its HTTP client", async () => {
    const text = await readFile(bundle(), "utf8");
    // biome-ignore lint/suspicious/noControlCharactersInRegex: all of ASCII is meant.
    expect(/[^\x00-\x7f]/.exec(text)?.[0]).toBeUndefined();
    expect(text).not.toMatch(/from\s*"(?:node:)?http"/);
  });

  test("nothing of the Kubernetes client library is in it", async () => {
    expect(await readFile(bundle(), "utf8")).not.toContain("kubernetes-client-javascript");
  });

  test("nothing of Windows is in it, and nothing of Linux' modes in that for Windows", async () => {
    const windows = await readFile(join(import.meta.dirname, "..", "dist/windows/main.js"), "utf8");
    const linux = await readFile(bundle(), "utf8");
    expect([linux, windows].map((text) => text.includes("HcnCreateLoadBalancer"))).toEqual([false, true]);
    expect([linux, windows].map((text) => text.includes("iptables-restore"))).toEqual([true, false]);
  });

  test("its first line is for any Node and any env, and the inspector's signal is taken at once", async () => {
    const lines = (await readFile(bundle(), "utf8")).split("\n").slice(0, 4);
    expect(lines[0]).toBe("#!/usr/bin/env node");
    expect(lines[3]).toMatch(/^process\.on\("SIGUSR1"/);
  });

  test("--version", async () => {
    const { version } = JSON.parse(await readFile(join(import.meta.dirname, "..", "package.json"), "utf8"));
    expect(await proxy("--version")).toEqual({ code: 0, out: `Fairlead v${version}\n`, err: "" });
  });

  test("--help names its flags", async () => {
    const { code, out } = await proxy("--help");
    expect(code).toBe(0);
    for (const flag of ["--config", "--exclude-cluster-cidr", "--manifests", "--proxy-mode", "--cleanup"]) {
      expect(out).toContain(flag);
    }
  });

  test("an unknown flag is exit 2 and usage", async () => {
    const { code, err } = await proxy("--clusterr-cidr=10.0.0.0/8");
    expect(code).toBe(2);
    expect(err).toMatch(/unknown flag.*--clusterr-cidr/);
    expect(err).toContain("Usage: fairlead-proxy [flags]");
  });

  test.each([
    [
      "host bits",
      ["--exclude-cluster-cidr=10.244.1.0/16"],
      /^--exclude-cluster-cidr=10\.244\.1\.0\/16: .*10\.244\.0\.0\/16$/,
    ],
    [
      "manifests that are a device",
      ["--manifests=/dev/zero"],
      /^--manifests=\/dev\/zero: is neither a file nor a folder$/,
    ],
    ["no kubeconfig", ["--kubeconfig=/does/not/exist"], /\/does\/not\/exist/],
  ])("%s is exit 1 and says what would be right", async (_what, flags, message) => {
    const { code, err } = await proxy(...onLocalPorts("/does/not/exist"), ...flags, ...withoutManifests(flags));
    expect(err.split("\n").filter((line) => message.test(line))).toHaveLength(1);
    expect(code).toBe(1);
  });

  test("a kubeconfig that starts programs is refused, unless that is allowed", async () => {
    const exec = { apiVersion: "client.authentication.k8s.io/v1", command: "/does/not/exist" };
    const kubeconfig = kubeconfigOf({ server: "https://192.0.2.1:6443" }, { exec });
    await writeFile(join(dir, "kubeconfig"), kubeconfig);
    const { code, err } = await proxy(...onLocalPorts(""), `--kubeconfig=${join(dir, "kubeconfig")}`);
    expect(err).toMatch(/users\[\]\.user\.exec .* --allow-exec-credentials allows/);
    expect(code).toBe(1);
  });
});

/** An empty --manifests takes the one before it back, where the API server is what is tested. */
function withoutManifests(flags: readonly string[]): string[] {
  return flags.some((flag) => flag.startsWith("--kubeconfig")) ? ["--manifests="] : [];
}

/** Without endpoints the agent reports it and opens nothing. */
const WEB = service("web", { clusterIPs: ["10.96.0.10"], ports: [{ name: "http", port: 80 }] });

// Node's inspector runs the code of any client that reaches 127.0.0.1: never in this process.

/** Sockets of a process that listen, by their inodes. */
async function listening(pid: number): Promise<readonly string[]> {
  const files = await readdir(`/proc/${pid}/fd`);
  const links = await Promise.all(files.map((file) => readlink(`/proc/${pid}/fd/${file}`).catch(() => "")));
  const tables = await Promise.all(["tcp", "tcp6"].map((table) => readFile(`/proc/${pid}/net/${table}`, "utf8")));
  // sl, local address, remote address, state (0A: LISTEN), …, inode
  const inodes = [...tables.join("\n").matchAll(/^ *\d+: \S+ \S+ 0A \S+ \S+ \S+ +\d+ +\d+ (\d+)/gm)];
  return inodes.flatMap(([, inode = ""]) => (links.includes(`socket:[${inode}]`) ? [inode] : []));
}

test.each([
  ["as the image starts it", AGENT_NODE_OPTIONS],
  ["by node with nothing said", []],
])("SIGUSR1 opens no inspector: %s", async (_how, options) => {
  const dir = await emptyFolder();
  // Should it open after all, it takes no port that another test listens on.
  const node = [process.execPath, "--inspect-port=0", ...options] as const;
  const said: string[] = [];
  let before: readonly string[] = [];
  for await (const line of started(...node, BUNDLE, ...onLocalPorts(dir))) {
    said.push(line);
    const pid = Number(said[0]);
    if (line.startsWith("SERVICE") && before.length === 0) {
      before = await listening(pid);
      process.kill(pid, "SIGUSR1");
      // It goes on, and has had the signal when it reports what came after it.
      await writeFile(join(dir, "web.json"), JSON.stringify(WEB));
    }
    if (!line.startsWith("default/web")) continue;
    expect(await listening(pid)).toEqual(before);
    process.kill(pid, "SIGTERM");
  }
  expect(said.join("\n")).not.toContain("Debugger");
  expect(said.join("\n")).toContain("default/web");
});

test.each([
  ["an option", ["--inspect=127.0.0.1:0"], {}, "--inspect=127.0.0.1:0"],
  ["the environment", [], { NODE_OPTIONS: "--no-warnings --inspect=0" }, "NODE_OPTIONS=--no-warnings --inspect=0"],
] as const)("an inspector that is asked for by %s is refused", async (_by, options, env, named) => {
  const dir = await emptyFolder();
  const ended = createRunner({ env, timeoutMs: 0 }).run([process.execPath, ...options, BUNDLE, ...onLocalPorts(dir)]);
  const error = await ended.catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(CommandError);
  expect(error).toMatchObject({ exitCode: 1, stderr: expect.stringContaining(`${named}: `) });
});

/** Planted in the agent's memory: a reader of it has the agent's rights in the cluster. */
const TOKEN = "planted-bearer-token-5f1c";

const METRICS = [
  "/healthz?verbose",
  "/healthz/ping",
  "/metrics",
  "/metrics/slis",
  "/proxyMode",
  "/configz",
  "/ownership",
  "/relays",
  "/statusz",
  "/flagz",
  "/debug/pprof/",
  "/debug/pprof/profile?seconds=0.1",
  "/debug/pprof/heap",
];
const HEALTH = ["/healthz", "/livez"];

test("nothing that the agent serves over HTTP holds the bearer token", async ({ signal }) => {
  const dir = await emptyFolder();
  const [metrics, health] = [await freePort(), await freePort()];
  const read = (name: string) => readFile(join(tlsFolder, name), "utf8");
  const api = new LightApiServer({ key: await read("server-key.pem"), cert: await read("server.pem") });
  api.token = TOKEN;
  const server = { server: await api.start(), "insecure-skip-tls-verify": true };
  await writeFile(join(dir, "kubeconfig"), kubeconfigOf(server, { token: TOKEN }));
  const flags = [
    ...[...onLocalPorts("", join(dir, "state")), "-v=2", "--profiling"],
    `--kubeconfig=${join(dir, "kubeconfig")}`,
    `--metrics-bind-address=127.0.0.1:${metrics}`,
    `--healthz-bind-address=127.0.0.1:${health}`,
    "--feature-gates=ComponentStatusz=true,ComponentFlagz=true",
  ];
  const asked = new Map<string, string>();
  const log: string[] = [];
  for await (const line of started(process.execPath, BUNDLE, ...flags)) {
    log.push(line);
    if (log.filter((one) => one.includes('"Listening"')).length < 2 || asked.size > 0) continue;
    // From now on the token is on its way in each of the requests that stay open.
    await until(signal, () => api.openWatches > 0);
    for (const [port, paths] of [
      [metrics, METRICS],
      [health, HEALTH],
    ] as const) {
      for (const path of paths) {
        const url = `http://127.0.0.1:${port}${path}`;
        asked.set(url, await (await fetch(url)).text());
      }
    }
    process.kill(Number(log[0]), "SIGTERM");
  }
  await api.stop();
  expect([...asked].filter(([, body]) => body.includes(TOKEN)).map(([url]) => url)).toEqual([]);
  expect(asked.size, log.join("\n")).toBe(METRICS.length + HEALTH.length);
  // An endpoint that comes later is to be asked as well.
  const listed = /^Paths: (.*)$/m.exec(asked.get(`http://127.0.0.1:${metrics}/statusz`) ?? "")?.[1]?.split(" ") ?? [];
  expect(listed.length).toBeGreaterThan(5);
  for (const folder of listed) expect(METRICS.map((path) => `/${path.split(/[/?]/)[1]}`)).toContain(folder);
});

test("--userspace-only serves a manifest's services on local ports, says where, and follows changes", async ({
  signal,
}) => {
  const dir = await emptyFolder();
  await using opened = new AsyncDisposableStack();
  const pods = [await pod(opened, "a"), await pod(opened, "b")];
  const manifest = join(dir, "objects.json");
  // In one go: of a file that is being written the agent may read that there is nothing in it.
  const write = async (ports: readonly number[]) => {
    await writeFile(`${manifest}.next`, JSON.stringify(list(ports)));
    await rename(`${manifest}.next`, manifest);
  };
  await write(pods.slice(0, 1));
  const lines = opened.use(
    follow(signal, (stop) =>
      linesOf(
        createRunner().stream([process.execPath, BUNDLE, ...onLocalPorts(manifest, dir)], {
          timeoutMs: 0,
          signal: stop,
        }),
      ),
    ),
  );

  const row = await lines.until((seen) => seen.find((line) => line.startsWith("default/web")));
  expect(lines.seen[0]).toMatch(/^SERVICE +PROTOCOL +LOCAL ADDRESS$/);
  expect(row).toMatch(/^default\/web:http +TCP +127\.0\.0\.1:\d+$/);
  const first = `http://${row.split(/ +/)[2]}`;
  expect(await answers(first, 4)).toEqual(new Set(["a"]));
  await write(pods);
  await until(signal, async () => (await answers(first, 4)).size === 2);
  await write([]);
  await lines.until((seen) => seen.some((line) => /^default\/web.*none: no endpoints$/.test(line)));
  const asked = () =>
    fetch(first).then(
      () => "answered",
      ({ message }: Error) => message,
    );
  await expect.poll(asked).toBe("fetch failed");
});

/** @param ports of pods on 127.0.0.1; a slice has one port */
function list(ports: readonly number[]) {
  const slices = ports.map((port) =>
    endpointSlice(`web-${port}`, {
      service: "web",
      family: "IPv4",
      ports: [{ name: "http", port }],
      endpoints: [{ address: "127.0.0.1" }],
    }),
  );
  return { apiVersion: "v1", kind: "List", items: [WEB, ...slices] };
}

async function pod(opened: AsyncDisposableStack, name: string): Promise<number> {
  const server = createServer((_, response) => response.end(name));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  opened.defer(() => void server.close());
  const bound = server.address();
  if (bound === null || typeof bound === "string") throw new Error("no port");
  return bound.port;
}

async function answers(url: string, count: number): Promise<ReadonlySet<string>> {
  const found = new Set<string>();
  for (let request = 0; request < count; request++) {
    const response = await fetch(url, { headers: { connection: "close" } });
    found.add(await response.text());
  }
  return found;
}
