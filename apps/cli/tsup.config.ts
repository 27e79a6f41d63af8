import {
  appBundle,
  type BundlePlugin,
  builtinsWhenUsed,
  credentialsApart,
  credentialsEntry,
  yamlThreadEntry,
} from "@fairlead/tooling/tsup";
import { defineConfig } from "tsup";

/** Only the agent speaks netlink; the command line asks the tools. */
const withoutNetlink: BundlePlugin = {
  name: "without-netlink",
  setup: ({ onResolve }) => onResolve({ filter: /^koffi$/ }, ({ path }) => ({ path, external: true })),
};

export default defineConfig([
  appBundle({ main: "src/main.ts" }, [credentialsApart, withoutNetlink, builtinsWhenUsed]),
  appBundle(credentialsEntry),
  appBundle(yamlThreadEntry),
]);
