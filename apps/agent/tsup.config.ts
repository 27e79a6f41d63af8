import { koffiAlongside } from "@fairlead/tooling/koffi";
import { appBundle } from "@fairlead/tooling/tsup";
import { defineConfig } from "tsup";

export default defineConfig([
  appBundle({ main: "src/main.ts" }, [koffiAlongside]),
  // The controller needs nothing of the kernel.
  appBundle({ controller: "src/controller-main.ts" }),
]);
