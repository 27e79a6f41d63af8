import { copyFile, mkdir, readFile, writeFile } from "node:fs/promises";
import { delimiter, join } from "node:path";
import { LightApiServer, tlsFolder } from "@fairlead/testkit/api-server";
import { isAllowed } from "@fairlead/watch";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { ClusterAccess } from "../src/cluster/access.ts";
import { openCluster } from "../src/cluster/cluster.ts";
import { mergedKubeconfig, requestTimeoutOf } from "../src/cluster/kubeconfig.ts";
import { NODES } from "../src/cluster/resources.ts";
import { apiConnection } from "../src/inputs/cluster-access.ts";
import { fileOf, Kubeconfigs } from "./support/files.ts";
import { fairlead } from "./support/run.ts";

const pem = (name: string) => readFile(join(tlsFolder, name), "utf8");
const base64 = async (name: string) => Buffer.from(await pem(name)).toString("base64");

let api: LightApiServer;
let server = "";
const files = new Kubeconfigs();

beforeEach(async () => {
  api = new LightApiServer({ key: await pem("server-key.pem"), cert: await pem("server.pem") });
  server = await api.start();
  await copyFile(join(tlsFolder, "ca.pem"), join(files.folder, "ca.crt"));
});
afterEach(() => api.stop());

const TRUSTED = { "certificate-authority": "ca.crt" };

/** What the server is asked with, by a request of the library and by one of the object sources. */
async function askedWith(KUBECONFIG: string, context?: string) {
  const env = { KUBECONFIG };
  expect(await files.cluster(env, context).list(NODES)).toEqual([]);
  const headers = api.requests.at(-1)?.headers ?? {};
  const { credentials } = await apiConnection({ context }, { env, warn: () => {} });
  expect((await credentials()).headers).toEqual(chosen(headers));
  return chosen(headers);
}

/** The headers of impersonation in a request of the library's, which those of the object sources equal. */
async function impersonated(KUBECONFIG: string, access: ClusterAccess): Promise<object> {
  const context = { env: { KUBECONFIG }, warn: () => {} };
  const headersOf = () => {
    const entries = Object.entries(api.requests.at(-1)?.headers ?? {});
    return Object.fromEntries(entries.filter(([name]) => name.startsWith("impersonate-")));
  };
  await openCluster(access, context).list(NODES);
  const headers = headersOf();
  const connection = await apiConnection(access, context);
  await isAllowed(connection, { verb: "list", group: "", resource: "nodes" }, "test").catch(() => undefined);
  expect(headersOf()).toEqual(headers);
  return headers;
}

function chosen(headers: NodeJS.Dict<string | string[]>): object {
  const { authorization, "impersonate-user": as } = headers;
  return { ...(authorization !== undefined && { authorization }), ...(as !== undefined && { "impersonate-user": as }) };
}

