import { readFile, writeFile } from "node:fs/promises";
import { createServer as createHttpServer, type IncomingMessage } from "node:http";
import { connect } from "node:net";
import { join } from "node:path";
import type { Duplex } from "node:stream";
import { systemClock } from "@fairlead/base";
import { VirtualClock } from "@fairlead/base/testing";
import { expect, test } from "vitest";
import { httpTransport } from "../src/api/http.ts";
import { type ConnectionOptions, loadConnection, postObject } from "../src/index.ts";
import { base64, endAfterEach, fakeApi, httpsServer, kubeconfig, later, listening } from "./support/fake-api.ts";

endAfterEach();

async function loaded(file: string, options: Partial<ConnectionOptions> = {}) {
  const warnings: string[] = [];
  const connection = await loadConnection({
    kubeconfig: file,
    onWarning: (text) => warnings.push(text),
    ...options,
  });
  return { connection, warnings };
}

const USERS: readonly [string, object][] = [
  ["token", { token: "secret" }],
  ["tokenFile", { tokenFile: "/nonexistent" }],
  ["basic auth", { username: "u", password: "secret" }],
  ["exec", { exec: { apiVersion: "client.authentication.k8s.io/v1", command: "/nonexistent" } }],
];

test.each(USERS)("plain HTTP: no %s leaves, and it is said", async (_what, user) => {
  const { api, server } = await fakeApi();
  const file = await kubeconfig({ server }, { ...user, as: "other" });
  const { connection, warnings } = await loaded(file, { allowExecCredentials: true });
  expect(warnings).toEqual([`${file}: the user's credentials are not sent to ${server}: that is not https`]);
  await httpTransport(connection, "x", systemClock)({ path: "/version", signal: new AbortController().signal });
  await postObject(connection, "/api/v1/namespaces/default/events", {}, "x");
  expect(api.requests.map(({ headers }) => headers.authorization)).toEqual([undefined, undefined]);
  expect(api.requests[0]?.headers["impersonate-user"]).toBe("other");
});

test("plain HTTP: a token that the caller gives does not leave either", async () => {
  const { api, server } = await fakeApi();
  const connection = { server, credentials: async () => ({ headers: { Authorization: "Bearer t" }, tls: {} }) };
  await postObject(connection, "/x", {}, "x");
  expect(api.requests[0]?.headers.authorization).toBeUndefined();
});

test("--master with http takes the credentials from a kubeconfig with https", async () => {
  const file = await kubeconfig({ server: "https://192.0.2.1" }, { token: "secret" });
  const { connection, warnings } = await loaded(file, { master: "http://192.0.2.1:8080" });
  expect((await connection.credentials()).headers).toEqual({});
  expect(warnings).toHaveLength(1);
});

test("insecure-skip-tls-verify warns; with a CA it is refused, as by client-go", async () => {
  const cluster = { server: "https://192.0.2.1:6443", "insecure-skip-tls-verify": true };
  const { warnings } = await loaded(await kubeconfig(cluster, { token: "t" }));
  expect(warnings).toEqual([
    expect.stringMatching(/insecure-skip-tls-verify is true: an attacker on the way to https:/),
  ]);
  for (const ca of [{ "certificate-authority": "ca.crt" }, { "certificate-authority-data": "eA==" }]) {
    const file = await kubeconfig({ ...cluster, ...ca }, {});
    await expect(loadConnection({ kubeconfig: file })).rejects.toThrow(
      `${file}: insecure-skip-tls-verify is true and ${Object.keys(ca)[0]} is set: remove one of them`,
    );
  }
});

/** A proxy that tunnels, or refuses with `status`. */
async function proxy(status?: string): Promise<{ url: string; asked: string[] }> {
  const asked: string[] = [];
  const server = createHttpServer();
  server.on("connect", ({ url = "", headers }: IncomingMessage, socket: Duplex) => {
    asked.push(`${url} ${headers["proxy-authorization"]}`);
    if (status !== undefined) return void socket.end(`HTTP/1.1 ${status}\r\n\r\n`);
    const to = connect(Number(url.split(":")[1]), "127.0.0.1", () => {
      socket.write("HTTP/1.1 200 OK\r\n\r\n");
      to.pipe(socket).pipe(to);
    });
    later(async () => void to.destroy());
  });
  const port = await listening(server);
  return { url: `http://user:s3cret@127.0.0.1:${port}`, asked };
}

