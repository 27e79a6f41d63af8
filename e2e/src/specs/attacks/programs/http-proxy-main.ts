import { createServer } from "node:http";
import { connect } from "node:net";
import { answerLines } from "@fairlead/lab/support/script";

/** A proxy for CONNECT only. Says when it is asked how many connections it has made. Usage: http-proxy-main.ts PORT */
const [, , port = ""] = process.argv;
let connections = 0;

const server = createServer((_, response) => response.writeHead(405).end());
server.on("connect", ({ url = "" }, client, head) => {
  const { hostname, port: wanted } = new URL(`tcp://${url}`);
  const upstream = connect({ host: hostname.replace(/^\[|\]$/g, ""), port: Number(wanted) }, () => {
    connections++;
    client.write("HTTP/1.1 200 Connection established\r\n\r\n");
    upstream.write(head);
    upstream.pipe(client).pipe(upstream);
  });
  upstream.on("error", () => client.destroy());
  client.on("error", () => upstream.destroy());
});
server.listen(Number(port), () => answerLines(() => String(connections)));
