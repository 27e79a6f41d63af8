import { fileURLToPath } from "node:url";
import { notIn } from "../needs.ts";
import type { Spec } from "../spec.ts";

const vitest = fileURLToPath(new URL("../../../../node_modules/vitest/vitest.mjs", import.meta.url));

/** The watch package's own tests against a real API server, in this cluster. */
export const watch: Spec = {
  name: "watch: its tests against the real API server",
  ...apiServerTests("packages/watch/", "test/watch.apiserver.test.ts"),
  about: ["watch"],
};

/** The command line tool's own tests against a real API server: what it writes, is refused, and shows of changes. */
export const cli: Spec = {
  name: "fairlead: its tests against the real API server",
  ...apiServerTests("apps/cli/", ".apiserver.test.ts"),
  about: ["cli"],
};

/** The agent's and the controller's own tests against a real API server: Events that Services' descriptions have. */
export const agent: Spec = {
  name: "agent: its tests against the real API server",
  ...apiServerTests("apps/agent/", ".apiserver.test.ts"),
  about: ["agent"],
};

/** @param folder of the package, in the repository */
function apiServerTests(folder: string, file: string): Pick<Spec, "suite" | "eachFamily" | "unfit" | "run"> {
  const where = fileURLToPath(new URL(`../../../../${folder}`, import.meta.url));
  return {
    suite: "services",
    eachFamily: false,
    unfit: (shape, family) =>
      notIn(["nftables"], "the API server does not know the mode; iptables mode's clusters run them")(shape) ??
      (family === "IPv4" ? undefined : "its services have IPv4 addresses"),
    run: async (_, { apiServer }) => {
      const { url, token } = apiServer;
      const environment = ["NO_COLOR=1", `FAIRLEAD_TEST_APISERVER=${url}`, `FAIRLEAD_TEST_TOKEN=${token}`];
      const test = [process.execPath, vitest, "run", "--reporter=dot", file];
      const { stdout } = await apiServer.run(["env", "-C", where, ...environment, ...test], { timeoutMs: 0 });
      const [, passed = "0"] = /(\d+) passed/.exec(stdout.split("Tests")[1] ?? "") ?? [];
      return { tests: passed };
    },
  };
}
