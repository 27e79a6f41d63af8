import { randomInt } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:net";
import { errorCode } from "@fairlead/base";

/** Below the ports that the kernel chooses by itself, so that no server of port 0 takes it meanwhile. */
const PORTS = [20_000, 32_000] as const;

/** A port of 127.0.0.1 that was free just now. */
export async function freePort(): Promise<number> {
  const port = randomInt(...PORTS);
  const server = createServer().listen(port, "127.0.0.1");
  try {
    await once(server, "listening");
  } catch (error) {
    if (errorCode(error) === "EADDRINUSE") return freePort();
    throw error;
  }
  server.close();
  await once(server, "close");
  return port;
}
