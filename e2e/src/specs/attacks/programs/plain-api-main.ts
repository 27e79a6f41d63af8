import { createServer } from "node:http";
import { leadOn } from "@fairlead/lab/control-plane/lead-on";
import { answerLines } from "@fairlead/lab/support/script";

/**
 * An API server without TLS that notes who shows it credentials, and leads everything on to the real one with its own.
 * Says when it is asked how many requests it had, and how many of them had credentials.
 * Usage: plain-api-main.ts PORT HOST HOST-PORT TOKEN
 */
const [, , port = "", host = "", hostPort = "", token = ""] = process.argv;
let requests = 0;
let withCredentials = 0;

const server = createServer((incoming, response) => {
  requests++;
  if (incoming.headers.authorization !== undefined) withCredentials++;
  leadOn(incoming, response, { host, port: hostPort, authorization: `Bearer ${token}` });
});
server.listen(Number(port), () => answerLines(() => JSON.stringify({ requests, withCredentials })));
