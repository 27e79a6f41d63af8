import { createInterface } from "node:readline";
import type { PeerReply, PeerRequest, PeerSettings } from "./protocol.ts";
import { send, serve } from "./requests.ts";

/**
 * Runs inside a namespace: serves on the ports it is given and sends the probes that come on standard input. Ends with
 * standard input, so that it never outlives the process that started it.
 */
const settings: PeerSettings = JSON.parse(process.argv[2] ?? "");
await serve(settings.name, settings.listen);
process.stdout.write("ready\n");

const lines = createInterface({ input: process.stdin });
lines.on("line", async (line) => {
  const { id, probe }: PeerRequest = JSON.parse(line);
  process.stdout.write(`${JSON.stringify(await reply(id, probe))}\n`);
});
lines.on("close", () => process.exit(0));

async function reply(id: number, probe: PeerRequest["probe"]): Promise<PeerReply> {
  try {
    return { id, results: await send(probe) };
  } catch (error) {
    return { id, failure: String(error) };
  }
}
