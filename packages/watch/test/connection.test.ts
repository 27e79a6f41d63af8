import { mkdir, readFile, writeFile } from "node:fs/promises";
import { createServer as createHttpServer } from "node:http";
import { join } from "node:path";
import { systemClock } from "@fairlead/base";
import { VirtualClock } from "@fairlead/base/testing";
import { KubeConfig } from "@kubernetes/client-node";
import { expect, test } from "vitest";
import { httpTransport } from "../src/api/http.ts";
import { type ApiConnection, loadConnection } from "../src/index.ts";
import {
  base64,
  Consumer,
  endAfterEach,
  fakeApi,
  httpsServer,
  kubeconfig,
  listening,
  pem,
  run,
  serverTls,
  temporaryFolder,
} from "./support/fake-api.ts";

endAfterEach();

const get = async (connection: ApiConnection) => {
  const response = await httpTransport(
    connection,
    "test",
    systemClock,
  )({ path: "/", signal: new AbortController().signal });
  let body = "";
  for await (const chunk of response.body) body += Buffer.from(chunk).toString();
  return body;
};

test("a kubeconfig as kube-proxy's: CA and token files, relative to it, read anew for each request", async () => {
  const server = `https://127.0.0.1:${await httpsServer()}`;
  const file = await kubeconfig({ server, "certificate-authority": "ca.crt" }, { tokenFile: "./token" });
  await writeFile(join(file, "..", "ca.crt"), await pem("ca.pem"));
  await writeFile(join(file, "..", "token"), "first\n");
  const connection = await loadConnection({ kubeconfig: file });
  expect(JSON.parse(await get(connection))).toEqual({ authorization: "Bearer first" });
  await writeFile(join(file, "..", "token"), "second");
  expect(JSON.parse(await get(connection))).toEqual({ authorization: "Bearer second" });
});

test("client certificates as data; the server's certificate must be the CA's", async () => {
  const ca = await pem("ca.pem");
  const server = `https://127.0.0.1:${await httpsServer({ ca, requestCert: true, rejectUnauthorized: true })}`;
  const user = {
    "client-certificate-data": await base64("client.pem"),
    "client-key-data": await base64("client-key.pem"),
  };
  const trusting = await kubeconfig({ server, "certificate-authority-data": await base64("ca.pem") }, user);
  expect(JSON.parse(await get(await loadConnection({ kubeconfig: trusting })))).toEqual({
    client: "system:node:node-a",
  });
  const strange = await kubeconfig({ server }, user);
  await expect(get(await loadConnection({ kubeconfig: strange }))).rejects.toThrow(/certificate/);
  const careless = await kubeconfig({ server, "insecure-skip-tls-verify": true }, user);
  expect(JSON.parse(await get(await loadConnection({ kubeconfig: careless })))).toHaveProperty("client");
});

test("tls-server-name is what the certificate must be for", async () => {
  const server = `https://127.0.0.1:${await httpsServer()}`;
  const ca = { "certificate-authority-data": await base64("ca.pem") };
  const right = await kubeconfig({ server, ...ca, "tls-server-name": "kubernetes.test" }, {});
  await expect(get(await loadConnection({ kubeconfig: right }))).resolves.toBe("{}");
  const wrong = await kubeconfig({ server, ...ca, "tls-server-name": "other.test" }, {});
  await expect(get(await loadConnection({ kubeconfig: wrong }))).rejects.toThrow(/does not match certificate/);
});

test("inline token, basic auth, impersonation", async () => {
  const headers = async (user: object) =>
    (await (await loadConnection({ kubeconfig: await kubeconfig({ server: "https://x" }, user) })).credentials())
      .headers;
  expect(await headers({ token: "t" })).toEqual({ authorization: "Bearer t" });
  expect(await headers({ username: "u", password: "p" })).toEqual({ authorization: "Basic dTpw" });
  expect(await headers({ token: "t", as: "other" })).toEqual({
    authorization: "Bearer t",
    "impersonate-user": "other",
  });
});

test("in a pod: the service account's token and CA", async () => {
  const dir = await temporaryFolder();
  await writeFile(join(dir, "token"), "pod");
  await writeFile(join(dir, "ca.crt"), await pem("ca.pem"));
  const port = String(await httpsServer());
  const env = { KUBERNETES_SERVICE_HOST: "127.0.0.1", KUBERNETES_SERVICE_PORT: port };
  const connection = await loadConnection({ env, serviceAccountDir: dir });
  expect(JSON.parse(await get(connection))).toEqual({ authorization: "Bearer pod" });
  const six = { KUBERNETES_SERVICE_HOST: "fd00:10:96::1", KUBERNETES_SERVICE_PORT: "443" };
  expect((await loadConnection({ env: six, serviceAccountDir: dir })).server).toBe("https://[fd00:10:96::1]");
});

