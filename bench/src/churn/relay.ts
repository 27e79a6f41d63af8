import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { kubeconfig, PORT, USERS } from "@fairlead/lab/control-plane/control-plane";
import { FROM_SOURCES, startScript } from "@fairlead/lab/support/script";
import { type Bed, FABRIC } from "../cluster/bed.ts";
import type { Recording } from "./recording.ts";

const MAIN = fileURLToPath(new URL("recording-relay-main.ts", import.meta.url));
const RELAY_PORT = 7443;

/** What stands between a proxy and the API server and records what passes. */
export interface RecordingRelay {
  /** What has passed since its start. */
  take(): Promise<Recording>;
  [Symbol.asyncDispose](): Promise<void>;
}

/** One at a time. @throws Error with its last words when it does not get ready */
export async function openRelay({ controlPlane: { certificate }, fabric }: Bed): Promise<RecordingRelay> {
  const { certFile = "", keyFile = "" } = certificate ?? {};
  const args = [certFile, keyFile, FABRIC, String(RELAY_PORT), String(PORT)];
  const script = await startScript(fabric, MAIN, args, FROM_SOURCES);
  return {
    take: async () => JSON.parse(await script.ask("take")),
    [Symbol.asyncDispose]: () => script.stop(),
  };
}

/** @returns a kubeconfig file for proxies that talk to the API server by the relay */
export async function relayKubeconfig({ controlPlane: { certificate }, folder }: Bed): Promise<string> {
  const own = join(folder, "relay");
  await mkdir(own, { recursive: true });
  const file = join(own, "kubeconfig");
  const server = `https://${FABRIC}:${RELAY_PORT}`;
  const caFile = certificate?.certFile ?? "";
  await writeFile(file, kubeconfig({ server, caFile, token: USERS.proxy.token }), { mode: 0o600 });
  return file;
}
