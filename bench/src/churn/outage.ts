import { setTimeout as sleep } from "node:timers/promises";
import { waitUntil } from "@fairlead/lab/agent/wait-until";
import type { ControlPlane } from "@fairlead/lab/control-plane/control-plane";
import type { OutageFigures } from "./figures.ts";
import { kindOf, type Recording, type SeenRequest, trafficBetween } from "./recording.ts";
import type { RecordingRelay } from "./relay.ts";

const PATIENCE_MS = 300_000;
const LOOK_EVERY_MS = 250;

/**
 * Ends the API server for a while and waits until the proxy watches everything again that it watched before.
 *
 * @throws Error when it does not
 */
export async function sitOut(
  controlPlane: ControlPlane,
  relay: RecordingRelay,
  seconds: number,
): Promise<OutageFigures> {
  const began = performance.now();
  const watched = openStreams(await relay.take());
  await relay.refuse();
  await controlPlane.stopApiServer();
  const before = await relay.take();
  await sleep(seconds * 1000);
  await controlPlane.startApiServer();
  await relay.accept();
  const back = performance.now();
  const after = await waitUntil(
    "every watch after the API server's return",
    PATIENCE_MS,
    async () => {
      const recording = await relay.take();
      const open = openStreams(recording);
      return [...watched].every((resource) => open.has(resource)) ? recording : undefined;
    },
    LOOK_EVERY_MS,
  );
  const { list, watch } = trafficBetween(before, after);
  return {
    secondsAway: (back - began) / 1000,
    secondsUntilWatched: (performance.now() - back) / 1000,
    lists: list,
    watches: watch,
  };
}

/** The resources whose watches are open, those included that began with a list. */
function openStreams({ requests }: Recording): ReadonlySet<string> {
  const open = ({ status, endedAt, path }: SeenRequest) =>
    status === 200 && endedAt === undefined && path.includes("watch=true");
  const streams = requests.filter((request) => kindOf(request) !== "other" && open(request));
  return new Set(streams.map(({ path }) => path.slice(0, path.indexOf("?"))));
}
