import { readFileSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { answerLines } from "../../../support/answer-lines.ts";
import { becomeNobody } from "./nobody.ts";

/**
 * Connects to every unix socket of this network namespace whose name has the word in it, without rights, and neither reads nor
 * closes; connections that the other side has ended are opened again. Says when it is asked how many are open now.
 * Usage: half-open-main.ts WORD CONNECTIONS
 */
const [, , word = "", connections = ""] = process.argv;
const AGAIN_MS = 500;

const names = new Set(
  readFileSync("/proc/net/unix", "utf8")
    .split("\n")
    .map((line) => line.split(" ").at(-1) ?? "")
    .filter((name) => name.includes(word)),
);
const paths = [...names].map((name) => name.replace(/^@/, "\0"));
const open = new Set<Socket>();

becomeNobody();
answerLines(() => String(open.size));
while (paths.length > 0) {
  while (open.size < Number(connections)) hold(paths[open.size % paths.length] ?? "");
  await sleep(AGAIN_MS);
}

function hold(path: string): void {
  const socket = connect({ path, allowHalfOpen: true });
  open.add(socket);
  // A paused socket never hears of the other side's end.
  socket.pause();
  socket.on("error", () => {});
  socket.on("close", () => open.delete(socket));
}
