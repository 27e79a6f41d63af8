import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { goldenScenario } from "@fairlead/testkit";
import { fail, LightApiServer } from "@fairlead/testkit/api-server";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { Cluster } from "../src/cluster/cluster.ts";
import { CONFIG_MAPS, inNamespace, NODES, PODS } from "../src/cluster/resources.ts";
import { fileOf, Kubeconfigs, kubeconfigFor } from "./support/files.ts";
import { fairlead } from "./support/run.ts";

const scenario = goldenScenario("09-loadbalancer");
const { iptables } = scenario;
const objects = [...scenario.objects, { apiVersion: "v1", kind: "Node", metadata: { name: "node-a" } }];
const NODE = ["--node", "node-a", "--node-address", "10.201.0.10", "--cluster-cidr", "10.144.0.0/16"];

describe("a cluster behind a kubeconfig", () => {
  const server = new LightApiServer();
  let kubeconfig = "";
  const [manifests, rules] = [fileOf(objects, "objects.json"), fileOf(iptables)];

  beforeAll(async () => {
    // A server stores what it has filled in; the manifests' source fills in the same.
    server.put(objects);
    kubeconfig = kubeconfigFor(await server.start());
  });

  afterAll(() => server.stop());

  const fromCluster = (command: string, ...more: readonly string[]) =>
    fairlead([command, ...more, "--kubeconfig", kubeconfig, ...NODE]);
  const fromManifests = (command: string, ...more: readonly string[]) =>
    fairlead([command, ...more, "-f", manifests, ...NODE]);

  test.each([
    ["plan", []],
    ["plan", ["-o", "json"]],
    ["explain", ["default/lb"]],
    ["explain", ["203.0.113.9:80", "-o", "json"]],
    ["ownership", []],
    ["verify", ["--rules", "RULES"]],
  ])("%s %j says what it says of the same manifests", async (command, args) => {
    const more = args.map((arg) => (arg === "RULES" ? rules : arg));
    const said = await fromCluster(command, ...more);
    // That no proxy could be asked is said of a cluster only.
    const err = said.err.replace(/^configuration: as the options say; not compared: .*\n/, "");
    expect({ ...said, err }).toEqual(await fromManifests(command, ...more));
    expect(said.code).toBe(0);
    expect(said.out).not.toBe("");
  });

  test("explain sees whether a kernel agrees, and diff what would change there", async () => {
    const { out, code } = await fromCluster("explain", "default/lb", "--rules", rules);
    expect(out).toMatch(/^Kernel: agrees, \d+ kinds of packets traced$/m);
    expect(code).toBe(0);
    const same = await fairlead(["diff", "cluster", rules, "--kubeconfig", kubeconfig, ...NODE]);
    expect(same.out).toMatch(/^Traffic: the same, \d+ kinds of packets traced$/m);
    const [rule = ""] = /^-A KUBE-SERVICES -d 203\.0\.113\.9.*\n/m.exec(iptables) ?? [];
    const changed = await fairlead([
      "diff",
      "cluster",
      fileOf(iptables.replace(rule, "")),
      "--kubeconfig",
      kubeconfig,
      ...NODE,
    ]);
    expect(changed.out).toMatch(/^ {2}tcp 203\.0\.113\.9:80 from /m);
    expect(changed.code).toBe(1);
  });

  test("a node that the cluster does not have is an error", async () => {
    const line = ["plan", "--kubeconfig", kubeconfig, "--node", "node-x"];
    const { err, code } = await fairlead(line);
    expect(err).toBe("--node=node-x: there is no such Node; there are: node-a; did you mean node-a?\n");
    expect(code).toBe(3);
  });

  test("--context names the cluster and the namespace of services that are named without one", async () => {
    const config = JSON.parse(await readFile(kubeconfig, "utf8"));
    const contexts = [
      { name: "gone", context: { cluster: "none" } },
      { name: "here", context: { cluster: "c", user: "c", namespace: "default" } },
      { name: "shop", context: { cluster: "c", user: "c", namespace: "shop" } },
    ];
    const several = fileOf({ ...config, contexts, "current-context": "gone" });
    const explain = (...more: readonly string[]) =>
      fairlead(["explain", "lb", "--kubeconfig", several, ...NODE, ...more]);
    expect(await explain("--context", "here")).toMatchObject({ code: 0 });
    expect((await explain("--context", "shop")).err).toMatch(
      /^lb: there is no such Service.*; did you mean default\/lb\?/m,
    );
    expect(await explain("--context", "shop", "-n", "default")).toMatchObject({ code: 0 });
    const { code, err } = await explain("--context", "home");
    expect(err).toContain('contexts has no context "home"; it has: gone, here, shop\n');
    expect(err).toMatch(/^--context=home: /);
    expect(code).toBe(2);
  });

  test("a server that does not answer is reported", async () => {
    const gone = kubeconfigFor("http://127.0.0.1:9");
    const { code, err } = await fairlead(["ownership", "--kubeconfig", gone, ...NODE.slice(0, 2)]);
    expect(err).toMatch(/^the API server http:\/\/127\.0\.0\.1:9 does not answer: /m);
    expect(code).toBe(3);
  });
});

let api: LightApiServer;
const files = new Kubeconfigs();
let cluster: Cluster;
let address = "";

beforeEach(async () => {
  api = new LightApiServer();
  address = await api.start();
  cluster = files.cluster({ KUBECONFIG: files.write("c", { server: address }, {}) });
});
afterEach(() => api.stop());

const MAPS = inNamespace(CONFIG_MAPS, "kube-system");
const map = (name: string, data: object) => ({
  apiVersion: "v1",
  kind: "ConfigMap",
  metadata: { name, namespace: "kube-system" },
  data,
});

