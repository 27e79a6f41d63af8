import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { type ApiObject, objectPath } from "@fairlead/lab/control-plane/api-client";
import { folderPrefix } from "@fairlead/lab/support/run-inventory";
import { able, each, needs, notIn, restoreAgents, type Scene, type ServiceHandle, type Spec } from "../spec.ts";
import { excludedNetwork, expectForeign, needsExcluded } from "./untouched.ts";

const WEBHOOK = fileURLToPath(new URL("programs/webhook-main.ts", import.meta.url));
const PORT = 8443;
const NAME = "webhook";
const onlyOthers = notIn(["ipvs"], "ipvs mode cannot distinguish the clients of an address");

/** A certificate for the name that the API server asks a webhook for. */
async function certificateFor({ cluster, namespace, later }: Scene) {
  const folder = await mkdtemp(join(tmpdir(), `${folderPrefix}-`));
  later(() => rm(folder, { recursive: true, force: true }));
  const [certFile, keyFile] = [join(folder, "tls.crt"), join(folder, "tls.key")];
  const host = `${NAME}.${namespace}.svc`;
  const key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", keyFile];
  const names = ["-subj", "/CN=webhook", "-addext", `subjectAltName=DNS:${host}`];
  await cluster.apiServer.run(["openssl", "req", "-x509", "-days", "2", ...key, ...names, "-out", certFile]);
  return { certFile, keyFile, caBundle: (await readFile(certFile)).toString("base64") };
}

/**
 * The API server is on no node, so its calls of this service are led to a node, whose rules they meet as they come in.
 */
async function leadOver({ cluster, nodes, family, later }: Scene, { clusterIP }: ServiceHandle): Promise<void> {
  const [{ addresses }] = nodes;
  const route = [`${clusterIP}/${family === "IPv4" ? 32 : 128}`, "via", addresses[family] ?? ""];
  await cluster.apiServer.run(["ip", "route", "add", ...route]);
  later(async () => void (await cluster.apiServer.run(["ip", "route", "del", ...route])));
}

/** It is asked for each ConfigMap of the spec's namespace, and nothing is made without its word. */
function configuration(namespace: string, caBundle: string): ApiObject {
  const rule = { apiGroups: [""], apiVersions: ["v1"], operations: ["CREATE"], resources: ["configmaps"] };
  return {
    apiVersion: "admissionregistration.k8s.io/v1",
    kind: "ValidatingWebhookConfiguration",
    metadata: { name: namespace },
    webhooks: [
      {
        name: "deny.fairlead.test",
        clientConfig: { service: { name: NAME, namespace, port: 443 }, caBundle },
        rules: [rule],
        namespaceSelector: { matchLabels: { "kubernetes.io/metadata.name": namespace } },
        ...{ failurePolicy: "Fail", sideEffects: "None", admissionReviewVersions: ["v1"], timeoutSeconds: 2 },
      },
    ],
  };
}

/** Makes a ConfigMap. @returns why the API server has not made it; `made`: it has */
async function ask({ cluster, namespace }: Scene, labels: Readonly<Record<string, string>> = {}): Promise<string> {
  const metadata = { generateName: "one-", namespace, labels, name: "" };
  return cluster.api.create({ apiVersion: "v1", kind: "ConfigMap", metadata }).then(
    () => "made",
    (error: unknown) => String(error),
  );
}

async function untilAnswered(scene: Scene, wanted: string, labels?: Readonly<Record<string, string>>): Promise<void> {
  await scene.until(`an object to be answered with "${wanted}"`, async () => {
    const answer = await ask(scene, labels);
    return answer.includes(wanted) ? undefined : answer;
  });
}

export const webhook: Spec = {
  name: "excluded-clients: the API server calls an admission webhook of the excluded network by its ClusterIP",
  suite: "multi-cni",
  about: ["endpoint-filter", "backend-iptables", "backend-nftables", "backend-userspace"],
  alone: true,
  unfit: (shape) => onlyOthers(shape) ?? needs("learn")(shape) ?? needs("webhook")(shape) ?? needsExcluded(shape),
  run: async (scene) => {
    const { cluster, namespace } = scene;
    const { certFile, keyFile, caBundle } = await certificateFor(scene);
    const pod = await scene.pod({ node: scene.nodes[1], network: excludedNetwork(cluster).name, app: NAME });
    const server = await able(pod.startScript)(WEBHOOK, [certFile, keyFile, String(PORT)]);
    const service = await scene.service(NAME, { selector: { app: NAME }, ports: [{ port: 443, targetPort: PORT }] });
    await expectForeign(scene, service.name);
    await leadOver(scene, service);
    const hook = configuration(namespace, caBundle);
    scene.later(() => cluster.api.delete(objectPath(hook)));
    await cluster.api.create(hook);
    // Left to its network whole, it is out of the nodes' reach.
    await untilAnswered(scene, "failed calling webhook");
    restoreAgents(scene);
    // Before the way there goes: the API server's connection would stay half closed, and its namespace with it.
    scene.later(server.stop);
    await each(scene, ({ agent }) => agent.restart({ flags: ["--excluded-frontends=excluded-clients"] }));
    await untilAnswered(scene, "made");
    await untilAnswered(scene, "denied the request: it has the label deny", { deny: "" });
    const { admitted, denied, from } = JSON.parse(await server.ask("seen"));
    if (admitted !== 1 || denied !== 1) throw new Error(`wanted one of each; ${admitted} admitted, ${denied} denied`);
    return { "called from": from.join(", ") };
  },
};
