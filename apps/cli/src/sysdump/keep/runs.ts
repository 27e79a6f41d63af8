import { textAt } from "@fairlead/base";
import type { Argv } from "@fairlead/kernel";
import type { RecordedRun } from "../../node/recorded-runs.ts";
import { TABLES } from "../../node/tables-call.ts";
import { LEFT_OUT, withoutSecrets } from "./free-text.ts";
import { address, either, fields, type Keep, listOf, name, number, oneOf, text } from "./keep.ts";

/** What a program printed, as far as it is kept. */
type Clean = (stdout: string) => string;

/** Texts of rules that anybody chooses: of iptables' options, which escapes quotes within, and of nft and ipset. */
const CHOSEN =
  /(--(?:comment|log-prefix|nflog-prefix|string|hex-string)|(?<= |\t)(?:comment|prefix)(?= ")) (?:"((?:[^"\\]|\\.)*)"|([^\s"]+))/g;

/** Comments of a proxy name services, addresses and chains; those of other programs may say anything. */
const chains: Clean = (stdout) =>
  stdout.replace(CHOSEN, (whole, option: string, _quoted, _plain, at: number) => {
    return isOfProxy(lineAt(stdout, at)) ? whole : `${option} "${LEFT_OUT}"`;
  });

/** Whether a rule is in a proxy's chain, or leads to one. */
function isOfProxy(line: string): boolean {
  return line.startsWith("-A KUBE-") || / -j KUBE-[A-Z0-9-]+$/.test(line);
}

function lineAt(text: string, at: number): string {
  const end = text.indexOf("\n", at);
  return text.slice(text.lastIndexOf("\n", at) + 1, end === -1 ? undefined : end);
}

const withoutComments: Clean = (stdout) =>
  stdout.replace(CHOSEN, (_whole, option: string) => `${option} "${LEFT_OUT}"`);

/** kube-proxy's table of nftables, and those of Fairlead: a second proxy's, that of `replyVia`. */
const OWN_TABLE = /^(?:kube-proxy|fairlead[-_][\w-]+)$/;

const INTERFACE = text(/^[\w.@-]{1,15}$/);
const DESTINATION = either(oneOf("default"), text(/^[0-9a-f:.]+(?:\/\d{1,3})?$/));

const ADDRESSES = jsonLines(
  listOf(
    fields({
      ifname: INTERFACE,
      flags: listOf(text(/^[A-Z_]{1,16}$/)),
      addr_info: listOf(fields({ family: name, local: address, prefixlen: number, scope: name })),
    }),
  ),
);
const ROUTES = jsonLines(
  listOf(
    fields({
      type: name,
      dst: DESTINATION,
      gateway: address,
      dev: INTERFACE,
      metric: number,
      prefsrc: address,
      nexthops: listOf(fields({ gateway: address, dev: INTERFACE, weight: number })),
    }),
  ),
);

function jsonLines(keep: Keep): Clean {
  return (stdout) => (stdout.trim() === "" ? "" : `${JSON.stringify(keep(JSON.parse(stdout)))}\n`);
}

function lines(form: RegExp): Clean {
  return (stdout) => (stdout.match(form) ?? []).map((line) => `${line}\n`).join("");
}

/** Comments are texts; `userData` is what libnftnl wrote of a set, its comment too. */
const tables: Clean = (stdout) => {
  const all: unknown = JSON.parse(stdout);
  return JSON.stringify(Array.isArray(all) ? all.map(keptTable) : all);
};

function keptTable(table: unknown): unknown {
  const own = OWN_TABLE.test(textAt(table, "name") ?? "");
  const kept = JSON.stringify(table, (key, value: unknown) => {
    if (key === "userData") return undefined;
    return key === "comment" && !own ? LEFT_OUT : value;
  });
  return JSON.parse(kept);
}

/** Every program of which a dump keeps what it printed, and how much. What is not here is not kept. */
const PROGRAMS: readonly (readonly [RegExp, Clean])[] = [
  [/^ip6?tables-(?:nft|legacy)-save(?: -t \w+)?$/, chains],
  [/^nft list table \w+ (?:kube-proxy|fairlead[-_][\w-]+)$/, (stdout) => stdout],
  [/^nft list (?:flowtables|table \w+ [\w.-]+)$/, withoutComments],
  [new RegExp(`^fairlead ${TABLES}(?: ip6?)?$`), tables],
  [/^ipset save$/, withoutComments],
  [/^ipvsadm --save -n$/, lines(/^-[AaEe] -[tuf] [^\s"]+ .*$/gm)],
  [/^ip -json address$/, ADDRESSES],
  [/^ip -json -[46] route show$/, ROUTES],
  [/^ip -oneline address show dev [\w-]+$/, lines(/^\d+: \S+ +inet6? [0-9a-f.:]+\/\d+/gm)],
  [/^ls \/proc\/net\/xt_recent$/, lines(/^[\w.-]+$/gm)],
  [/^cat \/proc\/net\/xt_recent\/[\w.-]+$/, lines(/^src=[0-9a-f.:]+ [a-z_]+: [\w:,. ]+$/gm)],
  [/^cat \/proc\/timer_list$/, lines(/^jiffies: \d+$/gm)],
  [/^cat \/proc\/uptime$/, lines(/^[\d.]+ [\d.]+$/gm)],
  [/^cat \/proc\/sys\/net\/[\w./-]+$/, lines(/^-?\d+$/gm)],
  [/^ip6?tables --version$/, lines(/^ip6?tables v[\d.]+(?: \(\w+\))?$/gm)],
  [/^uname -rm$/, lines(/^\d+\.\d+[\w.+-]* \w+$/gm)],
];

/** Undefined: nothing of it is kept. */
export function keptRun(run: RecordedRun): RecordedRun | undefined {
  const { argv } = run;
  const clean = cleanerOf(argv);
  if (clean === undefined) return undefined;
  if ("failure" in run) {
    const { reason, exitCode, stderr = "" } = run.failure;
    return { argv, failure: { reason, exitCode, stderr: withoutSecrets(stderr.slice(0, 500)) } };
  }
  try {
    return { argv, stdout: clean(run.stdout) };
  } catch {
    // It is not what the program prints.
    return undefined;
  }
}

function cleanerOf(argv: Argv): Clean | undefined {
  const line = argv.join(" ");
  return PROGRAMS.find(([program]) => program.test(line))?.[1];
}
