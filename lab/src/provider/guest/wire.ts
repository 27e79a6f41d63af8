import { createInterface } from "node:readline";
import type { Duplex } from "node:stream";
import { messageOf } from "../../support/errors.ts";
import type { GuestCalls } from "./calls.ts";

type Name = keyof GuestCalls;

interface Request {
  readonly id: number;
  readonly name: Name;
  readonly args: readonly unknown[];
}

type Reply = { readonly id: number } & ({ readonly value: unknown } | { readonly failure: string });

/** A line that answers no request. */
interface ProgressLine {
  readonly progress: string;
}

/** Asks the other side; what it throws there is thrown here, with the same message. */
export type Ask = <N extends Name>(
  name: N,
  ...args: Parameters<GuestCalls[N]>
) => Promise<Awaited<ReturnType<GuestCalls[N]>>>;

/** Each request and each reply is one line of JSON; many may be under way. */
export function askOver(stream: Duplex, onProgress: (line: string) => void): Ask {
  const waiting = new Map<number, PromiseWithResolvers<never>>();
  let ended: Error | undefined;
  const end = (error: Error) => {
    ended = error;
    for (const { reject } of waiting.values()) reject(error);
    waiting.clear();
  };
  createInterface({ input: stream }).on("line", (line) => {
    const message: Reply | ProgressLine = JSON.parse(line);
    if ("progress" in message) onProgress(message.progress);
    else settle(waiting, message);
  });
  stream.on("error", end);
  stream.on("close", () => end(new Error("the guest has ended")));
  let next = 0;
  return (name, ...args) => {
    const call = Promise.withResolvers<never>();
    if (ended !== undefined) call.reject(ended);
    else {
      const request: Request = { id: next++, name, args };
      waiting.set(request.id, call);
      stream.write(`${JSON.stringify(request)}\n`);
    }
    return call.promise;
  };
}

function settle(waiting: Map<number, PromiseWithResolvers<never>>, reply: Reply): void {
  const call = waiting.get(reply.id);
  waiting.delete(reply.id);
  if ("failure" in reply) call?.reject(new Error(reply.failure));
  // The other side has the same types.
  else call?.resolve(reply.value as never);
}

/** Answers what the other side asks. Gives the way to tell it of progress. */
export function answerOver(stream: Duplex, calls: GuestCalls): (progress: string) => void {
  const write = (message: Reply | ProgressLine) => {
    if (stream.writable) stream.write(`${JSON.stringify(message)}\n`);
  };
  createInterface({ input: stream }).on("line", async (line) => {
    const { id, name, args }: Request = JSON.parse(line);
    try {
      write({ id, value: (await Reflect.apply(calls[name], calls, args)) ?? null });
    } catch (error) {
      write({ id, failure: messageOf(error) });
    }
  });
  return (progress) => write({ progress });
}
