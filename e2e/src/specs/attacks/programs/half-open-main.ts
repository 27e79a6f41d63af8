import { readFileSync } from "node:fs";
import { connect, type NetConnectOpts, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { answerLines } from "@fairlead/lab/support/script";
import { dropRights } from "./drop-rights.ts";

/**
 * Connects, without rights, to these ports of the loopback address, or to every unix socket of this network namespace
 * whose name has the word in it, and neither reads, writes nor closes; connections that the other side has ended are
 * opened again. Says when it is asked how many are open now.
 * Usage: half-open-main.ts CONNECTIONS PORT… | WORD
 */
const [, , connections = "", ...words] = process.argv;
const AGAIN_MS = 500;

const targets: readonly NetConnectOpts[] = words.flatMap(targetsOf);
const open = new Set<Socket>();

dropRights();
answerLines(() => String(open.size));
while (targets.length > 0) {
  for (let at = open.size; at < Number(connections); at++) hold(targets[at % targets.length]);
  await sleep(AGAIN_MS);
}

/** An abstract name begins with a zero, which the kernel's list shows as @. */
function targetsOf(word: string): readonly NetConnectOpts[] {
  if (/^\d+$/.test(word)) return [{ host: "127.0.0.1", port: Number(word), allowHalfOpen: true }];
  const lines = readFileSync("/proc/net/unix", "utf8").split("\n");
  const names = new Set(lines.map((line) => line.split(" ").at(-1) ?? "").filter((name) => name.includes(word)));
  return [...names].map((name) => ({ path: name.replace(/^@/, "\0"), allowHalfOpen: true }));
}

function hold(target: NetConnectOpts | undefined): void {
  if (target === undefined) return;
  const socket = connect(target);
  open.add(socket);
  // A paused socket never hears of the other side's end.
  socket.pause();
  socket.on("error", () => {});
  socket.on("close", () => open.delete(socket));
}
