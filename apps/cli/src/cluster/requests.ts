import { type IncomingMessage, request as overHttp, type RequestOptions } from "node:http";
import { request as overTLS } from "node:https";
import { text } from "node:stream/consumers";
import { fieldsOf, itemsOf, stringOf } from "@fairlead/base";
import { ConnectionError } from "@fairlead/watch";
import { CommandFailure } from "../frame/errors.ts";
import { version } from "../version.ts";
import { notJson, refusal, unreachable } from "./api-error.ts";
import type { OpenKubeconfig } from "./kubeconfig.ts";
import { signalWithin } from "./request-timeout.ts";

export interface ApiCall {
  readonly method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  readonly path: string;
  readonly query?: Readonly<Record<string, string>>;
  readonly body?: object;
  /** Default: application/json. */
  readonly contentType?: string;
}

/** Milliseconds of one request. */
const PATIENCE_MS = 60_000;

/** Objects that one answer has at most, as kubectl asks for them. */
const CHUNK = "500";

/**
 * Requests with the client library's credentials, trust and proxies. JSON is given as it is: the library's own models
 * leave out fields that they do not know, and what is written back would lack them.
 */
export class Requests {
  readonly #opened: OpenKubeconfig;

  constructor(opened: OpenKubeconfig) {
    this.#opened = opened;
  }

  /**
   * @returns the answer's JSON
   * @throws ApiError for another status than 2xx; CommandFailure when there is no answer
   */
  async send(call: ApiCall): Promise<unknown> {
    const text = await this.text(call);
    try {
      return JSON.parse(text);
    } catch (error) {
      throw notJson(text, this.#opened, error);
    }
  }

  /**
   * @returns the answer as it is
   * @throws ApiError for another status than 2xx; CommandFailure when there is no answer
   */
  async text(call: ApiCall): Promise<string> {
    const { status, text } = await this.#answer(call);
    if (status < 200 || status > 299) throw refusal(status, text, this.#opened);
    return text;
  }

  /** All objects of a collection, in as many answers as the server makes of them. */
  async list(call: Omit<ApiCall, "method">): Promise<readonly unknown[]> {
    const items: unknown[] = [];
    let next: string | undefined;
    do {
      const query = { ...call.query, limit: CHUNK, ...(next !== undefined && { continue: next }) };
      const answer = fieldsOf(await this.send({ ...call, method: "GET", query }));
      for (const item of itemsOf(answer["items"])) items.push(item);
      next = stringOf(fieldsOf(answer["metadata"])["continue"]) || undefined;
    } while (next !== undefined);
    return items;
  }

  async #answer(call: ApiCall) {
    const { requestMs = PATIENCE_MS } = this.#opened;
    const signal = signalWithin(requestMs);
    try {
      return await answerTo(call, this.#opened, signal);
    } catch (error) {
      if (error instanceof ConnectionError) throw new CommandFailure(error.message, { cause: error });
      throw unreachable(
        signal?.aborted === true ? new Error(`no answer within ${requestMs / 1_000} s`) : error,
        this.#opened,
      );
    }
  }
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
    const send = url.protocol === "https:" ? overTLS : overHttp;
    send(url, { ...options, headers, ...(signal && { signal }) }, resolve)
      .on("error", reject)
      .end(content);
  });
  return { status: response.statusCode ?? 0, text: await text(response) };
}
