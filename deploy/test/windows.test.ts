import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { parseArguments } from "@fairlead/config";
import { strFromU8, unzipSync } from "fflate";
import { describe, expect, test } from "vitest";
import { deployDir, repositoryDir } from "../src/paths.ts";
import { windowsArchive } from "../src/windows/archive.ts";
import { only, ownManifests } from "./support/manifests.ts";

describe("the archive for Windows", () => {
  test("has what the docs, its own file for a service and the DaemonSet start", async () => {
    const files = unzipped(archiveOf("the agent"));
    const names = Object.keys(files);
    const docs = await readFile(join(repositoryDir, "docs/windows.md"), "utf8");
    const [, section = ""] = /\*\*As a program\*\*([\s\S]+?)\nThe configuration is/.exec(docs) ?? [];
    const named = [...section.matchAll(/[\w\\-]*\.(?:exe|js|xml)\b/g)].map(([path]) => path.replace(/^\\/, ""));
    expect([...new Set(named)].sort()).toEqual(["fairlead-proxy.xml", "main.js", "node.exe"]);
    const started = (files["fairlead-proxy.xml"] ?? "").matchAll(/%BASE%\\([\w.-]+)/g);
    for (const name of [...named, ...Array.from(started, ([, path]) => path)]) expect(names).toContain(name);
    const manifests = await ownManifests(join(deployDir, "overlays/windows"));
    const [{ command }] = only(manifests, "DaemonSet")["spec"].template.spec.containers;
    for (const path of command) expect(names).toContain(path.replace("C:\\fairlead\\", ""));
  });

  test("has Node, the agent, licenses and a file for a service, and is the same whenever it is made", () => {
    const archive = archiveOf("the agent\n".repeat(100));
    expect(unzipped(archive)).toMatchObject({
      "README.txt": expect.stringContaining("never run on Windows"),
      "fairlead-proxy.xml": expect.stringContaining("%ProgramData%\\fairlead\\logs"),
      "main.js": "the agent\n".repeat(100),
      "koffi-win32-x64.node": "compiled",
      "node.exe": "node",
      "LICENSE.txt": "license",
      "THIRD-PARTY-LICENSES.txt": "theirs",
    });
    expect(archive.equals(archiveOf("the agent\n".repeat(100)))).toBe(true);
  });
});

function archiveOf(main: string): Buffer {
  const bundle = {
    files: new Map([["main.js", main]]),
    binaries: new Map([["koffi-win32-x64.node", Buffer.from("compiled")]]),
  };
  return windowsArchive({ bundle, node: Buffer.from("node"), license: Buffer.from("license"), notices: "theirs" });
}

function unzipped(archive: Buffer): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(unzipSync(archive)).map(([name, bytes]) => [name, strFromU8(bytes)]));
}

describe("the overlay for Windows", () => {
  const folder = join(deployDir, "overlays/windows");

  test("its pods are HostProcess containers of Windows nodes that start what the archive has", async () => {
    const manifests = await ownManifests(folder);
    const { spec } = only(manifests, "DaemonSet")["spec"].template;
    expect(spec).toMatchObject({
      hostNetwork: true,
      nodeSelector: { "kubernetes.io/os": "windows" },
      securityContext: { windowsOptions: { hostProcess: true } },
      serviceAccountName: "fairlead",
    });
    const [{ command }] = spec.containers;
    expect(command).toEqual(["C:\\fairlead\\node.exe", "C:\\fairlead\\main.js"]);
  });

  test("the agent takes its configuration on Windows", async () => {
    const text = await readFile(join(folder, "config.conf"), "utf8");
    const manifests = await ownManifests(folder);
    const [{ args }] = only(manifests, "DaemonSet")["spec"].template.spec.containers;
    const parsed = parseArguments(
      args.map((argument: string) => argument.replace("$(NODE_NAME)", "win-1")),
      { readFile: () => text, version: "0.0.0", platform: "windows" },
    );
    expect(parsed).toMatchObject({
      kind: "run",
      warnings: [],
      config: { mode: "kernelspace", kernelspace: { networkName: "cbr0" }, hostnameOverride: "win-1" },
    });
  });
});
