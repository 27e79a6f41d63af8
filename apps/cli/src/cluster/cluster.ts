import type { Duplex } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { fieldsOf, stringOf } from "@fairlead/base";
import type { Runner } from "@fairlead/kernel";
import { ConnectionError } from "@fairlead/watch";
import type { Context } from "../frame/context.ts";
import { CommandFailure } from "../frame/errors.ts";
import type { ClusterAccess } from "./access.ts";
import { ApiError } from "./api-error.ts";
import { type OpenKubeconfig, openKubeconfig } from "./kubeconfig.ts";
import { connectToPod } from "./pod-port.ts";
import { type Container, podRunner } from "./pod-runner.ts";
import { Requests } from "./requests.ts";
import { inNamespace, type Manifest, PODS, pathOf, type Resource, resourceOf, type Selection } from "./resources.ts";

/**
 * A cluster, through its API server and with the caller's rights. Each call throws a CommandFailure that says what the
 * server answers (`ApiError`) or why it does not. An interrupted command cleans up by it: no call ends with its signal.
 */
export interface Cluster {
  /** Undefined: it is not there. */
  get(resource: Resource, name: string): Promise<unknown>;
  list(resource: Resource, selection?: Selection): Promise<readonly unknown[]>;
  create(object: Manifest): Promise<unknown>;
  /** With a resourceVersion in it the server refuses to write over what is newer. */
  replace(object: Manifest): Promise<unknown>;
  /** A merge patch (RFC 7396). */
  patch(resource: Resource, name: string, patch: object): Promise<void>;
  /** The same of the object's status. */
  patchStatus(resource: Resource, name: string, patch: object): Promise<void>;
  /** Server-side apply: what others have set in the same fields is taken over. */
  apply(object: Manifest): Promise<void>;
  /**
   * Deletes what is there, and waits until it is gone.
   *
   * @param dependents first: what it owns goes before it. Default: after it
   */
  remove(resource: Resource, name: string, dependents?: "first"): Promise<void>;
  /** Has an object deleted, and does not wait; one that is not there is no failure. */
  delete(resource: Resource, name: string): Promise<void>;
  /**
   * The end of what a container wrote, as it is.
   *
   * @param previous of the one that ran before it
   */
  log(container: Container, bounds: LogBounds & { readonly previous: boolean }): Promise<string>;
  /** Starts programs in a container. */
  runner(container: Container): Runner;
  /** A connection to a port of the pod. */
  connect(pod: Pick<Container, "namespace" | "name">, port: number): Promise<Duplex>;
}

/** How much of a log is wanted. */
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
  const opened = () => orFailure(openKubeconfig(access, context));
  let requesting: Promise<Requests> | undefined;
  const requests = () => {
    requesting ??= opened().then((one) => new Requests(one));
    return requesting;
  };
  return new ApiCluster(requests, opened);
}

class ApiCluster implements Cluster {
  readonly #requests: () => Promise<Requests>;
  readonly #opened: () => Promise<OpenKubeconfig>;

  constructor(requests: () => Promise<Requests>, opened: () => Promise<OpenKubeconfig>) {
    this.#requests = requests;
    this.#opened = opened;
  }

  async get(resource: Resource, name: string): Promise<unknown> {
    return unlessMissing(this.#send("GET", pathOf(resource, name)));
  }

  async list(resource: Resource, { labels, fields }: Selection = {}): Promise<readonly unknown[]> {
    const query = {
      ...(labels !== undefined && { labelSelector: labels }),
      ...(fields !== undefined && { fieldSelector: fields }),
    };
    const requests = await this.#requests();
    return requests.list({ path: pathOf(resource), query });
  }

  create(object: Manifest): Promise<unknown> {
    return this.#send("POST", pathOf(resourceOf(object)), { body: object, query: FIELD_MANAGER });
  }

  replace(object: Manifest): Promise<unknown> {
    const path = pathOf(resourceOf(object), object.metadata.name);
    return this.#send("PUT", path, { body: object, query: FIELD_MANAGER });
  }

  async patch(resource: Resource, name: string, patch: object): Promise<void> {
    const contentType = "application/merge-patch+json";
    await this.#send("PATCH", pathOf(resource, name), { body: patch, contentType, query: FIELD_MANAGER });
  }

  async patchStatus(resource: Resource, name: string, patch: object): Promise<void> {
    const path = `${pathOf(resource, name)}/status`;
    await this.#send("PATCH", path, { body: patch, contentType: "application/merge-patch+json", query: FIELD_MANAGER });
  }

  async apply(object: Manifest): Promise<void> {
    const path = pathOf(resourceOf(object), object.metadata.name);
    const query = { ...FIELD_MANAGER, force: "true" };
    // JSON is YAML.
    await this.#send("PATCH", path, { body: object, contentType: "application/apply-patch+yaml", query });
  }

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

  async delete(resource: Resource, name: string): Promise<void> {
    await unlessMissing(
      this.#send("DELETE", pathOf(resource, name), { body: { apiVersion: "v1", kind: "DeleteOptions" } }),
    );
  }

  async log(
    { namespace, name, container }: Container,
    { previous, lines, bytes }: LogBounds & { readonly previous: boolean },
  ): Promise<string> {
    const path = `${pathOf(inNamespace(PODS, namespace), name)}/log`;
    const bounds = { tailLines: String(lines), limitBytes: String(bytes) };
    const query = { container, ...bounds, ...(previous && { previous: "true" }) };
    return (await this.#requests()).text({ method: "GET", path, query });
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
    return (await this.#requests()).send({ method, path, ...more });
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
  return stringOf(fieldsOf(fieldsOf(object)["metadata"])["uid"]);
}
