import { createTraffic, createUserspaceBackend, type RelayingBackend } from "@fairlead/backend-userspace";
import { IP_FAMILIES } from "@fairlead/base";
import { createRunner, openIptables } from "@fairlead/kernel";
import { answerLines } from "@fairlead/lab/support/script";
import { conformanceTable } from "@fairlead/testkit";
import { groupCases, syncGroup } from "./groups.ts";

/**
 * Runs on a node of the lab: userspace mode serves from where its process is. Each line is the number of a group of the
 * conformance table; it is programmed as by an agent that starts anew. The line `cleanup` removes all that was.
 */
const clients = await Promise.all(IP_FAMILIES.map((family) => openIptables(createRunner(), { family })));
const groups = groupCases(conformanceTable);
// Clients on the node take theirs from 33000 on.
const PORT_RANGE = { from: 20_000, to: 29_999 };
/** On a busy machine an answer may take longer than the 250 ms after which a relay forgets the client. */
const UDP_IDLE_TIMEOUT = 10_000;
let backends: readonly RelayingBackend[] = [];

answerLines(async (line) => {
  if (line === "cleanup") {
    for (const backend of backends) await backend.cleanup();
    return line;
  }
  const group = groups[Number(line)];
  if (group === undefined) throw new Error(`there is no group ${line}`);
  for (const backend of backends) backend.close();
  const { localhostNodePorts } = group.options;
  const traffic = createTraffic();
  backends = clients.map((client) =>
    createUserspaceBackend(client, {
      localhostNodePorts,
      portRange: PORT_RANGE,
      udpIdleTimeout: UDP_IDLE_TIMEOUT,
      traffic,
    }),
  );
  await syncGroup(group, backends);
  return line;
});
