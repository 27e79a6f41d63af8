import { koffiBeside } from "@fairlead/tooling/koffi";
import { appBundle, CREDENTIALS_ENTRY, credentialsApart, YAML_THREAD_ENTRY } from "@fairlead/tooling/tsup";
import { defineConfig } from "tsup";

export default defineConfig([
  appBundle({ main: "src/main.ts" }, [credentialsApart, koffiBeside]),
  appBundle(CREDENTIALS_ENTRY),
  appBundle(YAML_THREAD_ENTRY),
]);
