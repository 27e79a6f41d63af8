import { clientA } from "@fairlead/testkit";
import { tally } from "../counted.ts";
import { NGINX_OVN_IP, NOBODY_IP } from "../services.ts";
import type { Check, DemoEnvironment } from "../stage.ts";
import { addedLive, removedLive } from "./live.ts";
import { affinity, foundingCase, spread } from "./services.ts";

/** What can be seen without rules: there is one client, this machine, and no other program's address to keep. */
export const localChecks: readonly Check[] = [
  foundingCase,
  spread,
  removedLive,
  addedLive,
  affinity,
  (stage) => nowhere(stage, { name: "no endpoints", service: "nobody", to: NOBODY_IP, row: /none: no endpoints$/ }),
  // Another network's service is none of ours: it is not even in the table.
  (stage) => nowhere(stage, { name: "nginx-ovn", service: "nginx-ovn", to: NGINX_OVN_IP, row: undefined }),
];

interface Nowhere {
  readonly name: string;
  readonly service: string;
  readonly to: string;
  /** What the table says of it; undefined: nothing. */
  readonly row: RegExp | undefined;
}

async function nowhere(stage: DemoEnvironment, { name, service, to, row }: Nowhere) {
  const table = await stage.rules();
  const line = table.find((each) => each.startsWith(`default/${service} `));
  const replies = await stage.ask({ from: clientA, to, port: 80, count: 1 });
  const said = row === undefined ? line === undefined : line !== undefined && row.test(line);
  const ok = said && replies.every(({ end }) => end === "no local port");
  const shown = line?.replace(/^.*?(none: )/, "$1") ?? "in no row of the table";
  return [{ name, request: `client-a → ${to}:80`, seen: ok ? shown : tally(replies), ok }];
}
