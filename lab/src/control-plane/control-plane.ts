import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { bracketed } from "@fairlead/base";
import type { Argv } from "@fairlead/kernel";
import type { NetworkNamespace } from "@fairlead/kernel/netns";
import { waitUntil } from "../agent/wait-until.ts";
import { type Daemon, startDaemon } from "../support/daemon.ts";
import { orDispose } from "../support/or-dispose.ts";
import { type ApiClient, createApiClient } from "./api-client.ts";
import { apiServerArgv, controllerManagerArgv, etcdArgv } from "./argv.ts";
import type { ControlPlanePaths } from "./programs.ts";
import { relayArgv } from "./relay.ts";
import { kubeconfig, serviceAccountKeys, tokenFile, USERS } from "./users.ts";

export interface ControlPlaneSettings {
  readonly programs: ControlPlanePaths;
  /** Where it runs; its loopback interface is up. */
  readonly namespace: NetworkNamespace;
  /** An address of that namespace; the nodes reach the API server there. */
  readonly address: string;
  /** CIDRs of ClusterIPs, the primary family first. */
  readonly serviceCIDRs: readonly string[];
  /** For data, certificates and logs. */
  readonly folder: string;
  /** False: nothing makes EndpointSlices but who is at work with them. Default true. */
  readonly controllers?: boolean;
}

export interface Certificate {
  readonly certFile: string;
  readonly keyFile: string;
}

/** etcd, kube-apiserver and the endpoint slice controller. */
export interface ControlPlane {
  readonly api: ApiClient;
  readonly url: string;
  /** The administrator's. */
  readonly token: string;
  /** The API server's certificate as PEM. */
  readonly ca: string;
  /** What proxies are given. */
  readonly proxyKubeconfig: string;
  /** The administrator's; what stands in for controllers is given. */
  readonly adminKubeconfig: string;
  /** The API server's, PEM files; absent where it is out of reach. */
  readonly certificate?: Certificate;
  /** Starts further controllers of kube-controller-manager, which the caller ends. */
  startControllers(...names: readonly string[]): Promise<Daemon>;
  /** Ends the API server only, or starts it again and waits until it is ready. */
  stopApiServer(): Promise<void>;
  startApiServer(): Promise<void>;
  dispose(): Promise<void>;
}

/** Of the API server. */
export const PORT = 6443;
const READY_MS = 300_000;

/** @throws Error that names what did not start, with its log file */
export function startControlPlane(settings: ControlPlaneSettings): Promise<ControlPlane> {
  return orDispose((started) => start(settings, started));
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
  const control = (controllers: string) =>
    controllerManagerArgv(programs["kube-controller-manager"], files.adminKubeconfig, controllers);
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
    await run("kube-controller-manager", control("endpointslice-controller"));
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
    startControllers: (...names) => begin(names.join("+"), control(names.join())),
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
  return Promise.race([waitUntil(`${what} of ${daemon.name}`, READY_MS, ask), ended]);
}
