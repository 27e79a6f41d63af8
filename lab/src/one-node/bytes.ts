import { fileURLToPath } from "node:url";
import type { Host } from "@fairlead/testkit";
import { type Script, startScript } from "../peer/script.ts";
import type { Lab } from "../two-nodes/lab.ts";
import { namespaceOf } from "../two-nodes/topology.ts";

const SCRIPT = fileURLToPath(new URL("bytes-main.ts", import.meta.url));

/** What came over one connection. */
export interface Fetched {
  readonly received: number;
  /** Every byte as it was sent, in its order. */
  readonly intact: boolean;
  readonly ms: number;
}

/** A server on a host that gives as many bytes as it is asked for. */
export async function serveBytes(lab: Lab, host: Host, port: number): Promise<Script> {
  const script = startScript(lab.namespace(namespaceOf(host)), SCRIPT, ["serve", String(port)]);
  await script.hear();
  return script;
}

/** Fetches bytes over one connection. */
export async function fetchBytes(lab: Lab, from: Host, to: string, port: number, bytes: number): Promise<Fetched> {
  await using script = startScript(lab.namespace(namespaceOf(from)), SCRIPT, [
    "fetch",
    to,
    String(port),
    String(bytes),
  ]);
  return JSON.parse(await script.hear());
}
