import { connect, type NetConnectOpts, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { answerLines } from "@fairlead/lab/support/script";

/**
 * Connects, without rights, to these ports of the loopback address, and neither reads, writes nor closes; connections
 * that the other side has ended are opened again. Says when it is asked how many are open now.
 * Usage: half-open-main.ts CONNECTIONS PORT…
 */
const [, , connections = "", ...ports] = process.argv;
const AGAIN_MS = 500;
/** The kernel's overflow ID, an account without rights; in a user namespace without it the process keeps its own. */
const OVERFLOW_ID = 65_534;

const targets = ports.map((port): NetConnectOpts => ({ host: "127.0.0.1", port: Number(port), allowHalfOpen: true }));
const open = new Set<Socket>();

dropRights();
answerLines(() => String(open.size));
for (;;) {
  for (let at = open.size; at < Number(connections); at++) hold(targets[at % targets.length]);
  await sleep(AGAIN_MS);
}

/** From now on this process has only the rights of all users. */
function dropRights(): void {
  try {
    process.setgroups?.([]);
    process.setgid?.(OVERFLOW_ID);
    process.setuid?.(OVERFLOW_ID);
  } catch (error) {
    if (process.getuid?.() === 0 && process.env["USER"] === "root") throw error;
  }
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
