/** Kubernetes' own specs of services and DNS. */

import { readFile } from "node:fs/promises";
import { dirname } from "node:path";
import { providePrograms } from "@fairlead/lab/control-plane/programs";
import type { Cluster } from "@fairlead/lab/provider/cluster";
import { suite } from "@fairlead/lab/provider/kind/machine";
import { backToFairlead, needsKubelets, removeProxy, whole } from "./operator.ts";
import type { Figures, Spec } from "./spec.ts";

/** Which of Kubernetes' own specs are run. */
interface Chosen {
  readonly focus: string;
  readonly skip: string;
  /** How many the focus must find at least, so that a changed name is no green run of nothing. */
  readonly atLeast: number;
}

/** What every conformant cluster must pass. */
const CONFORMANCE: Chosen = { focus: "\\[sig-network\\].*\\[Conformance\\]", skip: "\\[Feature:", atLeast: 40 };

/** The others that a cluster without cloud, internet and alpha features can have. */
const others: Chosen = {
  focus: "\\[sig-network\\]",
  skip: [
    ...["\\[Conformance\\]", "\\[Feature:", "\\[FeatureGate", "\\[Alpha\\]"],
    ...["Internet", "\\[Disruptive\\]", "LoadBalancers", "IPv6DualStack", "\\[Slow\\]"],
  ].join("|"),
  atLeast: 60,
};

export const sigNetwork: readonly Spec[] = [
  spec("Kubernetes' Conformance specs of sig-network", "sig-network", CONFORMANCE),
  spec("Kubernetes' other specs of sig-network", "sig-network-others", others),
  spec("Kubernetes' other specs of sig-network, with kube-proxy", "sig-network-others", others, "kube-proxy"),
];

/** What came of a run of Kubernetes' own specs. */
interface GinkgoResult {
  readonly passed: number;
  readonly failed: number;
  /** How many were chosen. */
  readonly ran: number;
  /** Names of those that failed. */
  readonly failures: readonly string[];
}

const COUNTS = /-- (\d+) Passed \| (\d+) Failed \|/;
const RAN = /^Ran (\d+) of \d+ Specs/m;
const FAILURE = /^\s*\[(?:FAIL|PANICKED|TIMEDOUT|INTERRUPTED)\] (.*)$/gm;

/** Reads Ginkgo's own words, without colors; undefined: it has not come to its summary. */
export function readGinkgo(output: string): GinkgoResult | undefined {
  const [, passed, failed] = COUNTS.exec(output) ?? [];
  const [, ran] = RAN.exec(output) ?? [];
  if (passed === undefined || failed === undefined || ran === undefined) return undefined;
  const summary = output.slice(output.lastIndexOf("Summarizing"));
  const failures = Number(failed) === 0 ? [] : [...summary.matchAll(FAILURE)].map(([, name = ""]) => name.trim());
  return { passed: Number(passed), failed: Number(failed), ran: Number(ran), failures };
}

/** Fairlead, or another in its place. */
type Proxy = "fairlead" | "kube-proxy";

const AT_ONCE = 4;
const RUN_MS = 40 * 60_000;

function spec(name: string, suite: Spec["suite"], chosen: Chosen, proxy: Proxy = "fairlead"): Spec {
  return {
    name,
    suite,
    eachFamily: false,
    alone: true,
    unfit: needsKubelets,
    run: async (scene, cluster) => {
      if (proxy === "kube-proxy") {
        scene.later(() => backToFairlead(cluster));
        await whole(cluster).addKubeProxy();
        await removeProxy(whole(cluster), "fairlead");
      }
      return run(cluster, chosen);
    },
  };
}

async function run(cluster: Cluster, chosen: Chosen): Promise<Figures> {
  const { apiServer, nodes } = cluster;
  const kubernetes = whole(cluster);
  const programs = await providePrograms(suite, kubernetes.version, console.log);
  const log = `${kubernetes.kubeconfig}.ginkgo.log`;
  const argv = [
    ...[programs.ginkgo, "run", `--procs=${AT_ONCE}`, "--no-color", "--silence-skips"],
    ...[`--timeout=${RUN_MS / 60_000}m`, `--focus=${chosen.focus}`, `--skip=${chosen.skip}`],
    ...[programs["e2e.test"], "--", "--provider=skeleton", "--disable-log-dump"],
    ...[`--kubeconfig=${kubernetes.kubeconfig}`, `--num-nodes=${nodes.length}`],
  ];
  const settings = [
    // Specs call kubectl by its name.
    `PATH=${dirname(kubernetes.kubectlProgram)}:/usr/sbin:/usr/bin:/sbin:/bin`,
    // They leave folders behind.
    `TMPDIR=${dirname(kubernetes.kubeconfig)}`,
  ];
  const run = apiServer.run(["env", ...settings, "sh", "-c", INTO_FILE, "sh", log, ...argv], {
    timeoutMs: RUN_MS + 60_000,
  });
  // With a failed spec the process fails, too; its words tell more.
  await run.catch(() => {});
  const output = await readFile(log, "utf8");
  return judge(readGinkgo(output), output, chosen.atLeast);
}

const INTO_FILE = 'exec >"$1" 2>&1 && shift && exec "$@"';

function judge(result: GinkgoResult | undefined, output: string, atLeast: number): Figures {
  if (result === undefined) throw new Error(`Kubernetes' specs did not come to an end:\n${output.slice(-4000)}`);
  const { passed, failed, ran, failures } = result;
  if (failed > 0) throw new Error([`${failed} of ${ran} failed:`, ...failures].join("\n  "));
  if (ran < atLeast) throw new Error(`only ${ran} specs were chosen, ${atLeast} are there at least`);
  return { passed: `${passed} of ${ran}` };
}
