import { createServer } from "node:http";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { agentPages, proxyHere } from "../src/node/agent-endpoint.ts";
import { askLoopback } from "../src/node/host.ts";

const asked: string[] = [];
const server = createServer(({ url = "" }, response) => {
  asked.push(url);
  response.end(`page of ${url}`);
});
beforeAll(() => new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve)));
afterAll(() => new Promise((resolve) => server.close(resolve)));
beforeEach(() => asked.splice(0));

function pages(which?: "health") {
  const address = server.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
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

test("who only wants to know how it is leaves out what grows with the services", async () => {
  expect(await pages("health")).toMatchObject({ livez: "page of /livez" });
  expect(asked.sort()).toEqual(["/livez", "/metrics", "/proxyMode"]);
});
