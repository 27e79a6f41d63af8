export { sha256, startDigest } from "#sha256";
export type * from "./ipset.ts";
export { DEFAULT_MAX_ELEMENTS, MAX_SET_NAME_LENGTH, parseSetCommand, renderSetCommand, SetReader } from "./ipset.ts";
export type * from "./ipvs.ts";
export { ConnectionReader, parseServerCommand, renderServerCommand, renderServerKey, ServerReader } from "./ipvs.ts";
export {
  type CleanupOptions,
  deleteChains,
  detectsPods,
  emptyChain,
  endpointChainName,
  fromPods,
  hashedName,
  type IptablesPort,
  isServiceChain,
  type JumpRules,
  type Links,
  leadsToOne,
  notFromPods,
  type PacketOrigin,
  type Payload,
  type PodDetector,
  repairJumps,
  type ServiceChainKind,
  servicePortChainName,
  type TableGlance,
  unlinkCommands,
  witnessed,
} from "./kube-proxy.ts";
export type * from "./links.ts";
export { renderLinkCommand } from "./links.ts";
export { type ListOptions, listedTexts, parseList } from "./listing/list.ts";
export { BlockScanner, type BlockSink, type RuleBlock } from "./listing/rule-blocks.ts";
export {
  LazySaveParser,
  parseSave,
  type SavedChain,
  type SavedRules,
  type SavedTable,
  type SaveOptions,
  SaveParser,
  TextChain,
} from "./listing/save.ts";
export { type RefusedCommand, RefusedCommands } from "./refused-commands.ts";
export { FIRST_PACKET } from "./rule/match-rows.ts";
export { canonicalCIDR, shareProbability, statisticProbability } from "./rule/numbers.ts";
export type * from "./rule/rule.ts";
export { BUILTIN_CHAINS, comment, jump } from "./rule/rule.ts";
export { checkChainName, MAX_CHAIN_NAME_LENGTH, RuleParseError, RuleTextError } from "./rule/values.ts";
export type { TextDigest } from "./sha256/digest.ts";
export {
  type CompareOptions,
  canonicalRule,
  compareRuleSets,
  isWritable,
  isWritableKey,
  type RuleSetDifference,
  ruleEquals,
  ruleKey,
} from "./text/compare.ts";
export { atLine, goesOn, parseChainLine, parseTableLine, readRule } from "./text/lines.ts";
export {
  commandText,
  payloadText,
  renderCommand,
  renderRule,
  renderRuleSet,
  renderTable,
  renderTables,
  restoreLines,
  stateCommands,
} from "./text/render.ts";
export { parseRestore } from "./text/restore.ts";
