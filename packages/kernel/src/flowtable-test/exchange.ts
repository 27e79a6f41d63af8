import { createSocket } from "node:dgram";
import { once } from "node:events";
import { connect, createServer } from "node:net";
import type { IPFamily } from "@fairlead/base";

interface Place {
  readonly address: string;
  readonly port: number;
}

/** Enters the client's network namespace, the server's. */
export interface Sides {
  readonly family: IPFamily;
  /** Where the server listens. */
  readonly server: Place;
  /** Where the client sends to. */
  readonly to: Place;
  readonly enter: (side: "client" | "server") => void;
}

/** Small messages, one after the answer to the one before. */
export const MESSAGES = 100;
/** Bytes in one piece: more than one packet has, so that segmentation has its part. */
const BULK = 1 << 20;

/**
 * Sends over one TCP connection and has everything back.
 *
 * @throws Error for an answer that is another one; waits where none comes
 */
export async function exchangeTCP({ server, to, enter }: Sides): Promise<void> {
  enter("server");
  const echo = createServer((socket) => socket.pipe(socket)).listen(server.port, server.address);
  await once(echo, "listening");
  enter("client");
  const socket = connect(to.port, to.address);
  await once(socket, "connect");
  const received: Buffer[] = [];
  let length = 0;
  let enough = () => {};
  socket.on("data", (bytes: Buffer) => {
    received.push(bytes);
    length += bytes.length;
    enough();
  });
  const arrived = (wanted: number) =>
    new Promise<void>((resolve) => {
      enough = () => length >= wanted && resolve();
      enough();
    });
  const sent: Buffer[] = [];
  const say = async (bytes: Buffer) => {
    sent.push(bytes);
    socket.write(bytes);
    await arrived(sent.reduce((sum, one) => sum + one.length, 0));
  };
  for (let message = 0; message < MESSAGES; message += 1) await say(Buffer.from(`message ${message}`));
  await say(Buffer.alloc(BULK, "0123456789abcdef"));
  socket.destroy();
  echo.close();
  if (!Buffer.concat(received).equals(Buffer.concat(sent))) throw new Error("TCP came back changed");
}

/**
 * Sends datagrams and has each back.
 *
 * @throws Error for an answer that is another one; waits where none comes
 */
export async function exchangeUDP({ family, server, to, enter }: Sides): Promise<void> {
  const type = family === "IPv4" ? "udp4" : "udp6";
  enter("server");
  const echo = createSocket(type, (bytes, from) => echo.send(bytes, from.port, from.address));
  echo.bind(server.port, server.address);
  await once(echo, "listening");
  enter("client");
  const socket = createSocket(type);
  socket.bind();
  await once(socket, "listening");
  for (let message = 0; message < MESSAGES; message += 1) {
    const text = `message ${message}`;
    const answer = once(socket, "message");
    socket.send(text, to.port, to.address);
    const [bytes] = await answer;
    if (String(bytes) !== text) throw new Error(`UDP: "${String(bytes)}" came back for "${text}"`);
  }
  socket.close();
  echo.close();
}
