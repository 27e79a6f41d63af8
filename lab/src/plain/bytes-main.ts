import { createHash } from "node:crypto";
import { once } from "node:events";
import { connect, createServer } from "node:net";
import { answerLines } from "../support/script.ts";

/**
 * Runs inside a namespace. `serve PORT`: each connection begins with a line `BYTES`, and is answered with as many.
 * `fetch HOST PORT`: asks for as many bytes as a line says, and answers what came, as JSON. The bytes are such that
 * none can be lost or change its place.
 */
const [role, ...args] = process.argv.slice(2);

/** A prime, so that pieces of a power of two never look alike. */
const PERIOD = 65_521;
const block = Buffer.from(Uint8Array.from({ length: PERIOD }, (_, index) => (index * 31) % 251));

if (role === "serve") await serve(Number(args[0]));
else answerLines(async (line) => JSON.stringify(await fetchBytes(args[0] ?? "", Number(args[1]), Number(line))));

async function serve(port: number): Promise<void> {
  const server = createServer((socket) => {
    socket.on("error", () => socket.destroy());
    socket.once("data", (line) => {
      let left = Number(String(line).trim());
      const write = () => {
        while (left > 0) {
          const piece = left < PERIOD ? block.subarray(0, left) : block;
          left -= piece.length;
          if (!socket.write(piece)) return;
        }
        socket.end();
      };
      socket.on("drain", write);
      write();
    });
  });
  server.listen(port, "::");
  await once(server, "listening");
  answerLines(() => "listening");
}

async function fetchBytes(host: string, port: number, bytes: number) {
  const expected = expectedDigest(bytes);
  const hash = createHash("md5");
  const started = performance.now();
  const socket = connect(port, host);
  socket.write(`${bytes}\n`);
  let received = 0;
  for await (const piece of socket) {
    received += piece.length;
    hash.update(piece);
  }
  const ms = performance.now() - started;
  return { received, intact: hash.digest("hex") === expected, ms };
}

function expectedDigest(bytes: number): string {
  const hash = createHash("md5");
  for (let left = bytes; left > 0; left -= PERIOD) hash.update(left < PERIOD ? block.subarray(0, left) : block);
  return hash.digest("hex");
}
