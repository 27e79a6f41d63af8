import { mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { isFor } from "../src/image/arch.ts";
import { buildArgv } from "../src/image/from-packages.ts";
import { ENVIRONMENT, imageConfig, withInterpreter } from "../src/image/layers.ts";
import { OciLayout, tarLayer } from "../src/image/oci.ts";
import { deployDir } from "../src/paths.ts";
import { packageFolders } from "../src/sbom/bundle.ts";
import { parseControl, toSpdx } from "../src/sbom/spdx.ts";

const CONTROL = `Package: iptables
Source: iptables (1.8.9-2)
Version: 1.8.9-2+b1
Architecture: amd64
Maintainer: Debian Netfilter Packaging Team <pkg-netfilter-team@lists.alioth.debian.org>
Depends: libc6 (>= 2.34),
 libip4tc2
Description: administration tools for packet filtering and NAT
 Version: of a continuation line is not a field
`;

test("a Debian package's control data", () => {
  expect(parseControl(CONTROL)).toEqual({
    name: "iptables",
    version: "1.8.9-2+b1",
    architecture: "amd64",
    source: "iptables (1.8.9-2)",
    maintainer: "Debian Netfilter Packaging Team <pkg-netfilter-team@lists.alioth.debian.org>",
  });
  expect(() => parseControl("Package: iptables\n")).toThrow("control data without Version");
});

test("packages of bundled files", () => {
  const files = [
    "src/main.ts",
    "../../packages/core/src/index.ts",
    "../../node_modules/.pnpm/hono@4.1.0/node_modules/hono/dist/index.js",
    "../../node_modules/.pnpm/hono@4.1.0/node_modules/hono/dist/hono.js",
    "../../node_modules/.pnpm/@hono+node-server@2.0.0/node_modules/@hono/node-server/dist/index.mjs",
  ];
  expect(packageFolders(files)).toEqual([
    "../../node_modules/.pnpm/hono@4.1.0/node_modules/hono",
    "../../node_modules/.pnpm/@hono+node-server@2.0.0/node_modules/@hono/node-server",
  ]);
});

test("the bundle starts with the image's own Node", () => {
  const bundle = "#!/usr/bin/env node\nimport x;\n";
  expect(withInterpreter(bundle)).toBe("#!/usr/local/bin/node --disable-sigusr1\nimport x;\n");
});

test("the SBOM names every part once and ties it to the image", () => {
  const npm = (name: string, license: string) => ({ name, version: "1.0.0", license, dir: "/nowhere" });
  const spdx = toSpdx({
    image: "ghcr.io/fairlead-dev/fairlead:0.1.0",
    digest: `sha256:${"0".repeat(64)}`,
    arch: "amd64",
    epoch: 1_700_000_000,
    agent: npm("@fairlead/agent", "Apache-2.0"),
    nodeVersion: "24.9.0",
    npm: [npm("hono", "MIT"), npm("@hono/node-server", "MIT")],
    debian: [parseControl(CONTROL)],
  });
  const ids = spdx.packages.map(({ SPDXID }) => SPDXID);
  expect(new Set(ids).size).toBe(ids.length);
  expect(ids.every((id) => /^SPDXRef-[A-Za-z0-9.-]+$/.test(id))).toBe(true);
  const contained = spdx.relationships.filter(({ relationshipType }) => relationshipType === "CONTAINS");
  expect(contained.map(({ relatedSpdxElement }) => relatedSpdxElement)).toEqual(ids.slice(1));
  expect(spdx.packages.map(({ externalRefs }) => externalRefs[0]?.referenceLocator)).toEqual([
    `pkg:oci/fairlead@sha256%3A${"0".repeat(64)}?arch=amd64&repository_url=ghcr.io%2Ffairlead-dev%2Ffairlead`,
    "pkg:npm/%40fairlead/agent@1.0.0",
    "pkg:generic/node@24.9.0",
    "pkg:npm/hono@1.0.0",
    "pkg:npm/%40hono/node-server@1.0.0",
    "pkg:deb/debian/iptables@1.8.9-2%2Bb1?arch=amd64",
  ]);
});

test("SIGUSR1 opens no inspector in the image, whichever way it was built", async () => {
  expect(ENVIRONMENT).toContain("NODE_OPTIONS=--disable-sigusr1");
  const dockerfile = await readFile(join(deployDir, "image/Dockerfile"), "utf8");
  const [, variables = ""] = /^ENV ((?:.*\\\n)*.*)$/m.exec(dockerfile) ?? [];
  const [, ...own] = ENVIRONMENT;
  expect(variables.split(/[\s\\]+/)).toEqual(own);
});

test("layers stand in the configuration in their order", () => {
  const layers = ["sha256:aa", "sha256:bb"].map((diffId) => ({ diffId, createdBy: `made ${diffId}` }));
  const config = imageConfig({ arch: "arm64", version: "0.1.0", epoch: 0 }, layers);
  expect(config.rootfs.diff_ids).toEqual(["sha256:aa", "sha256:bb"]);
  expect(config.history).toHaveLength(2);
  expect(config.config.Entrypoint).toEqual(["/usr/local/bin/fairlead-proxy"]);
});

test("a layer that several builds share stays as it is, whatever the others do meanwhile", async () => {
  const dir = await mkdtemp(join(tmpdir(), "image-"));
  try {
    const file = join(dir, "layer.tar");
    await writeFile(file, "a layer");
    const layer = await tarLayer(file, "a test");
    const before = await stat(file);
    for (const name of ["one", "other"]) {
      await mkdir(join(dir, name));
      const image = { arch: "amd64", layers: [layer, layer], config: {} } as const;
      const { digest } = await new OciLayout(join(dir, name)).addImage(image);
      expect(await readdir(join(dir, name, "blobs/sha256"))).toContain(digest.slice("sha256:".length));
    }
    const { ctimeMs, nlink } = await stat(file);
    expect({ ctimeMs, nlink }).toEqual({ ctimeMs: before.ctimeMs, nlink: 1 });
  } finally {
    await rm(dir, { recursive: true });
  }
});

test("both ways to build have one name and one version", () => {
  const options = { arches: ["amd64", "arm64"] as const, name: "registry.example/fairlead", outDir: "/out", epoch: 1 };
  const argv = buildArgv(options, "0.1.0");
  expect(argv).toContain("--platform=linux/amd64,linux/arm64");
  expect(argv).toContain("--tag=registry.example/fairlead:0.1.0");
  expect(argv).toContain("--output=type=oci,dest=/out/fairlead-0.1.0.oci.tar,rewrite-timestamp=true");
  const named = buildArgv({ ...options, name: "registry.example/fairlead:edge" }, "0.1.0");
  expect(named).toContain("--tag=registry.example/fairlead:edge");
});

test("compiled code is in the image of its architecture only", () => {
  const files = ["koffi-linux-x64.node", "koffi-linux-arm64.node", "@koromix/koffi-linux-arm64", "main.js"];
  expect(files.filter((name) => isFor("amd64", name))).toEqual(["koffi-linux-x64.node", "main.js"]);
  expect(files.filter((name) => isFor("arm64", name))).toEqual(files.slice(1));
});
