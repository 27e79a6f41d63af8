import { Problem } from "../rule/problem.ts";
import type { Destination, VirtualServer, VirtualServerState } from "./ipvs.ts";
import { parseServerCommand } from "./parse-command.ts";
import { renderServerKey } from "./render.ts";

/**
 * Puts virtual servers together from the lines of `ipvsadm --save -n`, which prints each server and then its
 * destinations. Servers by firewall mark are passed over.
 */
export class ServerReader {
  #open: { readonly server: VirtualServer; readonly key: string; readonly destinations: Destination[] } | undefined;

  /**
   * @returns the server that this line shows to be complete
   * @throws Problem for a line that `ipvsadm --save -n` does not print
   */
  push(line: string): VirtualServerState | undefined {
    const command = line === "" ? undefined : parseServerCommand(line);
    if (command === undefined) return undefined;
    const key = renderServerKey(command.server);
    if (command.kind === "add-server") {
      const complete = this.end();
      this.#open = { server: command.server, key, destinations: [] };
      return complete;
    }
    if (command.kind !== "add-destination" || this.#open?.key !== key) {
      throw new Problem(`no line of ipvsadm --save, or not where it stands: ${line}`);
    }
    this.#open.destinations.push(command.destination);
    return undefined;
  }

  /** @returns the last server */
  end(): VirtualServerState | undefined {
    const open = this.#open;
    this.#open = undefined;
    return open && { ...open.server, destinations: open.destinations };
  }
}
