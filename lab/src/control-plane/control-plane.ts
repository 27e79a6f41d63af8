/** etcd, the API server and the controller manager: started, stopped, and their users. */

import { generateKeyPairSync } from "node:crypto";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { bracketed, familyOf } from "@fairlead/base";
import type { Argv } from "@fairlead/kernel";
import type { NetworkNamespace } from "@fairlead/kernel/netns";
import { type Daemon, orDispose, startDaemon } from "../support/processes.ts";
import { START_MS, waitUntil } from "../support/wait-until.ts";
import { type ApiClient, createApiClient } from "./api-client.ts";
import type { ControlPlanePaths } from "./programs.ts";

export interface Certificate {
  readonly certFile: string;
  readonly keyFile: string;
}

/** etcd, kube-apiserver and the endpoint slice controller. */
export interface ControlPlane {
  readonly api: ApiClient;
  readonly url: string;
  readonly token: string;
  /** The API server's certificate as PEM. */
  readonly ca: string;
  /** What proxies are given. */
  readonly proxyKubeconfig: string;
  /** The administrator's; what stands in for controllers is given. */
  readonly adminKubeconfig: string;
  /** The API server's, PEM files; absent where it is out of reach. */
  readonly certificate?: Certificate;
  /** Ends the API server only, or starts it again and waits until it is ready. */
  stopApiServer(): Promise<void>;
  startApiServer(): Promise<void>;
  dispose(): Promise<void>;
}

/** Of the API server. */
export const PORT = 6443;

interface ControlPlaneSettings {
  readonly programs: ControlPlanePaths;
  /** Where it runs; its loopback interface is up. */
  readonly namespace: NetworkNamespace;
  /** An address of that namespace; the nodes reach the API server there. */
  readonly address: string;
  /** CIDRs of ClusterIPs, the primary family first. */
  readonly serviceCIDRs: readonly string[];
  /** For data, certificates and logs. */
  readonly folder: string;
  /** False: only the user of the control plane makes EndpointSlices. Default true. */
  readonly controllers?: boolean;
}

export function startControlPlane(settings: ControlPlaneSettings): Promise<ControlPlane> {
  return orDispose((started) => start(settings, started));
}

/** Where etcd listens for clients, in the control plane's namespace. */
export const ETCD = "127.0.0.1:2379";

const MAIN = fileURLToPath(new URL("relay-main.ts", import.meta.url));

/**
 * What is run in a namespace to lead connections from one end to the other. A unix socket is reached from every network
 * namespace, so the test ground and the control plane meet without an interface of the machine's own.
 *
 * @param from path of a unix socket, or HOST:PORT; listens there
 * @param to the same; connects to it
 */
export function relayArgv(from: string, to: string): Argv {
  return [process.execPath, "--no-warnings", MAIN, from, to];
}

/**
 * Users of the API server, by token. The proxy has what kube-proxy's user has: ClusterRole system:node-proxier;
 * `controller` has what a spec gives it.
 */
export const USERS = {
  admin: { token: "test-ground-admin", name: "admin", groups: "system:masters" },
  controller: { token: "test-ground-controller", name: "fairlead-controller", groups: "" },
  proxy: { token: "test-ground-proxy", name: "system:kube-proxy", groups: "" },
} as const;

/** For `--token-auth-file`. */
export function tokenFile(): string {
  return Object.values(USERS)
    .map(({ token, name, groups }) => `${token},${name},${name}${groups === "" ? "" : `,"${groups}"`}\n`)
    .join("");
}

interface KubeconfigFields {
  readonly server: string;
  /** Absent where there is no TLS, or nothing looks at the certificate. */
  readonly caFile?: string;
  /** Absent: what is in front of the server has one. */
  readonly token?: string;
}

/** JSON is YAML. Without a CA a server's certificate is not looked at. */
export function kubeconfig({ server, caFile, token }: KubeconfigFields): string {
  const unseen = server.startsWith("https:") ? { "insecure-skip-tls-verify": true } : {};
  const trust = caFile === undefined ? unseen : { "certificate-authority": caFile };
  return JSON.stringify({
    apiVersion: "v1",
    kind: "Config",
    clusters: [{ name: "test", cluster: { server, ...trust } }],
    users: [{ name: "user", user: token === undefined ? {} : { token } }],
    contexts: [{ name: "test", context: { cluster: "test", user: "user" } }],
    "current-context": "test",
  });
}

async function start(settings: ControlPlaneSettings, started: AsyncDisposableStack): Promise<ControlPlane> {
  const files = await prepareFiles(settings);
  const { programs, folder, address, serviceCIDRs } = settings;
  const begin = (name: string, argv: Argv) => {
    const logFile = join(folder, `${name}.log`);
    return startDaemon(settings.namespace, { name, argv, logFile, env: { GOMAXPROCS: "2" } });
  };
  const run = async (name: string, argv: Argv) => {
    const daemon = await begin(name, argv);
    started.defer(() => daemon.stop("SIGKILL"));
  };
  await run("etcd", etcdArgv(programs.etcd, folder));
  const runApiServer = () =>
    begin("kube-apiserver", apiServerArgv(programs["kube-apiserver"], { folder, address, serviceCIDRs, ...files }));
  let apiServer = await runApiServer();
  started.defer(() => apiServer.stop("SIGKILL"));
  const socketPath = join(folder, "api.sock");
  await run("relay", relayArgv(socketPath, `${bracketed(address)}:${PORT}`));
  const ca = await certificate(files.certFile, apiServer);
  const api = createApiClient({ at: { socketPath }, ca, token: USERS.admin.token });
  started.defer(async () => api.close());
  await ready(api, apiServer);
  if (settings.controllers !== false) {
    const program = programs["kube-controller-manager"];
    await run("kube-controller-manager", controllerManagerArgv(program, files.adminKubeconfig));
  }
  const kept = started.move();
  return {
    api,
    url: files.server,
    token: USERS.admin.token,
    ca,
    proxyKubeconfig: files.proxyKubeconfig,
    adminKubeconfig: files.adminKubeconfig,
    certificate: { certFile: files.certFile, keyFile: files.keyFile },
    stopApiServer: () => apiServer.stop("SIGKILL"),
    startApiServer: async () => {
      apiServer = await runApiServer();
      await ready(api, apiServer);
    },
    dispose: () => kept.disposeAsync(),
  };
}