describe("credentials", () => {
  test("a token file, relative to the kubeconfig, wins over the token and is read at each use", async () => {
    const file = files.write("c", { server, ...TRUSTED }, { tokenFile: "./token", token: "written" });
    await writeFile(join(files.folder, "token"), "first\n");
    expect(await askedWith(file)).toEqual({ authorization: "Bearer first" });
    await writeFile(join(files.folder, "token"), "second");
    expect(await askedWith(file)).toEqual({ authorization: "Bearer second" });
  });

  test.each([
    [{ token: "t" }, { authorization: "Bearer t" }],
    [{ username: "u", password: "p" }, { authorization: `Basic ${Buffer.from("u:p").toString("base64")}` }],
    [
      { token: "t", as: "eve" },
      { authorization: "Bearer t", "impersonate-user": "eve" },
    ],
    [{}, {}],
  ])("of the user %j", async (user, headers) => {
    expect(await askedWith(files.write("c", { server, ...TRUSTED }, user))).toEqual(headers);
  });

  test("a program is run once for all that a command line asks, and gets what kubectl gives it", async () => {
    const program = [
      "#!/bin/sh",
      'echo run >>"$(dirname "$0")/runs"',
      "cat >/dev/null",
      'spec=$(echo "$KUBERNETES_EXEC_INFO" | tr -dc "a-zA-Z.0-9/")',
      'echo "{\\"kind\\": \\"ExecCredential\\", \\"status\\": {\\"token\\": \\"$1-$spec\\"}}"',
    ];
    await writeFile(join(files.folder, "login"), `${program.join("\n")}\n`, { mode: 0o755 });
    const exec = { apiVersion: "client.authentication.k8s.io/v1", command: "./login", args: ["a"] };
    const KUBECONFIG = files.write("c", { server, ...TRUSTED }, { exec });
    const env = { KUBECONFIG };
    const cluster = files.cluster(env);
    await Promise.all([cluster.list(NODES), cluster.list(NODES)]);
    await (await apiConnection({}, { env, warn: () => {} })).credentials();
    expect(api.requests.at(-1)?.headers.authorization).toMatch(
      /^Bearer a-apiVersionclient\.authentication\.k8s\.io\/v1kindExecCredential/,
    );
    expect(await readFile(join(files.folder, "runs"), "utf8")).toBe("run\n");
  });

  test("a program that fails is named with the file and what it said", async () => {
    await writeFile(join(files.folder, "login"), "#!/bin/sh\necho no session >&2\nexit 1\n", { mode: 0o755 });
    const exec = { apiVersion: "client.authentication.k8s.io/v1", command: "./login" };
    const file = files.write("c", { server, ...TRUSTED }, { exec });
    await expect(files.cluster({ KUBECONFIG: file }).list(NODES)).rejects.toThrow(
      `${file}: users[].user.exec: ${join(files.folder, "login")} exited with code 1 and printed "no session"`,
    );
  });

  test("another user is impersonated with groups, a line each, uid and more; options go before the kubeconfig", async () => {
    const more = { "as-groups": ["dev", "ops"], "as-uid": "7", "as-user-extra": { "example.com/team": ["a", "b"] } };
    const KUBECONFIG = files.write("c", { server, ...TRUSTED }, { token: "t", as: "eve", ...more });
    const rest = { "impersonate-uid": "7", "impersonate-extra-example.com%2fteam": "a, b" };
    expect(await impersonated(KUBECONFIG, {})).toEqual({
      "impersonate-user": "eve",
      "impersonate-group": "dev, ops",
      ...rest,
    });
    expect(await impersonated(KUBECONFIG, { as: "mallory", "as-group": ["one", "two"] })).toEqual({
      "impersonate-user": "mallory",
      "impersonate-group": "one, two",
      ...rest,
    });
    const plain = files.write("d", { server, ...TRUSTED }, { token: "t" });
    await expect(impersonated(plain, { "as-group": ["one"] })).rejects.toThrow(
      "--as-group: name the user with --as, too",
    );
  });

  test("are not sent without TLS, which is warned of", async () => {
    const plain = new LightApiServer();
    const url = await plain.start();
    try {
      const file = files.write("c", { server: url }, { token: "secret", as: "eve" });
      await files.cluster({ KUBECONFIG: file }).list(NODES);
      expect(chosen(plain.requests.at(-1)?.headers ?? {})).toEqual({ "impersonate-user": "eve" });
      expect(files.warnings).toEqual([`${file}: the user's credentials are not sent to ${url}: that is not https`]);
    } finally {
      await plain.stop();
    }
  });
});

describe("trust", () => {
  test("a client certificate as data wins over a file, and the CA counts where there is no user", async () => {
    const data = {
      "client-certificate-data": await base64("client.pem"),
      "client-key-data": await base64("client-key.pem"),
      "client-certificate": "nowhere",
      "client-key": "nowhere",
    };
    expect(await askedWith(files.write("c", { server, ...TRUSTED }, data))).toEqual({});
    const context = { contexts: [{ name: "c", context: { cluster: "c" } }], users: [] };
    expect(await askedWith(files.write("c", { server, ...TRUSTED }, {}, context))).toEqual({});
  });

  test.each([
    ["a certificate that no CA vouches for", {}, /does not answer: .*certificate/],
    ["another name", { ...TRUSTED, "tls-server-name": "other.test" }, /does not match certificate/],
    ["a CA and no trust at all", { ...TRUSTED, "insecure-skip-tls-verify": true }, /remove one of them/],
  ])("%s is an error", async (_what, cluster, message) => {
    const file = files.write("c", { server, ...cluster }, {});
    await expect(files.cluster({ KUBECONFIG: file }).list(NODES)).rejects.toThrow(message);
  });
});

