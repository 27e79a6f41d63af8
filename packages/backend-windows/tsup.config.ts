import { libraryBuild } from "@fairlead/tooling/tsup";

export default libraryBuild();
