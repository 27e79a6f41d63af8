/** What kube-proxy says of itself without a cluster: its flags, its defaults, how it reads configuration, its gates. */

import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { execa } from "execa";
import { runGo } from "./control-plane/programs.ts";

/** The modes whose defaults are recorded. */
const MODES = ["iptables", "ipvs", "nftables"] as const;

const HEADER = "apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\n";

/** The inputs are files of the folder; the rest is written anew. */
export interface FilesToRecord {
  readonly program: string;
  /** With the patch: `v1.2.3`. */
  readonly version: string;
  /** `packages/config/test/fixtures` */
  readonly fixtures: string;
  /** For what kube-proxy reads and writes. */
  readonly folder: string;
}

/**
 * Records what is in `packages/config/test/fixtures`.
 *
 * @returns file → its text
 */
export async function recordFiles(wanted: FilesToRecord): Promise<ReadonlyMap<string, string>> {
  const { program, version, folder, fixtures } = wanted;
  await mkdir(folder, { recursive: true });
  const recorded = new Map<string, string>();
  for (const mode of MODES) recorded.set(`defaults-${mode}.yaml`, await written(wanted, [`--proxy-mode=${mode}`]));
  for (const file of await readdir(join(fixtures, "recorded"))) {
    const [, name = "", kind] = /^(.*)\.(in\.yaml|args)$/.exec(file) ?? [];
    if (kind === undefined) continue;
    const path = join(fixtures, "recorded", file);
    const args = kind === "args" ? (await readFile(path, "utf8")).trimEnd().split("\n") : [`--config=${path}`];
    recorded.set(`recorded/${name}.out.yaml`, await written(wanted, args));
  }
  const { stdout: help } = await execa(program, ["--help"]);
  recorded.set("flags.tsv", flagsTable(help));
  recorded.set("verdicts.json", await verdicts(wanted));
  const gates = await runGo(GATES, version, folder);
  return recorded.set("gates.tsv", gates);
}

interface Verdicts {
  readonly verdicts: readonly { readonly lines: string }[];
}

async function verdicts({ program, folder, fixtures }: FilesToRecord): Promise<string> {
  const before: Verdicts = JSON.parse(await readFile(join(fixtures, "verdicts.json"), "utf8"));
  const verdicts = [];
  for (const { lines } of before.verdicts) {
    const config = join(folder, "config.yaml");
    await writeFile(config, `${HEADER}${lines}\n`);
    const argv = [`--config=${config}`, `--write-config-to=${join(folder, "out.yaml")}`];
    const { failed } = await execa(program, argv, { reject: false });
    verdicts.push({ lines, verdict: failed ? "refuses" : "accepts" });
  }
  return JSON.stringify({ verdicts }, null, 2);
}

/** What it writes with `--write-config-to`. */
async function written({ program, folder }: FilesToRecord, args: readonly string[]): Promise<string> {
  const out = join(folder, "out.yaml");
  await execa(program, [...args, `--write-config-to=${out}`]);
  return readFile(out, "utf8");
}

/** A line a flag: name, type, default. */
function flagsTable(help: string): string {
  const rows = help.split("\n").flatMap((line) => {
    const [, flag, type = "", words = ""] =
      /^ {2,}(?:-\w, )?(--[\w-]+(?:\[=true\])?)(?: (\S+))? {2,}(.*)$/.exec(line) ?? [];
    if (flag === undefined) return [];
    const [, byDefault = ""] = /\(default ([^)]*)\)/.exec(words) ?? [];
    return [`${flag}\t${type.replace("[=true]", "")}\t${byDefault}\n`];
  });
  return rows.join("");
}

/** Prints the gates that kube-proxy registers, those of all components among them, with stage and default. */
const GATES = `package main

import (
	"fmt"
	"sort"

	utilfeature "k8s.io/apiserver/pkg/util/feature"
	_ "k8s.io/kubernetes/cmd/kube-proxy/app"
	_ "k8s.io/kubernetes/pkg/features"
)

func main() {
	gates := utilfeature.DefaultMutableFeatureGate.GetAll()
	names := make([]string, 0, len(gates))
	for name := range gates {
		names = append(names, string(name))
	}
	sort.Strings(names)
	for _, name := range names {
		for gate, spec := range gates {
			if string(gate) == name {
				fmt.Printf("%s\\t%s\\t%t\\n", name, stage(string(spec.PreRelease)), spec.Default)
			}
		}
	}
}

func stage(release string) string {
	if release == "" {
		return "STABLE"
	}
	return release
}
`;