test("Events go through proxy-url as watches do", async () => {
  const port = await httpsServer();
  const { url, asked } = await proxy();
  const ca = { "certificate-authority-data": await base64("ca.pem") };
  const file = await kubeconfig({ server: `https://127.0.0.1:${port}`, ...ca, "proxy-url": url }, { token: "t" });
  const { connection, warnings } = await loaded(file);
  expect(await postObject(connection, "/api/v1/namespaces/default/events", { kind: "Event" }, "x")).toBe(200);
  const credentials = `Basic ${Buffer.from("user:s3cret").toString("base64")}`;
  expect(asked).toEqual([`127.0.0.1:${port} ${credentials}`]);
  expect(warnings).toEqual([]);
});

test.each([
  ["refuses", async () => (await proxy("407 Proxy Authentication Required")).url],
  ["isn't there", async () => "http://user:s3cret@127.0.0.1:1"],
])("a proxy that %s is named without its password", async (_what, proxyUrl) => {
  const file = await kubeconfig({ server: "https://127.0.0.1:1", "proxy-url": await proxyUrl() }, {});
  const { connection } = await loaded(file);
  const signal = new AbortController().signal;
  const failures = [
    await postObject(connection, "/x", {}, "x").catch(String),
    await httpTransport(connection, "x", systemClock)({ path: "/", signal }).catch(String),
  ];
  for (const failure of failures) {
    expect(failure).toMatch(/Error/);
    expect(failure).not.toContain("s3cret");
  }
});

test.each([
  ["--master", { master: "ftp://u:s3cret@host" }, {}],
  ["--master without a scheme", { master: "u:s3/cret@host:x" }, {}],
  ["server", {}, { server: "ftp://u:s3cret@host" }],
  ["proxy-url", {}, { server: "https://x", "proxy-url": "socks5://u:s3cret@host" }],
  ["proxy-url that is no URL", {}, { server: "https://x", "proxy-url": "http://u:s3/cret@host" }],
])("a wrong URL in %s is reported without its password", async (_what, options, cluster) => {
  const file = await kubeconfig({ server: "https://x", ...cluster }, {});
  const failure = await loadConnection({ kubeconfig: file, ...options }).catch(String);
  expect(failure).toMatch(/xxxxx@host/);
  expect(failure).not.toMatch(/s3|cret/);
});

test("a user in the server's URL is not used, and it is said without the password", async () => {
  const file = await kubeconfig({ server: "https://u:s3cret@192.0.2.1" }, {});
  const { connection, warnings } = await loaded(file);
  expect(connection.server).toBe("https://192.0.2.1");
  expect(warnings).toEqual([expect.stringMatching(/server https:\/\/xxxxx@192.0.2.1: the user in the URL is ignored/)]);
});

/** A kubeconfig whose credentials come from this shell script. */
async function withProgram(script: string) {
  const exec = { apiVersion: "client.authentication.k8s.io/v1", command: "./login" };
  const file = await kubeconfig({ server: "https://x" }, { exec });
  const program = join(file, "..", "login");
  await writeFile(program, `#!/bin/sh\n${script}\n`, { mode: 0o755 });
  const clock = new VirtualClock();
  return { file, program, clock, ...(await loaded(file, { allowExecCredentials: true, clock })) };
}

