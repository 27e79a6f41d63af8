import { randomInt } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:net";
import { Readable } from "node:stream";
import { errorCode } from "@fairlead/base";
import { type App, answerTo, type HttpRequest } from "../../src/http/app.ts";
import type { metricsApp } from "../../src/http/metrics-app.ts";
import { sliMetrics } from "../../src/metrics/sync-metrics.ts";

export async function ask(app: App, url: string, more: Partial<HttpRequest> = {}): Promise<Response> {
  const { pathname, searchParams } = new URL(url, "http://agent.test");
  const { status, headers, body } = await answerTo(app, pathname, {
    method: "GET",
    query: searchParams,
    accept: "",
    local: true,
    gone: new AbortController().signal,
    ...more,
  });
  const content =
    body instanceof Readable ? new Response(Readable.toWeb(body) as ReadableStream).body : Buffer.from(body);
  return new Response(content, { status, headers });
}

/** Below the ports that the kernel chooses by itself, so that no server of port 0 takes it meanwhile. */
const PORTS = [20_000, 32_000] as const;

/** A port of 127.0.0.1 that was free just now. */
export async function freePort(): Promise<number> {
  const port = randomInt(...PORTS);
  const server = createServer().listen(port, "127.0.0.1");
  try {
    await once(server, "listening");
  } catch (error) {
    if (errorCode(error) === "EADDRINUSE") return freePort();
    throw error;
  }
  server.close();
  await once(server, "close");
  return port;
}

/** What a metrics port is given by an agent of which nothing is known. */
export function nothingMeasured(startedAt = 0): Parameters<typeof metricsApp>[0] {
  return {
    metrics: async () => ({ text: "", contentType: "text/plain" }),
    proxyMode: () => "iptables",
    configuration: () => ({}),
    ownership: () => ({}),
    slis: sliMetrics(startedAt),
  };
}
