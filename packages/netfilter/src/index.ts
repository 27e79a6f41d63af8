export { canonicalCIDR } from "./address.ts";
export { checkChainName, MAX_CHAIN_NAME_LENGTH } from "./check.ts";
export { type CompareOptions, compareRuleSets, type RuleSetDifference } from "./compare.ts";
export { detectsPods, fromPods, notFromPods, type PacketOrigin, type PodDetector } from "./detector.ts";
export { RuleParseError, RuleTextError } from "./errors.ts";
export type * from "./ipset.ts";
export type * from "./ipvs.ts";
export { canonicalRule, isWritable, ruleEquals, ruleKey } from "./key.ts";
export { atLine, parseChainLine, parseTableLine } from "./line.ts";
export { type ListOptions, parseList } from "./list.ts";
export {
  endpointChainName,
  endpointText,
  hashedName,
  type ServiceChainKind,
  servicePortChainName,
} from "./names.ts";
export { evenProbability, statisticProbability } from "./numbers.ts";
export { ConnectionReader } from "./parse-connections.ts";
export { parseServerCommand } from "./parse-server-command.ts";
export { ServerReader } from "./parse-servers.ts";
export { parseSetCommand } from "./parse-set-command.ts";
export { SetReader } from "./parse-sets.ts";
export { payloadText, restoreLines } from "./payload.ts";
export { renderCommand, renderFill, renderRuleSet, renderTable, renderTables, stateCommands } from "./render.ts";
export { renderRule } from "./render-rule.ts";
export { renderServerCommand, renderServerKey } from "./render-server.ts";
export { MAX_SET_NAME_LENGTH, renderSetCommand } from "./render-set.ts";
export { parseRestore } from "./restore.ts";
export type * from "./rule.ts";
export { BlockScanner, type BlockSink, type RuleBlock } from "./rule-blocks.ts";
export { goesOn } from "./rule-ends.ts";
export { comment, jump } from "./rule-parts.ts";
export { LazySaveParser, parseSave, type SavedRules, type SavedTable, type SaveOptions, SaveParser } from "./save.ts";
export { readSave } from "./save-bytes.ts";
export { type SavedChain, TextChain } from "./saved-chain.ts";
