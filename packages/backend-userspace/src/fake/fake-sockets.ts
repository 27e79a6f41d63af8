import { socketText } from "@fairlead/base";
import type { PlanEndpoint } from "@fairlead/core";
import { type OpenRelay, type RelayRequest, takeSockets } from "../relay/relay.ts";

/** Listening sockets in memory: pass `open` as the backend's option of that name. */
export class FakeSockets {
  readonly #listening = new Map<string, RelayRequest>();
  /** `address:port protocol` of sockets that other programs have. */
  readonly taken = new Set<string>();
  #next = 40_000;

  /** `address:port protocol` of every socket that is open. */
  get listening(): readonly string[] {
    return [...this.#listening.keys()].sort();
  }

  /**
   * Opens a relay that listens nowhere; a wanted port 0 gets the next free number.
   *
   * @throws Error with the code EADDRINUSE for a socket that is taken
   */
  readonly open = async (request: RelayRequest): Promise<OpenRelay> => {
    const port = request.port === 0 ? this.#next++ : request.port;
    const key = socketKey(request.protocol, socketText(request.address, port));
    if (this.#listening.has(key) || this.taken.has(key)) {
      throw Object.assign(new Error(`listen EADDRINUSE: ${key}`), { code: "EADDRINUSE" });
    }
    this.#listening.set(key, request);
    takeSockets(request, 1);
    return {
      port,
      *refresh() {},
      close: () => {
        takeSockets(request, -1);
        this.#listening.delete(key);
      },
    };
  };

  /** The service behind a socket, `namespace/name:port`. */
  serviceAt(protocol: string, socket: string): string | undefined {
    return this.#listening.get(socketKey(protocol, socket))?.service.name;
  }

  /** To which endpoint a client is relayed that comes to `socket`, `address:port`. Undefined: to none. */
  ask(protocol: string, socket: string, client: string): PlanEndpoint | undefined {
    return this.#listening.get(socketKey(protocol, socket))?.service.choose(client, new Set());
  }
}

function socketKey(protocol: string, socket: string): string {
  return `${socket} ${protocol.toLowerCase()}`;
}
