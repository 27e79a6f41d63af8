import type { IpvsPort } from "@fairlead/backend-ipvs";
import type { IPFamily } from "@fairlead/core";
import {
  commandText,
  type Destination,
  renderLinkCommand,
  renderServerCommand,
  renderServerKey,
  renderSetCommand,
  type ServerCommand,
  type VirtualServerState,
} from "@fairlead/netfilter";
import { emptyRules } from "./empty-rules.ts";
import type { ProgramTexts } from "./program-texts.ts";

/**
 * A node without virtual servers, sets and the service device. What is written goes into `texts`; the virtual servers
 * are given back as well, since the backend reads them again to see what the kernel made of them.
 */
export function emptyIpvs(family: IPFamily, texts: ProgramTexts): IpvsPort {
  const made = new Map<string, VirtualServerState & { readonly destinations: Destination[] }>();
  const make = (command: ServerCommand) => {
    const key = renderServerKey(command.server);
    if (command.kind === "add-server") made.set(key, { ...command.server, destinations: [] });
    if (command.kind === "add-destination") made.get(key)?.destinations.push(command.destination);
    return renderServerCommand(command);
  };
  return {
    servers: {
      save: async function* () {
        yield* made.values();
      },
      async *connections() {},
      change: (commands, turn) => texts.add(["ipvsadm", "--restore"], commandText(commands, make, turn)),
    },
    sets: {
      async *save() {},
      change: (commands, turn) =>
        texts.add(["ipset", "-exist", "restore"], commandText(commands, renderSetCommand, turn)),
    },
    links: {
      addresses: async () => undefined,
      change: (commands, turn) => texts.add(["ip", "-batch", "-"], commandText(commands, renderLinkCommand, turn)),
    },
    rules: emptyRules(family, texts),
  };
}
