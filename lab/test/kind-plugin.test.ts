import { mkdtemp, realpath, rm, symlink } from "node:fs/promises";
import { hostname, tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { createRunner } from "@fairlead/kernel";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type PluginRequest, servePlugin } from "../src/provider/kind/networks/delegated.ts";
import { isProgram } from "../src/support/machine.ts";

const plugin = fileURLToPath(new URL("../kind/node/opt/cni/bin/test-ground", import.meta.url));
const tools = (await isProgram("jq")) && (await isProgram("curl"));

describe.runIf(tools)("the CNI plugin of kind's nodes", () => {
  let folder = "";
  let server: Awaited<ReturnType<typeof servePlugin>>;
  const asked: PluginRequest[] = [];

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "fairlead-plugin-"));
    server = await servePlugin(join(folder, "net.sock"), {
      ADD: async (request) => {
        asked.push(request);
        return { cniVersion: "1.0.0", ips: [{ address: "10.244.1.11/32" }] };
      },
      DEL: () => Promise.reject(new Error("no such pod")),
    });
  });
  afterAll(async () => {
    await server.dispose();
    await rm(folder, { recursive: true });
  });

  const run = (command: string) => {
    const env = { CNI_COMMAND: command, CNI_CONTAINERID: "pod-1", CNI_NETNS: join(folder, "var/netns/cni-1") };
    const input = JSON.stringify({ cniVersion: "1.0.0", name: "ovn", socket: join(folder, "net.sock") });
    return createRunner({ env }).run([plugin], { input });
  };

  test("ADD: the answer is the result; links in the namespace's path are followed on the node", async () => {
    await symlink(folder, join(folder, "var"));
    expect(JSON.parse((await run("ADD")).stdout)).toMatchObject({ ips: [{ address: "10.244.1.11/32" }] });
    expect(asked).toEqual([
      { node: hostname(), container: "pod-1", netns: join(await realpath(folder), "netns/cni-1") },
    ]);
  });

  test("what fails, and what nobody knows, is a failure of the plugin", async () => {
    await expect(run("DEL")).rejects.toThrow(/exit code/);
    await expect(run("GC")).rejects.toThrow(/exit code/);
  });

  test("VERSION needs nobody", async () => {
    expect(JSON.parse((await run("VERSION")).stdout).supportedVersions).toContain("1.0.0");
  });
});
