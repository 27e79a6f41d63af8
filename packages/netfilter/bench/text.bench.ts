/**
 * The yardstick's rules, 10,000 services × 10 endpoints: how long their text takes in both directions.
 *
 *   pnpm exec node --conditions=@fairlead/source bench/text.bench.ts [services] [endpoints]
 */
import { socketText } from "@fairlead/base";
import {
  type Command,
  endpointChainName,
  LazySaveParser,
  parseRestore,
  parseSave,
  type Rule,
  renderTable,
  servicePortChainName,
  shareProbability,
} from "../src/index.ts";

const [services = 10_000, endpoints = 10] = process.argv.slice(2).map(Number);

const commands = timed("rules and names", () => {
  const all = [...serviceCommands()];
  return [...all.filter(({ kind }) => kind === "chain"), ...all.filter(({ kind }) => kind !== "chain")];
});
const chunks = timed("render", () => [...renderTable({ table: "nat", commands })]);
console.log(`${commands.length} commands, ${(chunks.join("").length / 1e6).toFixed(1)} MB in ${chunks.length} pieces`);
timed("parse as restore payload", () => parseRestore(chunks));
timed("parse as saved", () => parseSave(chunks));
timed("parse as saved, rules when asked for", () => {
  const parser = new LazySaveParser();
  for (const chunk of chunks) parser.push(chunk);
  return parser.end();
});
timed("parse as saved, chains alone", () => parseSave(chunks, { keepRules: () => false }));

function* serviceCommands(): Generator<Command> {
  yield { kind: "chain", chain: "KUBE-SERVICES" };
  for (let service = 0; service < services; service++) {
    const name = `team-${service % 100}/service-${service}:http`;
    const chain = servicePortChainName("SVC", name, "tcp");
    const frontend = toAddress(`10.96.${service >> 8}.${service & 255}`, `${name} cluster IP`);
    yield { kind: "chain", chain };
    yield { kind: "append", chain: "KUBE-SERVICES", rule: { ...frontend, target: { kind: "jump", chain } } };
    for (let at = 0; at < endpoints; at++)
      yield* endpointCommands(name, chain, `10.144.${service & 255}.${at + 1}`, at);
  }
}

function* endpointCommands(name: string, service: string, address: string, at: number): Generator<Command> {
  const to = socketText(address, 8080);
  const chain = endpointChainName(name, "tcp", to);
  const choice = { kind: "statistic", mode: "random", probability: shareProbability(1, endpoints - at) } as const;
  const remark = { kind: "comment", text: `${name} -> ${to}` } as const;
  yield { kind: "chain", chain };
  yield { kind: "append", chain: service, rule: { matches: [remark, choice], target: { kind: "jump", chain } } };
  yield {
    kind: "append",
    chain,
    rule: { source: { cidr: `${address}/32` }, matches: [remark], target: { kind: "jump", chain: "KUBE-MARK-MASQ" } },
  };
  yield {
    kind: "append",
    chain,
    rule: { protocol: { value: "tcp" }, matches: [remark, { kind: "tcp" }], target: { kind: "dnat", to } },
  };
}

function toAddress(address: string, remark: string): Rule {
  return {
    destination: { cidr: `${address}/32` },
    protocol: { value: "tcp" },
    matches: [
      { kind: "comment", text: remark },
      { kind: "tcp", dport: { from: 80, to: 80 } },
    ],
  };
}

function timed<Result>(what: string, run: () => Result): Result {
  const start = performance.now();
  const result = run();
  console.log(`${what}: ${(performance.now() - start).toFixed(0)} ms`);
  return result;
}
