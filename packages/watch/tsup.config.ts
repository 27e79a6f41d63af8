import { libraryBuild } from "@fairlead/tooling/tsup";

export default libraryBuild({ index: "src/index.ts", "yaml-thread": "src/manifests/yaml-thread.ts" });
