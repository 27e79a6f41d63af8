import { sourceTests } from "@fairlead/tooling/vitest";

/** What `npm test` does not bring: helm and kustomize for `test:tools`, a built image for `test:image`. */
export default sourceTests({ include: ["tools/**/*.tools.ts"] });
