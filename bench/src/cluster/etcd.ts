import { Agent, request } from "node:http";
import { text } from "node:stream/consumers";
import type { ApiObject } from "@fairlead/lab/control-plane/api-client";

/** etcd's own limits for one transaction are 128 operations and 1.5 MB. */
const OPERATIONS = 128;
const BYTES = 1_000_000;
const TIMEOUT_MS = 60_000;

/** An object and the key that the API server finds it under. */
export type StoredObject = readonly [key: string, object: ApiObject];

/** Writes what an API server keeps, without asking that. */
export class Etcd {
  readonly #socketPath: string;
  readonly #agent = new Agent({ keepAlive: true });

  /** @param socketPath of a unix socket that leads to etcd's address for clients */
  constructor(socketPath: string) {
    this.#socketPath = socketPath;
  }

  /** Many in each transaction. @throws Error when one is refused */
  async put(objects: Iterable<StoredObject>): Promise<void> {
    let operations: string[] = [];
    let bytes = 0;
    for (const [key, object] of objects) {
      const operation = JSON.stringify({ requestPut: { key: base64(key), value: base64(JSON.stringify(object)) } });
      if (operations.length === OPERATIONS || bytes + operation.length > BYTES) {
        await this.#transaction(operations);
        operations = [];
        bytes = 0;
      }
      operations.push(operation);
      bytes += operation.length;
    }
    if (operations.length > 0) await this.#transaction(operations);
  }

  close(): void {
    this.#agent.destroy();
  }

  /** By etcd's gateway for JSON. */
  #transaction(operations: readonly string[]): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const outgoing = request({
      agent: this.#agent,
      socketPath: this.#socketPath,
      path: "/v3/kv/txn",
      method: "POST",
      timeout: TIMEOUT_MS,
      headers: { host: "etcd", "content-type": "application/json" },
    });
    outgoing.on("timeout", () => outgoing.destroy(new Error(`etcd: no answer in ${TIMEOUT_MS} ms`)));
    outgoing.on("error", reject);
    outgoing.on("response", async (response) => {
      const answer = await text(response);
      if (response.statusCode === 200) resolve();
      else reject(new Error(`etcd: ${response.statusCode} ${answer}`));
    });
    outgoing.end(`{"success":[${operations.join(",")}]}`);
    return promise;
  }
}

function base64(value: string): string {
  return Buffer.from(value).toString("base64");
}
