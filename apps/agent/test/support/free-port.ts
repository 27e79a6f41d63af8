import { routes } from "../../src/http/app.ts";
import { listen } from "../../src/http/listen.ts";

/** A port of 127.0.0.1 that was free just now. */
export async function freePort(): Promise<number> {
  const { address, close } = await listen(routes({}), { host: "127.0.0.1", port: 0 });
  await close();
  return address.port;
}
