import { libraryBuild } from "@fairlead/tooling/tsup";

export default libraryBuild({ index: "src/index.ts", "fake/index": "src/fake/index.ts" });
