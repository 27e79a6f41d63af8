import { libraryBuild, withNodeTypes } from "@fairlead/tooling/tsup";

export default {
  ...libraryBuild({
    index: "src/index.ts",
    "nft/index": "src/nft/index.ts",
    "netlink/index": "src/netlink/index.ts",
    "sha256/any": "src/sha256/any.ts",
    "sha256/node": "src/sha256/node.ts",
  }),
  ...withNodeTypes,
  // Who installs it chooses by its engine.
  external: ["#sha256"],
};
