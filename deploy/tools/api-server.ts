import { generateKeyPairSync } from "node:crypto";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Argv, createRunner } from "@fairlead/kernel";
import { createNamespace } from "@fairlead/kernel/netns";
import type { Manifest } from "../test/support/manifests.ts";

export interface ApiServer {
  /** Server-side apply as a dry run, unknown fields refused; undefined: accepted, else what the server says. */
  dryRun(manifest: Manifest): Promise<string | undefined>;
  dispose(): Promise<void>;
}

const TOKEN = "dry-run";
/** @param assets folder with etcd and kube-apiserver */
export async function startApiServer(assets: string): Promise<ApiServer> {
  const dir = await mkdtemp(join(tmpdir(), "fairlead-api-server-"));
  const namespace = await createNamespace();
  const runner = createRunner({ prefix: namespace.argvPrefix });
  const stop = new AbortController();
  const daemons = [etcd(assets, dir), await apiServer(assets, dir)].map((argv) =>
    runner
      .run(["setpriv", "--pdeathsig", "KILL", ...argv], { signal: stop.signal, timeoutMs: 600_000 })
      .catch(() => undefined),
  );
  const curl = async (...args: readonly string[]) => {
    const common = ["--silent", "--insecure", "--max-time", "20", "--header", `Authorization: Bearer ${TOKEN}`];
    return (await runner.run(["curl", ...common, ...args])).stdout;
  };
  const dispose = async () => {
    stop.abort();
    await Promise.all(daemons);
    await namespace.dispose();
    await rm(dir, { recursive: true, force: true });
  };
  const retry = ["--retry", "60", "--retry-delay", "1", "--retry-all-errors", "--fail"];
  await curl(...retry, `${SERVER}/api/v1/namespaces/kube-system`).catch(async (error: unknown) => {
    await dispose();
    throw error;
  });
  return {
    dispose,
    dryRun: async (manifest) => {
      const type = "Content-Type: application/apply-patch+yaml";
      const url = `${SERVER}${pathOf(manifest)}?dryRun=All&fieldManager=check&force=true&fieldValidation=Strict`;
      const answer = JSON.parse(await curl("-X", "PATCH", "--header", type, "--data", JSON.stringify(manifest), url));
      return answer.kind === "Status" ? String(answer.message) : undefined;
    },
  };
}

const SERVER = "https://127.0.0.1:6443";
const ETCD = "http://127.0.0.1:2379";

function pathOf({ apiVersion, kind, metadata: { name, namespace } }: Manifest): string {
  const plural = `${kind.toLowerCase()}s`;
  const root = apiVersion === "v1" ? "/api/v1" : `/apis/${apiVersion}`;
  return `${root}${namespace === undefined ? "" : `/namespaces/${namespace}`}/${plural}/${name}`;
}

function etcd(assets: string, dir: string): Argv {
  const clients = [`--listen-client-urls=${ETCD}`, `--advertise-client-urls=${ETCD}`];
  const rest = ["--listen-peer-urls=http://127.0.0.1:2380", "--unsafe-no-fsync", "--log-level=error"];
  return [join(assets, "etcd"), `--data-dir=${join(dir, "etcd")}`, ...clients, ...rest];
}

async function apiServer(assets: string, dir: string): Promise<Argv> {
  const { privateKey, publicKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
  await writeFile(join(dir, "sa.key"), privateKey.export({ type: "pkcs1", format: "pem" }));
  await writeFile(join(dir, "sa.pub"), publicKey.export({ type: "spki", format: "pem" }));
  await writeFile(join(dir, "tokens.csv"), `${TOKEN},admin,admin,"system:masters"\n`);
  return [
    join(assets, "kube-apiserver"),
    `--etcd-servers=${ETCD}`,
    "--service-cluster-ip-range=10.96.0.0/12",
    "--bind-address=127.0.0.1",
    "--advertise-address=192.0.2.2",
    `--cert-dir=${join(dir, "certs")}`,
    `--token-auth-file=${join(dir, "tokens.csv")}`,
    "--authorization-mode=RBAC",
    "--service-account-issuer=https://dry-run.example",
    `--service-account-key-file=${join(dir, "sa.pub")}`,
    `--service-account-signing-key-file=${join(dir, "sa.key")}`,
    // Nothing makes service accounts here.
    "--disable-admission-plugins=ServiceAccount",
    "--allow-privileged=true",
  ];
}

/** One service with one endpoint, as the API server fills them in. */
export const OBJECTS = [
  {
    apiVersion: "v1",
    kind: "Service",
    metadata: { name: "nginx-calico", namespace: "default" },
    spec: { clusterIP: "10.96.67.75", ports: [{ name: "", port: 80, protocol: "TCP" }] },
  },
  {
    apiVersion: "discovery.k8s.io/v1",
    kind: "EndpointSlice",
    metadata: {
      name: "nginx-calico-1",
      namespace: "default",
      labels: { "kubernetes.io/service-name": "nginx-calico" },
    },
    addressType: "IPv4",
    ports: [{ name: "", port: 80, protocol: "TCP" }],
    endpoints: [{ addresses: ["10.144.154.71"], conditions: { ready: true } }],
  },
];

/** The chains of its service and of its endpoint, in table nat. */
export const SERVICE_CHAIN = "KUBE-SVC-RH2G6EKXTJDCSNM7";
export const ENDPOINT_CHAIN = "KUBE-SEP-ZMODNQBWAQHJ2KQZ";

/** The node that the agent runs on. */
export const NODE = {
  apiVersion: "v1",
  kind: "Node",
  metadata: { name: "node-a" },
  status: { addresses: [{ type: "InternalIP", address: "192.0.2.10" }] },
};