describe("options of the command line", () => {
  test("--server goes before the kubeconfig's, with its credentials, and does without a kubeconfig", async () => {
    const KUBECONFIG = files.write(
      "c",
      { server: "https://192.0.2.1", "tls-server-name": "elsewhere.test", ...TRUSTED },
      { token: "t" },
    );
    const context = { env: { KUBECONFIG }, warn: () => {} };
    expect(await openCluster({ server }, context).list(NODES)).toEqual([]);
    expect(api.requests.at(-1)?.headers.authorization).toBe("Bearer t");
    const plain = new LightApiServer();
    const url = await plain.start();
    try {
      const without = { env: { KUBECONFIG: "", HOME: "/nowhere" }, warn: () => {} };
      expect(await openCluster({ server: `${url}/` }, without).list(NODES)).toEqual([]);
    } finally {
      await plain.stop();
    }
    await expect(openCluster({ server: "nowhere:6443" }, context).list(NODES)).rejects.toThrow(
      "--server=nowhere:6443: must be a URL such as https://192.0.2.10:6443",
    );
  });

  test.each(["50ms", "0.05s"])("--request-timeout=%s ends a request that is not answered", async (time) => {
    const KUBECONFIG = files.write("c", { server, ...TRUSTED }, {});
    // The server never answers.
    api.answerInstead = () => true;
    const access = { "request-timeout": time };
    await expect(openCluster(access, { env: { KUBECONFIG }, warn: () => {} }).list(NODES)).rejects.toThrow(
      `the API server ${server} does not answer: no answer within 0.05 s`,
    );
    const { code, err } = await fairlead(["ownership", "--mode", "iptables", "--request-timeout", time], {
      env: { KUBECONFIG },
    });
    expect(err).toContain(`the API server ${server} does not answer: no answer within 0.05 s\n`);
    expect(code).toBe(3);
  });

  test.each([
    ["5s", 5_000],
    ["1m30s", 90_000],
    ["30", 30_000],
    ["0", Number.POSITIVE_INFINITY],
    ["0s", Number.POSITIVE_INFINITY],
    [undefined, undefined],
  ])("--request-timeout=%s", (text, ms) => {
    expect(requestTimeoutOf({ "request-timeout": text })).toBe(ms);
  });

  test.each(["soon", "-1s", "5 s", "1000h"])("--request-timeout=%s is refused", (text) => {
    expect(() => requestTimeoutOf({ "request-timeout": text })).toThrow(
      `--request-timeout=${text}: must be a time such as 5s, 1m or 30 (seconds); 0 means no limit`,
    );
  });
});

describe("several files in KUBECONFIG", () => {
  const list = (...names: readonly string[]) => names.map((name) => join(files.folder, name)).join(delimiter);

  test("the first current context counts, another one may be in another file; what is not there is left out", async () => {
    await mkdir(join(files.folder, "more"));
    await copyFile(join(tlsFolder, "ca.pem"), join(files.folder, "more", "other.crt"));
    files.write("one", { server, ...TRUSTED }, { token: "one" });
    files.write(join("more", "two"), { server, "certificate-authority": "other.crt" }, { token: "two" });
    const both = list("absent", "one", "more/two");
    expect(await askedWith(both)).toEqual({ authorization: "Bearer one" });
    expect(await askedWith(both, "more/two")).toEqual({ authorization: "Bearer two" });
    await expect(files.cluster({ KUBECONFIG: both }, "three").list(NODES)).rejects.toThrow(
      'contexts has no context "three"; it has: one, more/two',
    );
    await expect(files.cluster({ KUBECONFIG: list("absent") }).list(NODES)).rejects.toThrow(/absent: ENOENT/);
  });

  test("of two entries with a name the first one counts", () => {
    const raw = (token: string) => ({ users: [{ name: "u", user: { token } }], contexts: [{ name: token }] });
    const merged = mergedKubeconfig([
      { file: "/a/config", raw: raw("first") },
      { file: "/b/config", raw: { ...raw("second"), "current-context": "second" } },
    ]);
    expect(merged).toEqual({
      clusters: [],
      users: [{ name: "u", user: { token: "first" } }],
      contexts: [{ name: "first" }, { name: "second" }],
      "current-context": "second",
    });
  });
});

/** A token of OpenID Connect that is good for long. */
function idToken(subject: string): string {
  const part = (value: object) => Buffer.from(JSON.stringify(value)).toString("base64url");
  return `${part({ alg: "none" })}.${part({ exp: 8.64e12, sub: subject })}.x`;
}

test("auth-provider oidc: the token of the context that is asked for, while it is good", async () => {
  const names = ["one", "two"];
  const provider = (name: string) => ({
    name: "oidc",
    config: { "id-token": idToken(name), "client-id": "c", "idp-issuer-url": "https://y" },
  });
  const kubeconfig = fileOf({
    "current-context": "one",
    clusters: names.map((name) => ({ name, cluster: { server: `https://${name}.example` } })),
    users: names.map((name) => ({ name, user: { "auth-provider": provider(name) } })),
    contexts: names.map((name) => ({ name, context: { cluster: name, user: name } })),
  });
  for (const context of names) {
    const { credentials } = await apiConnection({ kubeconfig, context }, { env: {}, warn: () => {} });
    const [first, second] = await Promise.all([credentials(), credentials()]);
    expect(first).toEqual({ headers: { authorization: `Bearer ${idToken(context)}` }, tls: {} });
    expect(second).toEqual(first);
  }
});
