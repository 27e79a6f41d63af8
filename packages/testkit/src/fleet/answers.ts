import type { FleetAnswer } from "./transport.ts";

/** @param endsList whether it ends the objects of a list */
export function bookmark(version: number, endsList = false): string {
  const annotations = endsList ? { "k8s.io/initial-events-end": "true" } : {};
  const metadata = { resourceVersion: String(version), annotations };
  return `${JSON.stringify({ type: "BOOKMARK", object: { kind: "Service", apiVersion: "v1", metadata } })}\n`;
}

/** An empty object. */
export function answer(status: number, headers: Readonly<Record<string, string>> = {}): FleetAnswer {
  return {
    status,
    header: (name) => headers[name],
    body: (async function* () {
      yield Buffer.from("{}");
    })(),
  };
}
