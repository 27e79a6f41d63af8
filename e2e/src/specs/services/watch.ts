import { fileURLToPath } from "node:url";
import type { Spec } from "../spec.ts";

const folder = fileURLToPath(new URL("../../../../packages/watch/", import.meta.url));
const vitest = fileURLToPath(new URL("../../../../node_modules/vitest/vitest.mjs", import.meta.url));

/** The watch package's own tests against a real API server, in this cluster. */
export const watch: Spec = {
  name: "watch: its tests against the real API server",
  suite: "services",
  about: ["watch"],
  eachFamily: false,
  unfit: (_, family) => (family === "IPv4" ? undefined : "its services have IPv4 addresses"),
  run: async (_, { apiServer }) => {
    const { url, token } = apiServer;
    const environment = ["NO_COLOR=1", `FAIRLEAD_TEST_APISERVER=${url}`, `FAIRLEAD_TEST_TOKEN=${token}`];
    const test = [process.execPath, vitest, "run", "--reporter=dot", "test/watch.apiserver.test.ts"];
    const { stdout } = await apiServer.run(["env", "-C", folder, ...environment, ...test]);
    const [, passed = "0"] = /(\d+) passed/.exec(stdout.split("Tests")[1] ?? "") ?? [];
    return { tests: passed };
  },
};
