import { libraryBuild } from "@fairlead/tooling/tsup";

export default libraryBuild({ index: "src/index.ts", "testing/index": "src/testing/index.ts" });
