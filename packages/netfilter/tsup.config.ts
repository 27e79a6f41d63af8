import { libraryBuild } from "@fairlead/tooling/tsup";

export default libraryBuild({
  index: "src/index.ts",
  "nft/index": "src/nft/index.ts",
  "netlink/index": "src/netlink/index.ts",
});