test("what a credential plugin says is quoted, escaped and cut", async () => {
  const { connection, file, program } = await withProgram(
    `printf 'no \\033[31msession\\n\\342\\200\\256http://u:s3cret@idp ' >&2; head -c 9000 /dev/zero | tr '\\0' x >&2; exit 3`,
  );
  const failure = await connection.credentials().catch((error: Error) => error.message);
  expect(failure).toMatch(/x" \(cut\)$/);
  const said = '"no \\u001b[31msession\\n\\u202ehttp://xxxxx@idp xxx';
  expect(failure).toContain(`${file}: users[].user.exec: ${program} exited with code 3 and printed ${said}`);
  expect(failure).not.toContain("s3cret");
  expect(String(failure).length).toBeLessThan(900);
});

test("a credential plugin that hangs is named after 10 s and ended with all that it started after 60 s", async () => {
  const { connection, clock, warnings, file, program } = await withProgram(
    'sleep 600 & echo "$! $$" > pids.tmp; mv pids.tmp pids; echo waiting >&2; wait'.replaceAll(
      "pids",
      '"$(dirname "$0")/pids"',
    ),
  );
  const failure = connection.credentials().catch((error: Error) => error.message);
  const pids = await firstContent(join(file, "..", "pids"));
  clock.advanceNow(10_000);
  expect(warnings).toEqual([
    `${file}: users[].user.exec: ${program} has been running for 10 s; ` +
      "requests to the API server wait for it, and it is killed after 60 s",
  ]);
  clock.advanceNow(50_000);
  expect(await failure).toMatch(/login did not exit within 60 s and was killed/);
  for (const pid of pids.trim().split(" ")) await gone(Number(pid));
});

test.each([
  ["no JSON", "echo token=s3cret", /did not write an ExecCredential/],
  ["too much", "head -c 3000000 /dev/zero", /wrote more than 1048576 bytes and was killed/],
  ["no credential", `echo '{"kind":"ExecCredential","status":{}}'`, /neither a token nor a certificate/],
  ["half a pair", `echo '{"kind":"ExecCredential","status":{"clientCertificateData":"x"}}'`, /both are required/],
  [
    "another version",
    `echo '{"kind":"ExecCredential","apiVersion":"v0","status":{"token":"s3cret"}}'`,
    /of v0, expected /,
  ],
  ["nothing, as it asks for a password", "read x || exit 7", /exited with code 7/],
])("a credential plugin that gives %s", async (_what, script, error) => {
  const { connection } = await withProgram(script);
  const failure = await connection.credentials().catch(String);
  expect(failure).toMatch(error);
  expect(failure).not.toContain("s3cret");
});

test("a credential plugin that isn't there, or has no command", async () => {
  const apiVersion = "client.authentication.k8s.io/v1";
  const missing = await kubeconfig({ server: "https://x" }, { exec: { apiVersion, command: "./none" } });
  const { connection } = await loaded(missing, { allowExecCredentials: true });
  await expect(connection.credentials()).rejects.toThrow(/users\[\]\.user\.exec: .*none failed to start: .*ENOENT/);
  const without = await kubeconfig({ server: "https://x" }, { exec: { apiVersion } });
  await expect(loaded(without, { allowExecCredentials: true })).rejects.toThrow(
    `${without}: users[].user.exec has no command`,
  );
});

test("a kubeconfig of aliases without end is refused by name", async () => {
  const file = await kubeconfig({ server: "https://x" }, {});
  await writeFile(file, `a: &a [x]\nb: &b [${"*a,".repeat(60)}]\nc: [${"*b,".repeat(60)}]\n`);
  await expect(loadConnection({ kubeconfig: file })).rejects.toThrow(`${file} is not YAML: `);
});

/** Waits for a file that another process moves into place. */
async function firstContent(file: string): Promise<string> {
  for (;;) {
    const content = await readFile(file, "utf8").catch(() => undefined);
    if (content !== undefined) return content;
    await turn();
  }
}

async function gone(pid: number): Promise<void> {
  for (;;) {
    const state = await readFile(`/proc/${pid}/stat`, "utf8").catch(() => undefined);
    // In a container no process may wait for an orphan: then a zombie of it stays.
    if (state === undefined || / Z /.test(state)) return;
    await turn();
  }
}

function turn(): Promise<void> {
  return new Promise((resolve) => void setImmediate(resolve));
}
