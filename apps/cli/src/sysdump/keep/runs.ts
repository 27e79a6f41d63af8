import type { Argv } from "@fairlead/kernel";
import type { RecordedRun } from "../../node/recorded-runs.ts";
import { TABLES } from "../../node/tables-call.ts";
import { keptComment } from "./comments.ts";
import { LEFT_OUT, withoutSecrets } from "./free-text.ts";
import { address, either, fields, type Keep, listOf, name, number, oneOf, text } from "./keep.ts";

/** What a program printed, as far as it is kept. */
type Clean = (stdout: string) => string;

/** Texts of rules that anybody chooses: of iptables' options, which escapes quotes within, and of nft and ipset. */
const CHOSEN =
  /(--(?:comment|log-prefix|nflog-prefix|string|hex-string)|(?<= |\t)(?:comment|prefix)(?= ")) (?:"((?:[^"\\]|\\.)*)"|([^\s"]+))/g;

const rules: Clean = (stdout) =>
  stdout.replace(CHOSEN, (whole, option: string, quoted?: string, plain?: string) => {
    const chosen = quoted ?? plain ?? "";
    return keptComment(chosen) === chosen ? whole : `${option} "${LEFT_OUT}"`;
  });

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
const tables: Clean = (stdout) =>
  JSON.stringify(JSON.parse(stdout), (key, value: unknown) => {
    if (key === "userData") return undefined;
    return key === "comment" && typeof value === "string" ? keptComment(value) : value;
  });

/** Every program of which a dump keeps what it printed, and how much. What is not here is not kept. */
const PROGRAMS: readonly (readonly [RegExp, Clean])[] = [
  [/^ip6?tables-(?:nft|legacy)-save(?: -t \w+)?$/, rules],
  [/^nft list (?:flowtables|table \w+ [\w.-]+)$/, rules],
  [new RegExp(`^fairlead ${TABLES}(?: ip6?)?$`), tables],
  [/^ipset save$/, rules],
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
