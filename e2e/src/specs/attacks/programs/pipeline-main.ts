import { connect } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { answerLines } from "@fairlead/lab/support/script";

/**
 * Sends requests without waiting for answers, many on each connection, again and again. By turns a connection reads
 * what comes, reads nothing, or is gone at once. Says when it is asked how many requests it has sent.
 * Usage: pipeline-main.ts PORT PATH REQUESTS CONNECTIONS
 */
const [, , port = "", path = "", requests = "", connections = ""] = process.argv;
const text = `GET ${path} HTTP/1.1\r\nHost: node\r\n\r\n`.repeat(Number(requests));
/** For those who read, or do not. */
const STAY_MS = 10_000;
const GONE_MS = 200;

let sent = 0;
answerLines(() => String(sent));
await Promise.all(Array.from({ length: Number(connections) }, (_, at) => lane(at)));

async function lane(at: number): Promise<void> {
  for (let turn = at; ; turn++) {
    const stays = turn % 3 !== 2;
    const socket = connect({ host: "127.0.0.1", port: Number(port) });
    socket.on("error", () => {});
    socket.write(text, () => {
      sent += Number(requests);
    });
    if (turn % 3 === 0) socket.resume();
    else socket.pause();
    const closed = new Promise<void>((resolve) => socket.once("close", () => resolve()));
    await Promise.race([closed, sleep(stays ? STAY_MS : GONE_MS)]);
    socket.destroy();
    await sleep(GONE_MS);
  }
}
