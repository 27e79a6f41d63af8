/**
 * HTTP to the API server: the connection with its credentials, one request over it, its rate limit and its observer.
 */

import http from "node:http";
import https from "node:https";
import { type Clock, sleep } from "@fairlead/base";
import { JSON_TYPE } from "../protobuf-messages.ts";

/** A request of a watcher: always GET. */
export interface ApiRequest {
  /** Absolute path with query, for example `/api/v1/services?watch=true`. */
  readonly path: string;
  /** The Accept header; absent: JSON. */
  readonly accept?: string;
  /** Aborting ends the request and its body at any time. */
  readonly signal: AbortSignal;
}

/** An answer whose body has not been read. */
export interface ApiResponse {
  /** The HTTP status code. */
  readonly status: number;
  /** The header's value, lower-case name; undefined when absent. */
  header(name: string): string | undefined;
  /**
   * Ends with an error when the connection breaks before the body is complete. Leaving the loop closes the connection.
   */
  readonly body: AsyncIterable<Uint8Array>;
}

/**
 * Sends a request and resolves with the head of the response.
 *
 * @throws Error when there is no connection, or no trust in it
 */
export type Transport = (request: ApiRequest) => Promise<ApiResponse>;

/** An API server and the way to identify oneself to it. Made by `loadConnection`. */
export interface ApiConnection {
  /** Base URL without a trailing slash, for example `https://192.0.2.10:6443`. */
  readonly server: string;
  /** Proxy to go through, from kubeconfig's proxy-url. */
  readonly proxyUrl?: string;
  /** Reads token, certificate and key files anew: they rotate. Called before each request. */
  readonly credentials: () => Promise<Credentials>;
}

/** What authenticates a request. */
export interface Credentials {
  /** Authorization and Impersonate-* headers; one with several values is a line for each. */
  readonly headers: Readonly<Record<string, string | string[]>>;
  /** Certificates for the connection. */
  readonly tls: TlsOptions;
}

/** The part of node:tls' options that a kubeconfig sets. */
export interface TlsOptions {
  /** PEM bundle that the server's certificate must lead to; absent: the system's. */
  readonly ca?: string;
  /** PEM client certificate (chain) and key. */
  readonly cert?: string;
  /** PEM private key of `cert`. */
  readonly key?: string;
  /** tls-server-name: the name to expect instead of the URL's host. */
  readonly servername?: string;
  /** false only for insecure-skip-tls-verify. */
  readonly rejectUnauthorized?: boolean;
}

/** A watcher's requests over HTTP. */
export function httpTransport(connection: ApiConnection, userAgent: string, clock: Clock): Transport {
  return (request) => sendHttp(connection, userAgent, clock, request);
}

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

/** A request that was answered, or that waited for its turn, for metrics. */
export interface RequestFacts {
  /** The method of the request. */
  readonly method: "GET" | "POST";
  /** Of the API server, with its port. */
  readonly host: string;
  /** Until its answer began, or until its turn came. */
  readonly milliseconds: number;
}

/** Is notified of requests to the API server, for metrics. */
export interface RequestObserver {
  /** The head of an answer is there, or (no code) there will be none. */
  answered(request: RequestFacts & { readonly code: number | undefined; readonly watch: boolean }): void;
  /** A request had its turn after this long. */
  waited(request: RequestFacts): void;
}

interface Observing {
  readonly observer: RequestObserver;
  readonly host: string;
  readonly clock: Clock;
}

export function observedTransport(transport: Transport, { observer, host, clock }: Observing): Transport {
  return async (request) => {
    const began = clock.monotonic();
    const watch = request.path.includes("watch=true");
    const answered = (code: number | undefined) =>
      observer.answered({ method: "GET", host, code, watch, milliseconds: clock.monotonic() - began });
    try {
      const response = await transport(request);
      answered(response.status);
      return response;
    } catch (error) {
      answered(undefined);
      throw error;
    }
  };
}

export function observedTokens(takeToken: TakeToken, { observer, host, clock }: Observing): TakeToken {
  return async (signal) => {
    const began = clock.monotonic();
    await takeToken(signal);
    observer.waited({ method: "GET", host, milliseconds: clock.monotonic() - began });
  };
}

/** Resolves when the caller may send one request; waiting requests are served in order. */
export type TakeToken = (signal: AbortSignal) => Promise<void>;

/**
 * clientConnection's qps and burst, as client-go's flow control: `burst` requests at once, then `qps` a second.
 *
 * @param qps requests a second; below zero: no limit, as in client-go
 */
export function tokenBucket(clock: Clock, qps: number, burst: number): TakeToken {
  if (qps < 0) return () => Promise.resolve();
  const capacity = Math.max(1, burst);
  let tokens = capacity;
  let at = clock.monotonic();
  return (signal) => {
    const now = clock.monotonic();
    tokens = Math.min(capacity, tokens + ((now - at) / 1000) * qps) - 1;
    at = now;
    // Below zero a token is promised that comes only later.
    return tokens >= 0 ? Promise.resolve() : sleep(clock, (-tokens / qps) * 1000, signal);
  };
}

/** Text in which URLs have lost their user and password, as `https://xxxxx@host`. */
export function withoutPasswords(text: string): string {
  // To the last @ before a space: in a malformed URL the password may hold anything.
  return text.replace(/([a-z][a-z0-9+.-]*:\/\/)[^\s"'<>]*@/gi, "$1xxxxx@");
}

/** The same of what should be a URL, its scheme left out perhaps. */
export function urlForMessages(text: string): string {
  return text.replace(/^([a-z][a-z0-9+.-]*:\/\/)?.*@/is, "$1xxxxx@");
}

const MOST_SAID = 500;

/**
 * What another program said, for a message: in quotes, on one line, without characters that act on a terminal, and cut.
 */
export function quoted(said: string): string {
  const text = withoutPasswords(said.trim());
  const escaped = JSON.stringify(text.slice(0, MOST_SAID)).replace(UNPRINTABLE, codeUnit);
  return text.length > MOST_SAID ? `${escaped} (cut)` : escaped;
}

/** A dead peer is noticed after this and ten unanswered probes, one a second (libuv's). */
const KEEP_ALIVE_PROBES_AFTER = 30_000;
/** From the request to the established connection, TLS included. */
const CONNECT_TIMEOUT = 10_000;

/**
 * Credentials go over TLS or not at all, as with client-go (clientcmd's ClientConfig); in plain text anybody
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
  // The reader of the body gets its errors; one that comes when nothing reads anymore must not end the process.
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

/** Controls that JSON leaves as they are, and characters that are invisible or turn the direction of writing. */
const UNPRINTABLE = /[\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g;

function codeUnit(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
}
