import { systemClock } from "@fairlead/base";
import { createDeviceFollower, openRouteListening, openRouteSocket } from "../src/index.ts";

/** Run in a namespace: prints its devices with their networks, a line of JSON after each change, until it is killed. */
const follower = createDeviceFollower({ listen: openRouteListening, open: openRouteSocket, timers: systemClock });
for await (const devices of follower.follow(new AbortController().signal, { networks: true })) {
  process.stdout.write(`${JSON.stringify(devices)}\n`);
}
