import { createServer } from "node:http";
import { connect } from "node:net";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { httpOver } from "../src/cluster/pods.ts";
import { agentPages, okText, proxyHere } from "../src/node/agent-endpoint.ts";
import { askLoopback } from "../src/node/host.ts";
import { endless } from "./support/node-cluster.ts";

const asked: string[] = [];
const server = createServer(({ url = "" }, response) => {
  asked.push(url);
  if (url === "/configz") return void endless(response);
  response.end(`page of ${url}`);
});

beforeAll(() => new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve)));
afterAll(() => new Promise((resolve) => server.close(resolve)));
beforeEach(() => asked.splice(0));

function portOf(): number {
  const address = server.address();
  return typeof address === "object" && address !== null ? address.port : 0;
}

function pages(which?: "health") {
  const port = portOf();
  return agentPages(proxyHere({ askHere: askLoopback }), { metrics: port, health: port }, which);
}

test("an agent is asked for all that it says of itself", async () => {
  expect(await pages()).toEqual({
    proxyMode: "page of /proxyMode",
    metrics: "page of /metrics",
    livez: "page of /livez",
    ownership: "page of /ownership",
  });
});

test("a reader of the state only leaves out what grows with the services", async () => {
  expect(await pages("health")).toMatchObject({ livez: "page of /livez" });
  expect(asked.sort()).toEqual(["/livez", "/metrics", "/proxyMode"]);
});

test("an answer without end is left, on this host and through the API server", async () => {
  const port = portOf();
  const said = "/configz answers with more than 4 MiB, which no proxy does";
  const here = proxyHere({ askHere: askLoopback });
  await expect(okText(here, port, "/configz")).rejects.toThrow(`http://127.0.0.1:${port}${said}`);
  const inPod = {
    ask: (to: number, path: string) => httpOver(connect(to, "127.0.0.1"), { path, timeoutMs: 60_000 }),
    nameOf: () => "pod: ",
  };
  await expect(okText(inPod, port, "/configz")).rejects.toThrow(`pod: ${said}`);
});
