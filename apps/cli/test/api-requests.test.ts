import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { fail, LightApiServer } from "@fairlead/testkit/api-server";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { Cluster } from "../src/cluster/cluster.ts";
import { CONFIG_MAPS, inNamespace, NODES, PODS } from "../src/cluster/resources.ts";
import { Kubeconfigs } from "./support/kubeconfigs.ts";

let api: LightApiServer;
let files: Kubeconfigs;
let cluster: Cluster;
let address = "";

beforeEach(async () => {
  api = new LightApiServer();
  address = await api.start();
  files = await Kubeconfigs.open();
  cluster = files.cluster({ KUBECONFIG: await files.write("c", { server: address }, {}) });
});
afterEach(async () => {
  await api.stop();
  await files[Symbol.asyncDispose]();
});

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
  const other = await files.write("other", { server }, {});
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

test("a server that has no nodes at its address is an error, and no cluster without nodes", async () => {
  const wrong = await files.write("wrong", { server: `${address}/clusters/none` }, {});
  const nodes = () => files.cluster({ KUBECONFIG: wrong }).list(NODES);
  await expect(nodes()).rejects.toThrow(/answers 404: the server could not find/);
});

test("no kubeconfig at all says what would be right", async () => {
  const none = files.cluster({ KUBECONFIG: "/does/not/exist" });
  await expect(none.list(NODES)).rejects.toThrow("--kubeconfig /does/not/exist: ENOENT");
});