test("--master overrides the server, and is enough by itself", async () => {
  const file = await kubeconfig({ server: "https://192.0.2.1:6443/" }, { token: "t" });
  expect((await loadConnection({ kubeconfig: file })).server).toBe("https://192.0.2.1:6443");
  const both = await loadConnection({ kubeconfig: file, master: "https://192.0.2.2" });
  expect([both.server, (await both.credentials()).headers]).toEqual([
    "https://192.0.2.2",
    { authorization: "Bearer t" },
  ]);
  expect(await loadConnection({ master: "192.0.2.3:8080" })).toMatchObject({ server: "http://192.0.2.3:8080" });
});

test("a token that rotates: 401 with the old one, then followed with the new one", async () => {
  const { api, server } = await fakeApi(await serverTls());
  api.token = "new";
  const ca = { "certificate-authority-data": await base64("ca.pem") };
  const file = await kubeconfig({ server, ...ca }, { tokenFile: "token" });
  const token = join(file, "..", "token");
  await writeFile(token, "old");
  const connection = await loadConnection({ kubeconfig: file });
  const transport = httpTransport(connection, "fairlead-proxy/0", systemClock);
  const consumer = new Consumer();
  const rotating: typeof transport = async (request) => {
    const response = await transport(request);
    if (response.status === 401) await writeFile(token, "new");
    return response;
  };
  const { reports } = run(server, { services: consumer.subscription }, { connection, transport: rotating });
  await consumer.until(() => consumer.synced > 0);
  expect(reports[0]).toMatchObject({ type: "failing", error: "401 Unauthorized" });
});

/** A credential plugin that counts its runs, reports its input, and whose credential has expired at first. */
const PLUGIN = `#!/usr/bin/env node
const { readFileSync, writeFileSync } = require("node:fs");
const [runs] = process.argv.slice(2);
const count = Number(readFileSync(runs, "utf8")) + 1;
writeFileSync(runs, String(count));
const { kind, spec } = JSON.parse(process.env.KUBERNETES_EXEC_INFO);
const expirationTimestamp = new Date(count === 1 ? 0 : 8.64e15).toISOString();
const token = [process.env.A, kind, spec.interactive, count].join("-");
console.log(JSON.stringify({ kind, status: { token, expirationTimestamp } }));
`;

test("credential plugins: refused unless allowed, run again when the credential has expired", async () => {
  const runs = join(await temporaryFolder(), "runs of it");
  await writeFile(runs, "0");
  const exec = {
    apiVersion: "client.authentication.k8s.io/v1",
    command: "./login",
    args: [runs],
    env: [{ name: "A", value: "a b" }],
  };
  const file = await kubeconfig(
    { server: "https://x", "certificate-authority-data": await base64("ca.pem") },
    { exec },
  );
  await writeFile(join(file, "..", "login"), PLUGIN, { mode: 0o755 });
  await expect(loadConnection({ kubeconfig: file })).rejects.toThrow(/user\.exec .* --allow-exec-credentials allows/);
  const { credentials } = await loadConnection({ kubeconfig: file, allowExecCredentials: true });
  expect(await readFile(runs, "utf8")).toBe("0");
  const together = await Promise.all([credentials(), credentials()]);
  const found = [...together, await credentials(), await credentials()];
  expect(found.map(({ headers }) => headers["authorization"])).toEqual([
    "Bearer a b-ExecCredential-false-1",
    "Bearer a b-ExecCredential-false-1",
    "Bearer a b-ExecCredential-false-2",
    "Bearer a b-ExecCredential-false-2",
  ]);
  expect(found[0]?.tls.ca).toBe(await pem("ca.pem"));
});

