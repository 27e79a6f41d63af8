import { once } from "node:events";
import { createServer } from "node:http";
import { json } from "node:stream/consumers";
import { messageOf } from "../../../support/errors.ts";

/** What the CNI plugin on a node asks for a pod. */
export interface PluginRequest {
  readonly node: string;
  /** The container's id: ADD and DEL of a pod have the same. */
  readonly container: string;
  /** Where the pod's namespace is mounted on the node; empty when it is gone. */
  readonly netns: string;
}

export type PluginCommand = (request: PluginRequest) => Promise<unknown>;

/** Answers the plugins of all nodes at a unix socket: a command each path; an error as the specification wants it. */
export async function servePlugin(socket: string, commands: Readonly<Record<string, PluginCommand>>) {
  const server = createServer(async (request, response) => {
    try {
      const command = commands[(request.url ?? "").slice(1)];
      if (command === undefined) throw new Error(`${request.url} is no command`);
      const answer = await command((await json(request)) as PluginRequest);
      response.end(JSON.stringify(answer));
    } catch (error) {
      response.statusCode = 500;
      response.end(JSON.stringify({ cniVersion: "1.0.0", code: 999, msg: messageOf(error) }));
    }
  });
  server.listen(socket);
  await once(server, "listening");
  return {
    dispose: async () => {
      server.close();
      server.closeAllConnections();
      await once(server, "close");
    },
  };
}
