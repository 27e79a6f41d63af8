/** A peer as a process in a namespace, as its starter sees it. */

import { fileURLToPath } from "node:url";
import type { NetworkNamespace } from "@fairlead/kernel/netns";
import { spawnScript } from "../support/script.ts";
import type { PeerReply, PeerSettings, Probe, ProbeResult } from "./protocol.ts";

/** A process inside a namespace that serves and sends. */
export interface Peer {
  readonly name: string;
  send(probe: Probe): Promise<readonly ProbeResult[]>;
  stop(): Promise<void>;
}

const SCRIPT = fileURLToPath(new URL("main.ts", import.meta.url));

interface Waiting {
  readonly resolve: (results: readonly ProbeResult[]) => void;
  readonly reject: (error: Error) => void;
}

/** Starts a peer and waits until it listens. */
export async function startPeer(namespace: NetworkNamespace, settings: PeerSettings): Promise<Peer> {
  const { child, lines } = spawnScript(namespace, SCRIPT, [JSON.stringify(settings)]);
  const waiting = new Map<number, Waiting>();
  const ready = Promise.withResolvers<void>();
  lines.on("line", (line) => (line === "ready" ? ready.resolve() : settle(waiting, JSON.parse(line))));
  let over: Error | undefined;
  const ended = child.then(({ stderr }) => {
    const error = new Error(`peer ${settings.name} ended: ${stderr}`);
    over = error;
    ready.reject(error);
    for (const { reject } of waiting.values()) reject(error);
    waiting.clear();
  });
  await ready.promise;
  let next = 0;
  return {
    name: settings.name,
    send: (probe) =>
      new Promise((resolve, reject) => {
        if (over !== undefined) throw over;
        const id = next++;
        waiting.set(id, { resolve, reject });
        child.stdin.write(`${JSON.stringify({ id, probe })}\n`);
      }),
    stop: async () => {
      child.stdin.end();
      await ended;
    },
  };
}

function settle(waiting: Map<number, Waiting>, reply: PeerReply): void {
  const call = waiting.get(reply.id);
  waiting.delete(reply.id);
  if ("failure" in reply) call?.reject(new Error(reply.failure));
  else call?.resolve(reply.results);
}
