import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer } from "node:https";
import { join } from "node:path";
import { answerLines } from "../../support/script.ts";

/**
 * What the API server asks a kubelet for: logs of containers, at its own port. Usage: kubelet-main.ts FOLDER CERT KEY
 */
const [, , folder = "", certFile = "", keyFile = ""] = process.argv;
const PORT = 10_250;
const LOG = /^\/containerLogs\/([a-z0-9.-]+)\/([a-z0-9.-]+)\/([a-z0-9.-]+)(?:\?|$)/;

const tls = { cert: readFileSync(certFile), key: readFileSync(keyFile) };
const server = createServer(tls, ({ url = "" }, response) => {
  const [, namespace, pod, container] = LOG.exec(url) ?? [];
  try {
    response.end(readFileSync(join(folder, `${namespace}_${pod}_${container}.log`)));
  } catch {
    response.writeHead(404).end("there is no such log");
  }
});
server.listen(PORT);
await once(server, "listening");
answerLines(() => "here");
