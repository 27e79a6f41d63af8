import { connect, createServer } from "node:net";

/**
 * Runs inside the control plane's namespace: what connects to the unix socket is led on to the API server. A unix socket
 * is reached from every network namespace, so the test ground reaches the API without an interface of the machine's own.
 * Usage: relay-main.ts SOCKET HOST PORT
 */
const [, , socket = "", host = "", port = ""] = process.argv;

const server = createServer((near) => {
  const far = connect(Number(port), host);
  near.pipe(far);
  far.pipe(near);
  near.on("error", () => far.destroy());
  far.on("error", () => near.destroy());
  near.on("close", () => far.destroy());
  far.on("close", () => near.destroy());
});
server.listen(socket);
