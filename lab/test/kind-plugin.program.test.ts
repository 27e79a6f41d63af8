import { chmod, mkdtemp, readFile, realpath, rm, symlink, writeFile } from "node:fs/promises";
import { hostname, tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { createRunner } from "@fairlead/kernel";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type PluginRequest, servePlugin } from "../src/provider/kind/networks/delegated.ts";
import { isProgram } from "../src/support/machine.ts";

const plugin = fileURLToPath(new URL("../kind/node/opt/cni/bin/test-ground", import.meta.url));
const jq = await isProgram("jq");
const tools = jq && (await isProgram("curl"));

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

  test("what fails, and an unknown command, is a failure of the plugin", async () => {
    await expect(run("DEL")).rejects.toThrow(/exit code/);
    await expect(run("GC")).rejects.toThrow(/exit code/);
  });

  test("VERSION needs no server", async () => {
    expect(JSON.parse((await run("VERSION")).stdout).supportedVersions).toContain("1.0.0");
  });
});

test.runIf(jq)("runc is asked for no capability that cannot be given", async () => {
  await using folders = new AsyncDisposableStack();
  const folder = await mkdtemp(join(tmpdir(), "fairlead-runc-"));
  folders.defer(() => rm(folder, { recursive: true }));
  await writeFile(join(folder, "runc"), "#!/bin/sh\necho called\n");
  await chmod(join(folder, "runc"), 0o755);
  const asked = ["CAP_NET_ADMIN", "CAP_SYS_RESOURCE"];
  const capabilities = { bounding: asked, ambient: null };
  await writeFile(join(folder, "config.json"), JSON.stringify({ process: { args: ["sh"], capabilities } }));
  const program = fileURLToPath(new URL("../kind/runc-allowed.sh", import.meta.url));
  const drop = ["setpriv", "--bounding-set=-sys_resource", "env", `PATH=${folder}:/usr/sbin:/usr/bin:/sbin:/bin`];
  const root = process.getuid?.() === 0 ? drop : ["unshare", "-Ur", ...drop];
  const [first = "", ...rest] = [...root, program, "create", "--bundle", folder, "pod"];
  expect((await createRunner().run([first, ...rest])).stdout).toBe("called\n");
  const { process: written } = JSON.parse(await readFile(join(folder, "config.json"), "utf8"));
  expect(written).toEqual({ args: ["sh"], capabilities: { bounding: ["CAP_NET_ADMIN"], ambient: null } });
});
