import type { IncomingMessage } from "node:http";
import { PassThrough } from "node:stream";
import { text } from "node:stream/consumers";
import type { WebSocketHandler } from "@kubernetes/client-node/dist/web-socket-handler.js";
import type { ClientOptions, ErrorEvent, MessageEvent, WebSocket } from "ws";
import { CommandFailure } from "../frame/errors.ts";
import { refusal, unreachable } from "./api-error.ts";
import type { OpenKubeconfig } from "./kubeconfig.ts";

/** Milliseconds until a connection to a pod must be open. */
const HANDSHAKE_MS = 15_000;

/** Opens connections to pods by the library, with errors that say what the API server says. */
export async function webSocketHandler(opened: OpenKubeconfig): Promise<WebSocketHandler> {
  const library = await import("./library.ts");
  const open = (uri: string, protocols: string[], options: ClientOptions) => {
    const handshakeTimeout = Math.min(opened.requestMs ?? HANDSHAKE_MS, HANDSHAKE_MS);
    const settings = { ...options, handshakeTimeout, perMessageDeflate: false };
    const socket = new library.WebSocket(uri, protocols, settings);
    catchHandlerErrors(socket);
    socket.on("unexpected-response", (_request, response) => void refuse(socket, response, opened));
    return socket;
  };
  // By default what a server closes would be the streams of this process.
  const unused = { stdin: new PassThrough(), stdout: new PassThrough(), stderr: new PassThrough() };
  return new library.WebSocketHandler(opened.config, open, unused);
}

/** The library throws at a message that it does not understand, where nothing else could catch it. */
function catchHandlerErrors(socket: WebSocket): void {
  Object.defineProperty(socket, "onmessage", {
    set: (handle: (event: MessageEvent) => void) =>
      socket.addEventListener("message", (event) => {
        try {
          handle(event);
        } catch (error) {
          socket.emit("error", error);
          socket.terminate();
        }
      }),
  });
}

/** The library would say only "Unexpected server response: 403". */
async function refuse(socket: WebSocket, response: IncomingMessage, opened: OpenKubeconfig): Promise<void> {
  const body = await text(response).catch(() => "");
  socket.emit("error", refusal(response.statusCode ?? 0, body, opened));
  socket.terminate();
}

/**
 * @throws CommandFailure in the place of the event that the library gives
 */
export async function connected(opening: Promise<WebSocket>, opened: OpenKubeconfig): Promise<WebSocket> {
  try {
    return await opening;
  } catch (event) {
    const error = isErrorEvent(event) ? event.error : event;
    throw error instanceof CommandFailure ? error : unreachable(error, opened);
  }
}

function isErrorEvent(event: unknown): event is ErrorEvent {
  return typeof event === "object" && event !== null && "error" in event;
}
