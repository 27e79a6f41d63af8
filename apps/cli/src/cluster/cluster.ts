import { type IncomingMessage, request as overHttp, type RequestOptions } from "node:http";
import { request as overTLS } from "node:https";
import type { Duplex } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { fieldsOf, itemsOf, stringOf, valueAt } from "@fairlead/base";
import type { Runner } from "@fairlead/kernel";
import { ConnectionError } from "@fairlead/watch";
import type { Context } from "../frame/context.ts";
import { CommandFailure } from "../frame/errors.ts";
import { version } from "../version.ts";
import type { ClusterAccess } from "./access.ts";
import { ApiError, notJson, refusal, unreachable } from "./api-error.ts";
import { type OpenKubeconfig, openKubeconfig, signalWithin } from "./kubeconfig.ts";
import { boundedText, type Container, connectToPod, LargeAnswer, podRunner } from "./pods.ts";
import { inNamespace, type Manifest, PODS, pathOf, type Resource, resourceOf, type Selection } from "./resources.ts";

export interface LogBounds {
  readonly lines: number;
  readonly bytes: number;
}

/** The owner of fields, for server-side apply. */
const FIELD_MANAGER = { fieldManager: "fairlead" };

/** Milliseconds between two looks at what is to go, and until it must be gone. */
const LOOK_MS = 500;
const GONE_MS = 120_000;

/** The client library is loaded, and the kubeconfig read, with the first call. */
export function openCluster(access: ClusterAccess, context: Pick<Context, "env" | "warn">): Cluster {
  return new Cluster(() => orFailure(openKubeconfig(access, context)));
}

/**
 * A cluster, through its API server and with the caller's rights. Each call throws a CommandFailure that says what the
 * server answers (`ApiError`) or why it does not. An interrupted command cleans up by it: no call ends with its signal.
 */
export class Cluster {
  readonly #opened: () => Promise<OpenKubeconfig>;

  constructor(opened: () => Promise<OpenKubeconfig>) {
    this.#opened = opened;
  }

