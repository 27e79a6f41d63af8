/** The controller of this process, and a real API server for it. */

import { readFileSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseControllerArguments } from "@fairlead/config";
import { LightApiServer } from "@fairlead/testkit/api-server";
import { loadConnection, type ObjectRequest, requestObject } from "@fairlead/watch";
import { afterEach, beforeEach } from "vitest";
import { runController } from "../../src/controller/run.ts";
import { kubeconfigOf, recordedLog } from "./fake-node.ts";
import { freePort } from "./http.ts";

/** Starts it; `end` resolves when it has ended. @param server "": that of the kubeconfig among the flags */
export async function startController(server: string, ...flags: readonly string[]) {
  const port = await freePort();
  const own = [`--master=${server}`, `--metrics-bind-address=127.0.0.1:${port}`];
  const parsed = parseControllerArguments([...own, ...flags], "0");
  if (parsed.kind !== "run") throw new Error(JSON.stringify(parsed));
  const [stop, log] = [new AbortController(), recordedLog()];
  const done = runController(parsed.config, log, stop.signal);
  const end = async () => {
    stop.abort();
    await done;
  };
  return { log, port, done, end };
}

/** For each test of a file an API server in memory, and the controllers that the test starts with it. */
export function controllerForEach(...always: readonly string[]) {
  const running: Awaited<ReturnType<typeof startController>>[] = [];
  const ground = { api: new LightApiServer(), server: "", running };
  beforeEach(async () => {
    ground.api = new LightApiServer();
    ground.server = await ground.api.start();
  });
  afterEach(async () => {
    await Promise.all(running.splice(0).map(({ end }) => end()));
    await ground.api.stop();
  });
  return Object.assign(ground, {
    async start(...flags: readonly string[]) {
      const one = await startController(ground.server, ...always, ...flags);
      running.push(one);
      return one;
    },
  });
}

/** A busy machine renews in time all the same; a controller that ends releases its lease. */
export const LASTING_LEASE = [
  "--leader-elect-lease-duration=2h",
  "--leader-elect-renew-deadline=1h",
  "--leader-elect-retry-period=100ms",
];

/**
 * A real kube-apiserver, which the test ground has; elsewhere its tests are left out (vitest.config.ts):
 * FAIRLEAD_TEST_APISERVER=https://127.0.0.1:6443, and in the file FAIRLEAD_TEST_TOKEN_FILE a token that may do
 * everything.
 */
export async function realApiServer() {
  const { FAIRLEAD_TEST_APISERVER: server = "", FAIRLEAD_TEST_TOKEN_FILE: tokenFile = "" } = process.env;
  const token = tokenFile === "" ? "" : readFileSync(tokenFile, "utf8");
  const folder = await mkdtemp(join(tmpdir(), "fairlead-api-server-"));
  const as = async (name: string, token: string) => {
    const kubeconfig = join(folder, name);
    await writeFile(kubeconfig, kubeconfigOf({ server, "insecure-skip-tls-verify": true }, { token }));
    const connection = await loadConnection({ kubeconfig, onWarning: () => {} });
    return {
      kubeconfig,
      connection,
      async ask(method: ObjectRequest["method"], path: string, object?: unknown) {
        const { status, body } = await requestObject(connection, { method, path, object }, "fairlead-test");
        return { status, body: JSON.parse(body) as unknown };
      },
    };
  };
  return { ...(await as("test", token)), as, [Symbol.asyncDispose]: () => rm(folder, { recursive: true }) };
}
