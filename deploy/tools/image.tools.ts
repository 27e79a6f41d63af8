import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createRunner, lines } from "@fairlead/kernel";
import { INSPECTOR_OPTION } from "@fairlead/tooling/agent-node";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ownArch } from "../src/image/arch.ts";
import { AGENT_NAMES, CLI_NAME, COMPILED_CODE } from "../src/image/layers.ts";
import { agentVersion } from "../src/paths.ts";
import { ENDPOINT_CHAIN, OBJECTS, SERVICE_CHAIN } from "./api-server.ts";
import { openImage, type UnpackedImage } from "./unpacked-image.ts";

let image: UnpackedImage;
beforeAll(async () => {
  image = await openImage();
  await writeFile(join(image.pod, "home/web.json"), JSON.stringify(OBJECTS));
});
afterAll(() => image?.dispose());

const run = (...argv: readonly string[]) => image.run(...argv);

describe("the image", () => {
  test.each(AGENT_NAMES)("%s is the agent", async (name) => {
    expect(await run(name, "--version")).toBe(`Fairlead v${await agentVersion()}\n`);
  });

  test.each(["fairlead", "fairlead-cli"])("%s speaks netlink, without a tool in between", async (folder) => {
    const koffi = `/usr/local/lib/${folder}/koffi-${ownArch() === "amd64" ? "linux-x64" : "linux-arm64"}.node`;
    const load = `typeof require(${JSON.stringify(koffi)}).load`;
    expect(await run("/usr/local/bin/node", "-p", load)).toBe("function\n");
  });

  test("compiled code that was made as the Dockerfile does is taken on a read-only root", async () => {
    const building = { env: { NODE_COMPILE_CACHE: COMPILED_CODE, NODE_OPTIONS: INSPECTOR_OPTION } };
    await createRunner(building).run(["chroot", image.root, AGENT_NAMES[0], "--version"]);
    const running = createRunner({
      prefix: image.namespace.argvPrefix,
      env: { ...building.env, NODE_DEBUG_NATIVE: "COMPILE_CACHE" },
    });
    const { stdout } = await running.run(image.inContainer(AGENT_NAMES[0], "--version"));
    expect(stdout).toMatch(/code cache for ESM file:\/\/\/usr\/local\/lib\/fairlead\/main\.js was accepted/);
  });

  test("the command line tool is next to it", async () => {
    const flags = ["-f", "/home", "--cluster-cidr", "10.144.0.0/16"];
    expect(await run(CLI_NAME, "ownership", ...flags)).toContain("default/nginx-calico");
  });

  test.each([
    ["iptables-nft", "--version"],
    ["iptables-legacy", "--version"],
    ["ip6tables-nft-restore", "--version"],
    ["ip6tables-legacy-save", "--version"],
    ["iptables", "--version"],
    ["ipset", "--version"],
    ["ip", "-V"],
    ["conntrack", "--version"],
    ["nfacct", "version"],
    ["modprobe", "--version"],
  ])("%s is there with its libraries", async (program, flag) => {
    expect(await run(program, flag)).toMatch(/v?\d+\.\d+|kmod version \d+|iproute2-/);
  });

  test("serves with two capabilities on a read-only root", async () => {
    const status = await run("/usr/local/bin/node", "-p", 'fs.readFileSync("/proc/self/status", "utf8")');
    // NET_ADMIN, NET_RAW and SYS_CHROOT.
    expect(status).toMatch(/^CapEff:\t0000000000043000$/m);
    const stop = new AbortController();
    const flags = ["--manifests=/home", "--cluster-cidr=10.144.0.0/16", "--hostname-override=node-a", "-v=2"];
    const log: string[] = [];
    const agent = image.runner.stream(image.inContainer(AGENT_NAMES[1], ...flags), {
      signal: stop.signal,
      timeoutMs: 0,
    });
    for await (const line of lines(agent)) {
      log.push(line);
      if (line.includes('"Rules are in place" ipFamily="IPv4"')) break;
    }
    expect(log.join("\n")).toContain('"Rules are in place" ipFamily="IPv4"');
    const rules = await run("iptables-nft", "-t", "nat", "-S", SERVICE_CHAIN);
    expect(rules).toContain(`-j ${ENDPOINT_CHAIN}`);
  });
});
