import type { IpvsPort } from "@fairlead/backend-ipvs";
import type { IPFamily } from "@fairlead/core";
import { ServerReader } from "@fairlead/netfilter";
import { emptyRules } from "./empty-rules.ts";
import type { ProgramTexts } from "./program-texts.ts";

/**
 * A node without virtual servers, sets and the service device. What is written goes into `texts`; the virtual servers
 * are given back as well, since the backend reads them again to see what the kernel made of them.
 */
export function emptyIpvs(family: IPFamily, texts: ProgramTexts): IpvsPort {
  const servers: string[] = [];
  return {
    servers: {
      save: async function* () {
        const reader = new ServerReader();
        for (const line of servers) {
          const server = reader.push(line);
          if (server !== undefined) yield server;
        }
        const last = reader.end();
        if (last !== undefined) yield last;
      },
      async *connections() {},
      restore: async (payload) => {
        let text = "";
        for await (const piece of payload) text += piece;
        servers.push(...text.split("\n").filter((line) => line !== ""));
        await texts.add(["ipvsadm", "--restore"], [text]);
      },
    },
    sets: { async *save() {}, restore: (payload) => texts.add(["ipset", "-exist", "restore"], payload) },
    links: { addresses: async () => undefined, batch: (payload) => texts.add(["ip", "-batch", "-"], payload) },
    rules: emptyRules(family, texts),
  };
}