test("a credential expires also where the clock is set back meanwhile", async () => {
  const clock = new VirtualClock();
  const first = clock.now() + 600_000;
  const exec = { apiVersion: "client.authentication.k8s.io/v1", command: "./login" };
  const file = await kubeconfig({ server: "https://x" }, { exec });
  const script = `#!/usr/bin/env node
const { kind } = JSON.parse(process.env.KUBERNETES_EXEC_INFO);
const runs = require("node:fs").readdirSync(__dirname).length;
require("node:fs").writeFileSync(__dirname + "/run-" + runs, "");
console.log(JSON.stringify({ kind, status: { token: String(runs), expirationTimestamp: new Date(${first}).toISOString() } }));
`;
  await writeFile(join(file, "..", "login"), script, { mode: 0o755 });
  const { credentials } = await loadConnection({ kubeconfig: file, allowExecCredentials: true, clock });
  const token = async () => (await credentials()).headers["authorization"];
  const before = await token();
  clock.step(-3_600_000);
  await clock.advance(599_000);
  expect(await token()).toBe(before);
  await clock.advance(1_000);
  expect(await token()).not.toBe(before);
});

test.each<[string, object, object, object, RegExp]>([
  ["no such context", {}, {}, { "current-context": "other" }, /contexts has no context "other"/],
  ["no such user", { server: "https://x" }, {}, { users: [] }, /users has no user "default"/],
  ["no server", {}, {}, {}, /the cluster has no server/],
  ["a server that is no URL", { server: "ftp://x" }, {}, {}, /server ftp:\/\/x is not a URL such as https:/],
  [
    "auth-provider",
    { server: "https://x" },
    { "auth-provider": { name: "gcp" } },
    {},
    /user\.auth-provider is not supported: use exec .*, tokenFile, token or a client certificate/,
  ],
  ["a socks proxy", { server: "https://x", "proxy-url": "socks5://y" }, {}, {}, /proxy-url socks5:\/\/y is not/],
])("a kubeconfig with %s is refused with the reason", async (_what, cluster, user, more, message) => {
  const file = await kubeconfig(cluster, user, more);
  await expect(loadConnection({ kubeconfig: file })).rejects.toThrow(message);
  await expect(loadConnection({ kubeconfig: file })).rejects.toThrow(file);
});

test("files that aren't there or hold nothing are named", async () => {
  await expect(loadConnection({ kubeconfig: "/nonexistent" })).rejects.toThrow("--kubeconfig /nonexistent: ENOENT");
  await expect(loadConnection({ env: {} })).rejects.toThrow("no API server configured: set --kubeconfig or --master");
  const file = await kubeconfig({ server: "https://x" }, { tokenFile: "empty" });
  const { credentials } = await loadConnection({ kubeconfig: file });
  await expect(credentials()).rejects.toThrow(`token file ${join(file, "..", "empty")}: ENOENT`);
  await writeFile(join(file, "..", "empty"), "\n");
  await expect(credentials()).rejects.toThrow(/does not hold one token/);
  await mkdir(join(file, "..", "dir"));
  await expect(loadConnection({ kubeconfig: join(file, "..", "dir") })).rejects.toThrow("EISDIR");
});

test("reads a kubeconfig as the client library does, and the field that it doesn't know", async () => {
  const server = "https://192.0.2.1:6443";
  const data = {
    "client-certificate-data": await base64("client.pem"),
    "client-key-data": await base64("client-key.pem"),
  };
  const file = await kubeconfig(
    { server, "certificate-authority-data": await base64("ca.pem"), "tls-server-name": "n" },
    { ...data, token: "t" },
  );
  const library = new KubeConfig();
  library.loadFromFile(file);
  const theirs: Record<string, unknown> = {};
  await library.applyToHTTPSOptions(theirs);
  const ours = await (await loadConnection({ kubeconfig: file })).credentials();
  const text = (value: unknown) => (Buffer.isBuffer(value) ? value.toString() : value);
  expect(library.getCurrentCluster()?.server).toBe(server);
  for (const field of ["ca", "cert", "key", "servername"] as const) expect(ours.tls[field]).toBe(text(theirs[field]));
  const withTokenFile = new KubeConfig();
  withTokenFile.loadFromFile(await kubeconfig({ server }, { tokenFile: "/var/run/secrets/token" }));
  expect(withTokenFile.getCurrentUser()?.token).toBeUndefined();
});

test("proxy-url: requests go there", async () => {
  const port = await listening(createHttpServer(({ url }, response) => response.end(`for ${url}`)));
  const proxyUrl = `http://127.0.0.1:${port}`;
  // Nothing listens on port 1 (tcpmux).
  const file = await kubeconfig({ server: "http://127.0.0.1:1", "proxy-url": proxyUrl }, {});
  expect(await get(await loadConnection({ kubeconfig: file }))).toBe("for http://127.0.0.1:1/");
});
