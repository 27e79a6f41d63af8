import http from "node:http";
import https from "node:https";
import type { Clock } from "../clock.ts";
import type { ApiConnection, Credentials } from "./connection.ts";
import type { TlsOptions } from "./tls.ts";
import type { ApiResponse, Transport } from "./transport.ts";

/** A dead peer is noticed after this and ten unanswered probes, one a second (libuv's). */
const keepAliveProbesAfter = 30_000;
/** From the request to the established connection, TLS included. */
const connectTimeout = 10_000;

/**
 * Requests by node:http(s), on kept connections. When the certificates change, new connections are made with the new
 * ones; a running watch goes on with what it began with.
 */
export function httpTransport(connection: ApiConnection, userAgent: string, clock: Clock): Transport {
  const base = new URL(connection.server);
  const agents = agentCache(base.protocol, connection.proxyUrl);
  return async ({ path, signal }) => {
    const { headers, tls } = await connection.credentials();
    return send(new URL(connection.server + path), agents(tls), requestHeaders(userAgent, headers), signal, clock);
  };
}

function requestHeaders(userAgent: string, headers: Credentials["headers"]): http.OutgoingHttpHeaders {
  return { ...headers, accept: "application/json", "user-agent": userAgent };
}

function agentCache(protocol: string, proxyUrl: string | undefined): (tls: TlsOptions) => http.Agent {
  const proxyEnv = proxyUrl === undefined ? process.env : { HTTP_PROXY: proxyUrl, HTTPS_PROXY: proxyUrl };
  let agent: http.Agent | undefined;
  let madeFor: string | undefined;
  return (tls) => {
    const wanted = JSON.stringify(tls);
    if (agent === undefined || wanted !== madeFor) {
      agent = new (protocol === "https:" ? https : http).Agent({ ...tls, keepAlive: true, proxyEnv });
      madeFor = wanted;
    }
    return agent;
  };
}

function send(
  url: URL,
  agent: http.Agent,
  headers: http.OutgoingHttpHeaders,
  signal: AbortSignal,
  clock: Clock,
): Promise<ApiResponse> {
  return new Promise((resolve, reject) => {
    const secure = url.protocol === "https:";
    const request = (secure ? https : http).request(url, { agent, headers });
    let why: Error | undefined;
    // Neither an error for destroy() nor Node's `signal` option: both can reach a socket that nobody listens to any more.
    const giveUp = (reason: string) => {
      why = new Error(reason);
      request.destroy();
    };
    const abort = () => giveUp("the request was given up");
    signal.addEventListener("abort", abort);
    request.once("socket", (socket) => {
      socket.setKeepAlive(true, keepAliveProbesAfter);
      if (!socket.connecting) return;
      const late = () => giveUp(`no connection to ${url.host} within ${connectTimeout / 1000} s`);
      const cancel = clock.after(connectTimeout, late);
      socket.once(secure ? "secureConnect" : "connect", cancel).once("close", cancel);
    });
    request.once("response", (response) => resolve(apiResponse(response)));
    request.on("error", (error) => reject(why ?? error));
    request.once("close", () => {
      signal.removeEventListener("abort", abort);
      reject(why ?? new Error("the connection was closed"));
    });
    if (signal.aborted) abort();
    else request.end();
  });
}

function apiResponse(response: http.IncomingMessage): ApiResponse {
  // Who reads the body is told of its errors; one that comes when nobody reads any more must not end the process.
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