test("objects are read as they are, with fields that no model knows", async () => {
  await cluster.create({ ...map("a", { x: "1" }), ofTomorrow: { kept: [1.5, null] } });
  expect(await cluster.get(MAPS, "a")).toMatchObject({ data: { x: "1" }, ofTomorrow: { kept: [1.5, null] } });
  expect(await cluster.get(MAPS, "b")).toBeUndefined();
});

test("a long list comes in several answers, chosen by labels and fields", async () => {
  for (let at = 0; at < 1_201; at++) {
    const metadata = { name: `pod-${at}`, namespace: "shop", labels: { odd: String(at % 2) } };
    api.store.put("/api/v1/pods", { metadata, spec: { nodeName: at % 3 === 0 ? "node-a" : "node-b" } });
  }
  expect(await cluster.list(PODS)).toHaveLength(1_201);
  expect(api.requests).toHaveLength(3);
  const chosen = await cluster.list(PODS, { labels: "odd=1", fields: "spec.nodeName=node-a" });
  expect(chosen).toHaveLength(200);
});

test("an apply makes and changes, a patch takes away, a replacement of what is older is refused", async () => {
  await cluster.apply(map("a", { x: "1" }));
  const before = await cluster.get(MAPS, "a");
  await cluster.apply(map("a", { y: "2" }));
  await cluster.patch(MAPS, "a", { data: { x: null } });
  expect(await cluster.get(MAPS, "a")).toMatchObject({ data: { y: "2" } });
  await expect(cluster.replace(before as never)).rejects.toMatchObject({ status: 409 });
  const applied = api.requests.filter(({ headers }) => headers["content-type"] === "application/apply-patch+yaml");
  expect(applied.map(({ query }) => String(query))).toEqual(Array(2).fill("fieldManager=fairlead&force=true"));
  expect(new Set(api.requests.map(({ headers }) => headers["user-agent"]?.split("/")[0]))).toEqual(
    new Set(["fairlead"]),
  );
});

test("what is removed is waited for; what is not there is no error", async () => {
  await cluster.create(map("a", {}));
  // Finalizers keep it for two looks.
  let looks = 0;
  api.answerInstead = ({ method, path }, response) => {
    if (method !== "DELETE" || !path.endsWith("/a")) {
      if (looks > 0 && ++looks === 3) api.store.delete("/api/v1/configmaps", "kube-system/a");
      return false;
    }
    looks = 1;
    response.writeHead(200, { "content-type": "application/json" }).end("{}");
    return true;
  };
  await cluster.remove(MAPS, "a");
  expect(looks).toBe(3);
  await cluster.remove(MAPS, "a");
});

test.each([
  [401, "Unauthorized", /does not accept the credentials of \S+\/c: sign in again$/],
  [403, 'nodes is forbidden: User "eve" cannot list', /answers 403: nodes is forbidden: User "eve" cannot list$/],
  [500, "etcd is\n\n away", /answers 500: etcd is\n\n away$/],
])("an API server that answers %i", async (code, message, said) => {
  api.answerInstead = (_request, response) => {
    fail(response, code, "Reason", message);
    return true;
  };
  await expect(cluster.list(NODES)).rejects.toThrow(said);
});

test("a proxy's page, an answer that is not JSON, and no answer at all", async () => {
  const page = createServer((_request, response) =>
    response.writeHead(Number(code)).end("<html>\n Bad   Gateway</html>"),
  );
  let code = 502;
  await new Promise<void>((resolve) => page.listen(0, "127.0.0.1", resolve));
  const server = `http://127.0.0.1:${(page.address() as AddressInfo).port}`;
  const other = files.write("other", { server }, {});
  const nodes = () => files.cluster({ KUBECONFIG: other }).list(NODES);
  await expect(nodes()).rejects.toThrow(`the API server ${server} answers 502: <html> Bad Gateway</html>`);
  code = 200;
  await expect(nodes()).rejects.toThrow(/gives an answer that is not JSON: <html> Bad Gateway<\/html>$/);
  page.closeAllConnections();
  await new Promise((resolve) => page.close(resolve));
  await expect(nodes()).rejects.toThrow(
    /^the API server http:\S+ does not answer: (connect ECONNREFUSED|read ECONNRESET)/,
  );
});

test("an answer without end is given up, and none of it kept", async () => {
  const piece = Buffer.alloc(1 << 20, " ");
  let sent = 0;
  const endless = createServer((_request, response) => {
    const more = () => {
      while (!response.destroyed) {
        sent += piece.length;
        if (!response.write(piece)) return;
      }
    };
    response.on("drain", more);
    more();
  });
  await new Promise<void>((resolve) => endless.listen(0, "127.0.0.1", resolve));
  const server = `http://127.0.0.1:${(endless.address() as AddressInfo).port}`;
  const other = await files.write("endless", { server }, {});
  await expect(files.cluster({ KUBECONFIG: other }).list(NODES)).rejects.toThrow(
    `the API server ${server} answers with more than 256 MiB, which no API server does`,
  );
  expect(sent).toBeLessThan(300 << 20);
  endless.closeAllConnections();
  await new Promise((resolve) => endless.close(resolve));
});

test("a server that has no nodes at its address is an error, and no cluster without nodes", async () => {
  const wrong = files.write("wrong", { server: `${address}/clusters/none` }, {});
  const nodes = () => files.cluster({ KUBECONFIG: wrong }).list(NODES);
  await expect(nodes()).rejects.toThrow(/answers 404: the server could not find/);
});

test("no kubeconfig at all says what would be right", async () => {
  const none = files.cluster({ KUBECONFIG: "/does/not/exist" });
  await expect(none.list(NODES)).rejects.toThrow("--kubeconfig /does/not/exist: ENOENT");
});
