import { createInterface } from "node:readline";
import type { Readable } from "node:stream";
import { fileURLToPath } from "node:url";
import { ConsoleClient } from "@fairlead/lab/tools/console-client";
import { nginxCalico } from "@fairlead/testkit";
import { execa } from "execa";
import { expect, onTestFinished, test } from "vitest";
import { NGINX_CALICO_IP } from "../../src/demo/stage.ts";

const main = fileURLToPath(new URL("../../src/demo/main.ts", import.meta.url));

export function demoInEachMode(): void {
  test.for(["iptables", "nftables"])("the demo proves everything in %s mode and ends with 0", async (mode) => {
    const { exitCode, stdout } = await demo(["--mode", mode]);
    expect(stdout).toMatch(/Proved with real requests on the real kernel, (\d+) of \1 checks.*nothing is left behind/);
    expect(exitCode).toBe(0);
  });
}

export function demoOptions(): void {
  test("its console reads the node's kernel: as planned, traced and tracked there; it goes with the demo", async () => {
    const running = start(["--console", "--mode", "nftables"]);
    // Whatever fails: a demo that goes on would hold up the tests.
    onTestFinished(() => void running.kill("SIGINT"));
    const url = await addressIn(running.stdout);
    const client = await ConsoleClient.open(url);
    const { source, trace } = await client.ask(`api/trace?from=pod&to=${NGINX_CALICO_IP}:80`);
    const destination = { address: nginxCalico.addresses.IPv4, port: 80 };
    expect({ source, trace }).toMatchObject({
      source: "kernel of node-a",
      trace: { outcomes: expect.arrayContaining([expect.objectContaining({ verdict: "accept", destination })]) },
    });
    // The demo's own requests are still tracked.
    const { flows } = await client.ask("api/flows?service=default/nginx-calico");
    expect(flows).toContainEqual(expect.objectContaining({ service: "default/nginx-calico", owner: "ours" }));
    expect(await client.kernelOf("node-a")).toMatchObject({
      state: "read",
      value: [
        { family: "IPv4", services: [] },
        { family: "IPv6", services: [] },
      ],
    });
    running.kill("SIGINT");
    const { exitCode, stdout } = await running;
    expect(stdout).toMatch(/nothing is left behind/);
    expect(exitCode).toBe(0);
    await expect(fetch(url)).rejects.toThrow("fetch failed");
  });

  test("without an agent it says how to build it and ends with 1", async () => {
    const { exitCode, stderr } = await demo([], { FAIRLEAD_AGENT: "/nowhere/main.js" });
    expect(stderr).toContain("pnpm --filter @fairlead/agent build");
    expect(exitCode).toBe(1);
  });

  test.for([["--kepe"], ["--mode", "nftabels"]])("%j gets the usage and ends with 2", async (args) => {
    const { exitCode, stderr } = await demo(args);
    expect(stderr).toContain("Usage: npm run demo");
    expect(exitCode).toBe(2);
  });
}

function demo(args: readonly string[], env: Readonly<Record<string, string>> = {}) {
  return start(args, { env });
}

function start(
  args: readonly string[],
  more: { readonly env?: Readonly<Record<string, string>>; timeout?: number } = {},
) {
  const node = ["--conditions=@fairlead/source", "--no-warnings", main, ...args];
  return execa(process.execPath, node, { ...more, reject: false, stdin: "ignore" });
}

/** Of the console, which is printed once everything is proved. */
async function addressIn(output: Readable): Promise<string> {
  let seen = "";
  for await (const line of createInterface(output)) {
    if (line.startsWith("http://")) return line;
    seen += `${line}\n`;
  }
  throw new Error(`no console was opened:\n${seen}`);
}
