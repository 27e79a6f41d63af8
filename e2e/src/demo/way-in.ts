import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";
import { join } from "node:path";
import type { NetworkNamespace } from "@fairlead/kernel/netns";
import { relayArgv } from "@fairlead/lab/control-plane/control-plane";
import { startDaemon } from "@fairlead/lab/support/processes";

/** A port of 127.0.0.1 that leads to the same one inside a namespace. */
export interface WayIn extends AsyncDisposable {
  readonly port: number;
}

/**
 * By a unix socket, which is reached from every network namespace: none of them gets an interface for it.
 *
 * @param folder for that socket and a log
 */
export async function openWayIn(namespace: NetworkNamespace, folder: string): Promise<WayIn> {
  await using opened = new AsyncDisposableStack();
  const path = join(folder, "console.sock");
  const sockets = new Set<Socket>();
  const server = createServer((near) => {
    const far = connect(path);
    for (const [one, other] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(one);
      one.pipe(other);
      one.on("error", () => other.destroy());
      one.on("close", () => {
        sockets.delete(one);
        other.destroy();
      });
    }
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  opened.defer(async () => {
    for (const socket of sockets) socket.destroy();
    server.close();
    await once(server, "close");
  });
  const bound = server.address();
  const port = bound !== null && typeof bound === "object" ? bound.port : 0;
  const argv = relayArgv(path, `127.0.0.1:${port}`);
  const relay = await startDaemon(namespace, { name: "way-in", argv, logFile: join(folder, "way-in.log") });
  opened.defer(() => relay.stop());
  const kept = opened.move();
  return { port, [Symbol.asyncDispose]: () => kept.disposeAsync() };
}
