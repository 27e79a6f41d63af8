import { copyFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { libraryBuild, withNodeTypes } from "@fairlead/tooling/tsup";

export default {
  ...libraryBuild({
    index: "src/index.ts",
    "fake/index": "src/fake/index.ts",
    "hcn/index": "src/hcn/index.ts",
    "netns/index": "src/netns/index.ts",
  }),
  ...withNodeTypes,
  // koffi's JavaScript is in the build: by itself it would bring a build script and the compiled code of twenty
  // machines.
  onSuccess: async () => {
    const koffi = dirname(createRequire(import.meta.url).resolve("koffi"));
    await copyFile(join(koffi, "LICENSE.txt"), "dist/koffi.LICENSE.txt");
  },
};
