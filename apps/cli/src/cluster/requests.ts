import { fieldsOf, itemsOf, stringOf } from "@fairlead/base";
import { ConnectionError } from "@fairlead/watch";
import type { Configuration, HttpMethod } from "@kubernetes/client-node";
import { CommandFailure } from "../frame/errors.ts";
import { version } from "../version.ts";
import { notJson, refusal, unreachable } from "./api-error.ts";
import type { OpenKubeconfig } from "./kubeconfig.ts";

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

/** Requests through the client library's transport. */
export class Requests {
  readonly #opened: OpenKubeconfig;
  readonly #api: RawApi;

  constructor(opened: OpenKubeconfig) {
    this.#opened = opened;
    this.#api = opened.config.makeApiClient(RawApi);
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
    try {
      return await this.#api.send(call);
    } catch (error) {
      if (error instanceof ConnectionError) throw new CommandFailure(error.message, { cause: error });
      throw unreachable(error, this.#opened);
    }
  }
}

/**
 * JSON as it is: the library's own models leave out fields that they do not know, and what is written back would lack
 * them.
 */
class RawApi {
  readonly #configuration: Configuration;

  constructor(configuration: Configuration) {
    this.#configuration = configuration;
  }

  async send({ method, path, query = {}, body, contentType = "application/json" }: ApiCall) {
    const { baseServer, authMethods, httpApi } = this.#configuration;
    // The names are HTTP's.
    const request = baseServer.makeRequestContext(path, method as HttpMethod);
    for (const [name, value] of Object.entries(query)) request.setQueryParam(name, value);
    request.setHeaderParam("accept", "application/json");
    request.setHeaderParam("user-agent", `fairlead/${version}`);
    if (body !== undefined) {
      request.setHeaderParam("content-type", contentType);
      request.setBody(JSON.stringify(body));
    }
    request.setSignal(AbortSignal.timeout(PATIENCE_MS));
    await authMethods.default?.applySecurityAuthentication(request);
    const response = await httpApi.send(request).toPromise();
    return { status: response.httpStatusCode, text: await response.body.text() };
  }
}
