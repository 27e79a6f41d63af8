/** Objects of another process over a stream: their data is there as it was, their methods ask that process. */

import { createInterface } from "node:readline";
import type { Duplex } from "node:stream";
import { messageOf } from "../../support/processes.ts";

/**
 * Gives the other side an object, and all that its methods give. Arguments and answers are JSON, and objects that were
 * given; each call and each reply is a line, and many may be under way.
 *
 * @returns reports progress to the other side
 */
export function shareOver(stream: Duplex, open: () => Promise<object>): (progress: string) => void {
  const shared: object[] = [{ open }];
  const ids = new Map<object, number>();
  const reference = (value: unknown) => {
    if (!isRecord(value)) return value;
    const methods = Object.keys(value).filter((name) => typeof value[name] === "function");
    if (methods.length === 0) return value;
    const id = ids.get(value) ?? shared.push(value) - 1;
    ids.set(value, id);
    return { ...value, [REFERENCE]: { id, methods } };
  };
  const write = (message: Reply | ProgressLine) => {
    if (stream.writable) stream.write(`${JSON.stringify(message, (_, value) => reference(value))}\n`);
  };
  createInterface({ input: stream }).on("line", async (line) => {
    const { call, id, name, args }: Call = JSON.parse(line, (_, value) => {
      const given = isRecord(value) ? value[REFERENCE] : undefined;
      return given === undefined ? value : shared[(given as Reference).id];
    });
    try {
      const object = shared[id];
      const method: unknown = object && Reflect.get(object, name);
      if (typeof method !== "function") throw new Error(`there is no ${name} in the guest`);
      // In JSON an argument that is left out is null.
      const given = args.map((one) => one ?? undefined);
      write({ call, value: (await Reflect.apply(method, object, given)) ?? null });
    } catch (error) {
      write({ call, failure: messageOf(error) });
    }
  });
  return (progress) => write({ progress });
}

/** What the other side shares. What is thrown there is thrown here, with the same message. */
export function remoteOver<T extends object>(stream: Duplex, onProgress: (line: string) => void): Promise<T> {
  const waiting = new Map<number, PromiseWithResolvers<unknown>>();
  const objects = new Map<number, object>();
  const ids = new Map<unknown, number>();
  let ended: Error | undefined;
  let calls = 0;
  const end = (error: Error) => {
    ended = error;
    for (const { reject } of waiting.values()) reject(error);
    waiting.clear();
  };
  const ask = (id: number, name: string, args: readonly unknown[]) => {
    if (ended !== undefined) return Promise.reject(ended);
    const call: Call = { call: calls++, id, name, args };
    const answer = Promise.withResolvers<unknown>();
    waiting.set(call.call, answer);
    const line = JSON.stringify(call, (_, value) => (ids.has(value) ? { [REFERENCE]: { id: ids.get(value) } } : value));
    stream.write(`${line}\n`);
    return answer.promise;
  };
  const object = (value: unknown) => {
    if (!isRecord(value)) return value;
    const { [REFERENCE]: given, ...data } = value;
    if (given === undefined) return value;
    const { id, methods } = given as Reference;
    const asking = methods.map((name) => [name, (...args: readonly unknown[]) => ask(id, name, args)] as const);
    const made = objects.get(id) ?? Object.assign(data, Object.fromEntries(asking));
    objects.set(id, made);
    ids.set(made, id);
    return made;
  };
  createInterface({ input: stream }).on("line", (line) => {
    const message: Reply | ProgressLine = JSON.parse(line, (_, value) => object(value));
    if ("progress" in message) return onProgress(message.progress);
    const answer = waiting.get(message.call);
    waiting.delete(message.call);
    if ("failure" in message) answer?.reject(new Error(message.failure));
    else answer?.resolve(message.value);
  });
  stream.on("error", end);
  stream.on("close", () => end(new Error("the guest has ended")));
  // The other side has the same types.
  return ask(0, "open", []) as Promise<T>;
}

/** The key of an object with methods in a line of JSON. */
const REFERENCE = "$object";

interface Reference {
  readonly id: number;
  readonly methods: readonly string[];
}

interface Call {
  readonly call: number;
  /** Of the object. */
  readonly id: number;
  readonly name: string;
  readonly args: readonly unknown[];
}

type Reply = { readonly call: number } & ({ readonly value: unknown } | { readonly failure: string });

/** A line that answers no call. */
interface ProgressLine {
  readonly progress: string;
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
