import type { Client } from "@fairlead/lab/provider/cluster";
import type { Target } from "./expect.ts";

const TIMEOUT_MS = 60_000;

/**
 * One answer of so many bytes, which no tunnel lets through whose MTU is said too large.
 *
 * @throws Error when less comes, or nothing
 */
export async function expectBytes(from: Client, { to, port }: Target, bytes: number): Promise<void> {
  const once = { count: 1, parallel: 1, timeoutMs: TIMEOUT_MS };
  const [result] = await from.send({ protocol: "TCP", to, port, padding: bytes, ...once });
  const came = result?.kind === "answer" ? result.padding : result?.kind;
  if (came !== bytes) throw new Error(`wanted ${bytes} bytes for ${from.name} from ${to}, came ${came}`);
}
