import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { follow, until } from "@fairlead/base/testing";
import { createRunner, lines as linesOf } from "@fairlead/kernel";
import { endpointSlice, service } from "@fairlead/testkit";
import { afterAll, beforeAll, expect, test } from "vitest";

const bundle = join(import.meta.dirname, "..", "dist", "main.js");
let dir = "";

beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), "fairlead-local-"));
});
afterAll(() => rm(dir, { recursive: true }));

test("--userspace-only serves a manifest's services on local ports, says where, and follows changes", async ({
  signal,
}) => {
  await using opened = new AsyncDisposableStack();
  const pods = [await pod(opened, "a"), await pod(opened, "b")];
  const manifest = join(dir, "objects.json");
  const write = (ports: readonly number[]) => writeFile(manifest, JSON.stringify(list(ports)));
  await write(pods.slice(0, 1));
  const flags = ["--proxy-mode=userspace", "--userspace-only", `--manifests=${manifest}`, `--state-dir=${dir}`];
  const lines = opened.use(
    follow(signal, (stop) =>
      linesOf(createRunner().stream([process.execPath, bundle, ...flags], { timeoutMs: 0, signal: stop })),
    ),
  );

  const row = await lines.until((seen) => seen.find((line) => line.startsWith("default/web")));
  expect(lines.seen[0]).toMatch(/^SERVICE +PROTOCOL +LOCAL ADDRESS$/);
  expect(row).toMatch(/^default\/web:http +TCP +127\.0\.0\.1:\d+$/);
  const first = `http://${row.split(/ +/)[2]}`;
  expect(await answers(first, 4)).toEqual(new Set(["a"]));
  await write(pods);
  await until(signal, async () => (await answers(first, 4)).size === 2);
  await write([]);
  await lines.until((seen) => seen.some((line) => /^default\/web.*none: no endpoints$/.test(line)));
  const asked = () =>
    fetch(first).then(
      () => "answered",
      ({ message }: Error) => message,
    );
  await expect.poll(asked).toBe("fetch failed");
});

/** @param ports of pods on 127.0.0.1; a slice has one port */
function list(ports: readonly number[]) {
  const web = service("web", { clusterIPs: ["10.96.0.10"], ports: [{ name: "http", port: 80 }] });
  const slices = ports.map((port) =>
    endpointSlice(`web-${port}`, {
      service: "web",
      family: "IPv4",
      ports: [{ name: "http", port }],
      endpoints: [{ address: "127.0.0.1" }],
    }),
  );
  return { apiVersion: "v1", kind: "List", items: [web, ...slices] };
}

async function pod(opened: AsyncDisposableStack, name: string): Promise<number> {
  const server = createServer((_, response) => response.end(name));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  opened.defer(() => void server.close());
  const bound = server.address();
  if (bound === null || typeof bound === "string") throw new Error("no port");
  return bound.port;
}

async function answers(url: string, count: number): Promise<ReadonlySet<string>> {
  const found = new Set<string>();
  for (let request = 0; request < count; request++) {
    const response = await fetch(url, { headers: { connection: "close" } });
    found.add(await response.text());
  }
  return found;
}
