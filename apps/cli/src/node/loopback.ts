import type { HttpAnswer } from "../frame/context.ts";

/** Milliseconds that an agent gets to answer. */
export const PATIENCE_MS = 15_000;

/** One GET of a port of this host's loopback. */
export async function askLoopback(port: number, path: string): Promise<HttpAnswer> {
  const response = await fetch(`http://127.0.0.1:${port}${path}`, { signal: AbortSignal.timeout(PATIENCE_MS) });
  return { status: response.status, text: await response.text() };
}
