import http from "node:http";
import https from "node:https";
import type { Clock } from "@fairlead/base";
import { JSON_TYPE } from "../protobuf/media-type.ts";
import type { ApiConnection, Credentials } from "./connection.ts";
import { withoutPasswords } from "./redact.ts";
import type { TlsOptions } from "./tls.ts";
import type { ApiResponse } from "./transport.ts";

/** A dead peer is noticed after this and ten unanswered probes, one a second (libuv's). */
const KEEP_ALIVE_PROBES_AFTER = 30_000;
/** From the request to the established connection, TLS included. */
const CONNECT_TIMEOUT = 10_000;

/** One request to an API server. */
export interface HttpRequest {
  /** Absolute, with query. */
  readonly path: string;
  readonly signal: AbortSignal;
  /** The Accept header. Default JSON. */
  readonly accept?: string;
  /** Default: POST with a body, GET without. */
  readonly method?: "GET" | "POST" | "PUT" | "DELETE";
  /** JSON. */
  readonly body?: string;
}

/**
 * Sends a request by node:http(s), through the connection's proxy, on kept connections. When the certificates change,
 * new connections are made with the new ones; a running watch goes on with what it began with.
 *
 * @throws Error when there is no connection, or no trust in it; no URL in it has a password
 */
export async function sendHttp(
  connection: ApiConnection,
  userAgent: string,
  clock: Clock,
  { path, signal, accept = JSON_TYPE, body, method = body === undefined ? "GET" : "POST" }: HttpRequest,
): Promise<ApiResponse> {
  const { headers, tls } = await connection.credentials();
  const url = new URL(connection.server + path);
  const options: http.RequestOptions = {
    agent: agentOf(connection, url.protocol, tls),
    method,
    headers: {
      ...permitted(url.protocol, headers),
      accept,
      ...(body === undefined ? {} : { "content-type": JSON_TYPE, "content-length": Buffer.byteLength(body) }),
      "user-agent": userAgent,
    },
  };
  return send(url, options, body, signal, clock);
}

/**
 * What says who one is goes over TLS or not at all, as with client-go (clientcmd's ClientConfig); in plain text anybody
 * could take it.
 */
function permitted(protocol: string, headers: Credentials["headers"]): Credentials["headers"] {
  if (protocol === "https:") return headers;
  return Object.fromEntries(Object.entries(headers).filter(([name]) => name.toLowerCase() !== "authorization"));
}

interface KeptAgent {
  readonly agent: http.Agent;
  readonly madeFor: string;
}

const agents = new WeakMap<ApiConnection, KeptAgent>();

/** One for all that goes to the server: its watches, its Events, what is asked of it. */
function agentOf(connection: ApiConnection, protocol: string, tls: TlsOptions): http.Agent {
  const madeFor = JSON.stringify(tls);
  const kept = agents.get(connection);
  if (kept?.madeFor === madeFor) return kept.agent;
  const { proxyUrl } = connection;
  const proxyEnv = proxyUrl === undefined ? process.env : { HTTP_PROXY: proxyUrl, HTTPS_PROXY: proxyUrl };
  const agent = new (protocol === "https:" ? https : http).Agent({ ...tls, keepAlive: true, proxyEnv });
  agents.set(connection, { agent, madeFor });
  return agent;
}

function send(
  url: URL,
  options: http.RequestOptions,
  body: string | undefined,
  signal: AbortSignal,
  clock: Clock,
): Promise<ApiResponse> {
  return new Promise((resolve, reject) => {
    const secure = url.protocol === "https:";
    const request = (secure ? https : http).request(url, options);
    let why: Error | undefined;
    // Neither an error for destroy() nor Node's `signal` option: both can reach a socket that nothing listens to any
    // more.
    const giveUp = (reason: string) => {
      why = new Error(reason);
      request.destroy();
    };
    const abort = () => giveUp("the request was canceled");
    signal.addEventListener("abort", abort);
    request.once("socket", (socket) => {
      socket.setKeepAlive(true, KEEP_ALIVE_PROBES_AFTER);
      if (!socket.connecting) return;
      const late = () => giveUp(`no connection to ${url.host} within ${CONNECT_TIMEOUT / 1000} s`);
      const cancel = clock.after(CONNECT_TIMEOUT, late);
      socket.once(secure ? "secureConnect" : "connect", cancel).once("close", cancel);
    });
    request.once("response", (response) => resolve(apiResponse(response)));
    request.on("error", (error) => reject(why ?? harmless(error)));
    request.once("close", () => {
      signal.removeEventListener("abort", abort);
      reject(why ?? new Error("the connection was closed"));
    });
    if (signal.aborted) abort();
    else request.end(body);
  });
}

/** Node names the proxy with its password. */
function harmless(error: Error): Error {
  const message = withoutPasswords(error.message);
  return message === error.message ? error : new Error(message);
}

function apiResponse(response: http.IncomingMessage): ApiResponse {
  // Who reads the body is told of its errors; one that comes when nothing reads anymore must not end the process.
  response.on("error", () => {});
  return {
    status: response.statusCode ?? 0,
    header: (name) => {
      const value = response.headers[name];
      return Array.isArray(value) ? value[0] : value;
    },
    body: response,
  };
}
