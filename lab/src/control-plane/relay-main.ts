import { connect, createServer, type NetConnectOpts } from "node:net";

/** Leads what connects to one end on to the other; see `relayArgv`. Usage: relay-main.ts FROM TO */
const [, , from = "", to = ""] = process.argv;

const server = createServer((near) => {
  const far = connect(endOf(to));
  near.pipe(far);
  far.pipe(near);
  near.on("error", () => far.destroy());
  far.on("error", () => near.destroy());
  near.on("close", () => far.destroy());
  far.on("close", () => near.destroy());
});
server.listen(endOf(from));

/** `/path`, `host:port`, `[v6]:port` */
function endOf(text: string): NetConnectOpts {
  if (text.startsWith("/")) return { path: text };
  const colon = text.lastIndexOf(":");
  return { host: text.slice(0, colon).replace(/^\[|\]$/g, ""), port: Number(text.slice(colon + 1)) };
}
