export { sha256, startDigest } from "#sha256";
export type * from "./ipset/ipset.ts";
export { parseSetCommand } from "./ipset/parse-command.ts";
export { SetReader } from "./ipset/parse-sets.ts";
export { MAX_SET_NAME_LENGTH, renderSetCommand } from "./ipset/render.ts";
export type * from "./ipvs/ipvs.ts";
export { parseServerCommand } from "./ipvs/parse-command.ts";
export { ConnectionReader } from "./ipvs/parse-connections.ts";
export { ServerReader } from "./ipvs/parse-servers.ts";
export { renderServerCommand, renderServerKey } from "./ipvs/render.ts";
export { detectsPods, fromPods, notFromPods, type PacketOrigin, type PodDetector } from "./kube-proxy/detector.ts";
export type { IptablesPort, Payload, TableGlance } from "./kube-proxy/iptables-port.ts";
export { type JumpRules, repairJumps } from "./kube-proxy/jumps.ts";
export {
  endpointChainName,
  hashedName,
  type ServiceChainKind,
  servicePortChainName,
} from "./kube-proxy/names.ts";
export {
  type CleanupOptions,
  deleteChains,
  emptyChain,
  type Links,
  leadsToOne,
  unlinkCommands,
} from "./kube-proxy/removal.ts";
export { witnessed } from "./kube-proxy/witnessed.ts";
export type * from "./links/links.ts";
export { renderLinkCommand } from "./links/render.ts";
export { type ListOptions, listedTexts, parseList } from "./listing/list.ts";
export { BlockScanner, type BlockSink, type RuleBlock } from "./listing/rule-blocks.ts";
export {
  LazySaveParser,
  parseSave,
  type SavedRules,
  type SavedTable,
  type SaveOptions,
  SaveParser,
} from "./listing/save.ts";
export { type SavedChain, TextChain } from "./listing/saved-chain.ts";
export { type RefusedCommand, RefusedCommands } from "./refused-commands.ts";
export { BUILTIN_CHAINS } from "./rule/builtin-chains.ts";
export { checkChainName, MAX_CHAIN_NAME_LENGTH } from "./rule/check.ts";
export { canonicalCIDR } from "./rule/cidr.ts";
export { RuleParseError, RuleTextError } from "./rule/errors.ts";
export { FIRST_PACKET } from "./rule/matches/tcp-flags.ts";
export { shareProbability, statisticProbability } from "./rule/numbers.ts";
export { comment, jump } from "./rule/parts.ts";
export type * from "./rule/rule.ts";
export type { TextDigest } from "./sha256/digest.ts";
export { type CompareOptions, compareRuleSets, type RuleSetDifference } from "./text/compare.ts";
export { canonicalRule, isWritable, isWritableKey, ruleEquals, ruleKey } from "./text/key.ts";
export { atLine, parseChainLine, parseTableLine, readRule } from "./text/line.ts";
export { commandText, payloadText, restoreLines } from "./text/payload.ts";
export { renderCommand, renderFill, renderRuleSet, renderTable, renderTables, stateCommands } from "./text/render.ts";
export { renderRule } from "./text/render-rule.ts";
export { parseRestore } from "./text/restore.ts";
export { goesOn } from "./text/rule-ends.ts";