  /** Undefined: it is not there. */
  async get(resource: Resource, name: string): Promise<unknown> {
    return unlessMissing(this.#send("GET", pathOf(resource, name)));
  }

  async list(resource: Resource, { labels, fields }: Selection = {}): Promise<readonly unknown[]> {
    const query = {
      ...(labels !== undefined && { labelSelector: labels }),
      ...(fields !== undefined && { fieldSelector: fields }),
    };
    return objectsOf({ path: pathOf(resource), query }, await this.#opened());
  }

  create(object: Manifest): Promise<unknown> {
    return this.#send("POST", pathOf(resourceOf(object)), { body: object, query: FIELD_MANAGER });
  }

  /** With a resourceVersion in it the server refuses to write over what is newer. */
  replace(object: Manifest): Promise<unknown> {
    const path = pathOf(resourceOf(object), object.metadata.name);
    return this.#send("PUT", path, { body: object, query: FIELD_MANAGER });
  }

  /**
   * A merge patch (RFC 7396).
   *
   * @param of status: of the object's status
   */
  async patch(resource: Resource, name: string, patch: object, of?: "status"): Promise<void> {
    const path = `${pathOf(resource, name)}${of === undefined ? "" : `/${of}`}`;
    await this.#send("PATCH", path, { body: patch, contentType: "application/merge-patch+json", query: FIELD_MANAGER });
  }

  /** Server-side apply: what others have set in the same fields is taken over. */
  async apply(object: Manifest): Promise<void> {
    const path = pathOf(resourceOf(object), object.metadata.name);
    const query = { ...FIELD_MANAGER, force: "true" };
    // JSON is YAML.
    await this.#send("PATCH", path, { body: object, contentType: "application/apply-patch+yaml", query });
  }

  /**
   * Deletes what is there, and waits until it is gone.
   *
   * @param dependents first: what it owns goes before it. Default: after it
   */
  async remove(resource: Resource, name: string, dependents?: "first"): Promise<void> {
    const path = pathOf(resource, name);
    const found = await this.get(resource, name);
    if (found === undefined) return;
    const before = uidOf(found);
    const propagationPolicy = dependents === "first" ? "Foreground" : "Background";
    const body = { apiVersion: "v1", kind: "DeleteOptions", propagationPolicy };
    await unlessMissing(this.#send("DELETE", path, { body }));
    const end = performance.now() + GONE_MS;
    for (;;) {
      const now = await this.get(resource, name);
      if (now === undefined || uidOf(now) !== before) return;
      if (performance.now() > end)
        throw new CommandFailure(`${path} is not gone ${GONE_MS / 1000} s after its deletion`);
      await sleep(LOOK_MS);
    }
  }

  /** Has an object deleted, and does not wait; one that is not there is no failure. */
  async delete(resource: Resource, name: string): Promise<void> {
    await unlessMissing(
      this.#send("DELETE", pathOf(resource, name), { body: { apiVersion: "v1", kind: "DeleteOptions" } }),
    );
  }

  /**
   * The end of what a container wrote, as it is.
   *
   * @param previous of the one that ran before it
   */
  async log(
    { namespace, name, container }: Container,
    { previous, lines, bytes }: LogBounds & { readonly previous: boolean },
  ): Promise<string> {
    const path = `${pathOf(inNamespace(PODS, namespace), name)}/log`;
    const bounds = { tailLines: String(lines), limitBytes: String(bytes) };
    const query = { container, ...bounds, ...(previous && { previous: "true" }) };
    return text({ method: "GET", path, query }, await this.#opened());
  }

  runner(container: Container): Runner {
    return podRunner(container, this.#opened);
  }

  async connect(pod: Pick<Container, "namespace" | "name">, port: number): Promise<Duplex> {
    return connectToPod(pod, port, await this.#opened());
  }

  async #send(
    method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE",
    path: string,
    more: { readonly body?: object; readonly contentType?: string; readonly query?: Record<string, string> } = {},
  ): Promise<unknown> {
    return send({ method, path, ...more }, await this.#opened());
  }
}

/** Undefined where the server does not have what is asked for: an object, or a whole resource. */
export async function unlessMissing<T>(asking: Promise<T>): Promise<T | undefined> {
  try {
    return await asking;
  } catch (error) {
    if (error instanceof ApiError && error.status === 404) return undefined;
    throw error;
  }
}

async function orFailure<T>(work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    throw error instanceof ConnectionError ? new CommandFailure(error.message, { cause: error }) : error;
  }
}

function uidOf(object: unknown): string | undefined {
  return stringOf(valueAt(object, "metadata", "uid"));
}

interface ApiCall {
  readonly method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  readonly path: string;
  readonly query?: Readonly<Record<string, string>>;
  readonly body?: object;
  /** Default: application/json. */
  readonly contentType?: string;
}

/**
 * Bytes of one answer: a chunk of a list has megabytes, the largest objects in each place of one these. What listens at
 * the address may be any program. Logs come by here with a limit of their own; exec and port-forward are streams.
 */
const MOST_BYTES = 256 << 20;

/** Milliseconds of one request. */
const PATIENCE_MS = 60_000;

/** Objects that one answer has at most, as kubectl asks for them. */
const CHUNK = "500";

/**
 * A request with the client library's credentials, trust and proxies. JSON is given as it is: the library's own models
 * leave out fields that they do not know, and what is written back would lack them.
 *
 * @returns the answer's JSON
 * @throws ApiError for another status than 2xx; CommandFailure when there is no answer
 */
async function send(call: ApiCall, opened: OpenKubeconfig): Promise<unknown> {
  const answer = await text(call, opened);
  try {
    return JSON.parse(answer);
  } catch (error) {
    throw notJson(answer, opened, error);
  }
}

/** The same as it is. */
async function text(call: ApiCall, opened: OpenKubeconfig): Promise<string> {
  const { requestMs = PATIENCE_MS, server } = opened;
  const signal = signalWithin(requestMs);
  const answer = await answerTo(call, opened, signal).catch((error: unknown) => {
    if (error instanceof LargeAnswer)
      throw new CommandFailure(`the API server ${server} ${error.message}`, { cause: error });
    if (error instanceof ConnectionError) throw new CommandFailure(error.message, { cause: error });
    throw unreachable(signal?.aborted === true ? new Error(`no answer within ${requestMs / 1_000} s`) : error, opened);
  });
  if (answer.status < 200 || answer.status > 299) throw refusal(answer.status, answer.text, opened);
  return answer.text;
}

/** All objects of a collection, in as many answers as the server makes of them. */
async function objectsOf(call: Omit<ApiCall, "method">, opened: OpenKubeconfig): Promise<readonly unknown[]> {
  const items: unknown[] = [];
  let next: string | undefined;
  do {
    const query = { ...call.query, limit: CHUNK, ...(next !== undefined && { continue: next }) };
    const answer = fieldsOf(await send({ ...call, method: "GET", query }, opened));
    for (const item of itemsOf(answer["items"])) items.push(item);
    next = stringOf(fieldsOf(answer["metadata"])["continue"]) || undefined;
  } while (next !== undefined);
  return items;
}

async function answerTo(
  { method, path, query = {}, body, contentType = "application/json" }: ApiCall,
  { config, server }: OpenKubeconfig,
  signal: AbortSignal | undefined,
) {
  const options: RequestOptions = { method };
  await config.applyToHTTPSOptions(options);
  const url = new URL(server + path);
  for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value);
  const content = body === undefined ? undefined : JSON.stringify(body);
  const headers = {
    ...options.headers,
    accept: "application/json",
    "user-agent": `fairlead/${version}`,
    ...(content !== undefined && { "content-type": contentType, "content-length": Buffer.byteLength(content) }),
  };
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    const ask = url.protocol === "https:" ? overTLS : overHttp;
    ask(url, { ...options, headers, ...(signal && { signal }) }, resolve)
      .on("error", reject)
      .end(content);
  });
  return { status: response.statusCode ?? 0, text: await boundedText(response, MOST_BYTES, "no API server") };
}
