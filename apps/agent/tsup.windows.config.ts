import { koffiAlongsideOnWindows } from "@fairlead/tooling/koffi";
import { appBundle } from "@fairlead/tooling/tsup";
import { defineConfig } from "tsup";

/** By itself: `tsup --out-dir`, which the image is built with, puts all bundles of a configuration in one folder. */
export default defineConfig({
  ...appBundle({ main: "src/windows/main.ts" }, [koffiAlongsideOnWindows]),
  outDir: "dist/windows",
});