async function prepareFiles({ folder, address }: ControlPlaneSettings) {
  const file = (name: string) => join(folder, name);
  const certFile = file("certs/apiserver.crt");
  const server = `https://${bracketed(address)}:${PORT}`;
  const { key, pub } = serviceAccountKeys();
  const config = (user: keyof typeof USERS) => kubeconfig({ server, caFile: certFile, token: USERS[user].token });
  await mkdir(file("certs"), { recursive: true });
  const contents = {
    "tokens.csv": tokenFile(),
    "sa.key": key,
    "sa.pub": pub,
    "admin.kubeconfig": config("admin"),
    "proxy.kubeconfig": config("proxy"),
  };
  await Promise.all(Object.entries(contents).map(([name, text]) => writeFile(file(name), text, { mode: 0o600 })));
  const keyFile = file("certs/apiserver.key");
  return {
    server,
    certFile,
    keyFile,
    adminKubeconfig: file("admin.kubeconfig"),
    proxyKubeconfig: file("proxy.kubeconfig"),
  };
}

/** The API server writes it when it starts for the first time. */
function certificate(file: string, apiServer: Daemon): Promise<string> {
  return whileRunning(apiServer, "its certificate", async () => {
    const pem = await readFile(file, "utf8").catch(() => "");
    return pem.trimEnd().endsWith("-----END CERTIFICATE-----") ? pem : undefined;
  });
}

/** Ready, and with the objects that it makes itself. */
async function ready(api: ApiClient, apiServer: Daemon): Promise<void> {
  await whileRunning(apiServer, "readiness", () =>
    api.get("/api/v1/namespaces/default/services/kubernetes").then(
      () => true,
      () => undefined,
    ),
  );
}

async function whileRunning<T>(daemon: Daemon, what: string, ask: () => Promise<T | undefined>): Promise<T> {
  const ended = daemon.ended.then((how) => {
    throw new Error(how);
  });
  return Promise.race([waitUntil(`${what} of ${daemon.name}`, START_MS, ask), ended]);
}

const ETCD_URL = `http://${ETCD}`;

function etcdArgv(program: string, folder: string): Argv {
  return [
    program,
    `--data-dir=${join(folder, "etcd-data")}`,
    `--listen-client-urls=${ETCD_URL}`,
    `--advertise-client-urls=${ETCD_URL}`,
    "--listen-peer-urls=http://127.0.0.1:2380",
    // What is lost with the machine is not missed.
    "--unsafe-no-fsync",
    "--log-level=error",
  ];
}

interface ApiServerFields {
  readonly folder: string;
  readonly address: string;
  readonly serviceCIDRs: readonly string[];
}

function apiServerArgv(program: string, { folder, address, serviceCIDRs }: ApiServerFields): Argv {
  const file = (name: string) => join(folder, name);
  return [
    program,
    `--etcd-servers=${ETCD_URL}`,
    `--service-cluster-ip-range=${serviceCIDRs.join(",")}`,
    `--advertise-address=${address}`,
    `--bind-address=${familyOf(address) === "IPv6" ? "::" : "0.0.0.0"}`,
    "--secure-port=6443",
    `--cert-dir=${file("certs")}`,
    `--token-auth-file=${file("tokens.csv")}`,
    "--authorization-mode=RBAC",
    // As kubeadm has it: Fairlead's DaemonSet asks for it.
    "--allow-privileged=true",
    "--service-account-issuer=https://test-ground",
    `--service-account-key-file=${file("sa.pub")}`,
    `--service-account-signing-key-file=${file("sa.key")}`,
    // Pods without service accounts: nothing makes those here.
    "--disable-admission-plugins=ServiceAccount",
    // As OpenShift has it: a writer that sets an owner that waits for the object needs a right to the owner.
    "--enable-admission-plugins=OwnerReferencesPermissionEnforcement",
    // Nothing resolves the nodes' names.
    "--kubelet-preferred-address-types=InternalIP",
    "--max-requests-inflight=2000",
    "--max-mutating-requests-inflight=1000",
  ];
}

function controllerManagerArgv(program: string, kubeconfig: string): Argv {
  return [
    program,
    `--kubeconfig=${kubeconfig}`,
    "--controllers=endpointslice-controller",
    "--leader-elect=false",
    "--secure-port=0",
    "--use-service-account-credentials=false",
    "--endpoint-updates-batch-period=0s",
    "--endpointslice-updates-batch-period=0s",
    "--kube-api-qps=200",
    "--kube-api-burst=400",
  ];
}

/** Keys that service accounts' tokens would be signed with; nothing asks for one here. */
function serviceAccountKeys(): { readonly key: string; readonly pub: string } {
  const { privateKey, publicKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
  return {
    key: privateKey.export({ type: "pkcs1", format: "pem" }).toString(),
    pub: publicKey.export({ type: "spki", format: "pem" }).toString(),
  };
}
