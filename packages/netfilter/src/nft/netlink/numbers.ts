import type { Hook } from "../model.ts";

/** enum nf_tables_msg_types of linux/netfilter/nf_tables.h. */
export const MESSAGES = {
  newTable: 0,
  getTable: 1,
  delTable: 2,
  newChain: 3,
  getChain: 4,
  delChain: 5,
  newRule: 6,
  getRule: 7,
  delRule: 8,
  newSet: 9,
  getSet: 10,
  delSet: 11,
  newElement: 12,
  getElement: 13,
  delElement: 14,
  newGeneration: 15,
  getGeneration: 16,
  newFlowtable: 22,
  getFlowtable: 23,
  delFlowtable: 24,
} as const;

/** Attributes of each object (the same header). */
export const TABLE = { name: 1, flags: 2, use: 3, userData: 6 } as const;
/** NFT_TABLE_F_DORMANT: packets do not reach its chains. */
export const TABLE_DORMANT = 1;
/** NFTA_CHAIN_*: attributes of a chain. */
export const CHAIN = { table: 1, handle: 2, name: 3, hook: 4, policy: 5, use: 6, type: 7, userData: 12 } as const;
/** NFTA_HOOK_*: attributes of a base chain's hook. */
export const CHAIN_HOOK = { number: 1, priority: 2 } as const;
/** NFTA_RULE_*: attributes of a rule. */
export const RULE = { table: 1, chain: 2, handle: 3, expressions: 4, position: 6, userData: 7 } as const;
/** NFTA_EXPR_*: attributes of an expression. */
export const EXPRESSION = { name: 1, data: 2 } as const;
/** NFTA_SET_*: attributes of a set. */
export const SET = {
  table: 1,
  name: 2,
  flags: 3,
  keyType: 4,
  keyLength: 5,
  dataType: 6,
  dataLength: 7,
  policy: 8,
  description: 9,
  id: 10,
  timeout: 11,
  userData: 13,
  objectType: 15,
  expression: 17,
  expressions: 18,
} as const;
/** NFT_SET_OBJECT: a map of named objects. */
export const SET_OBJECT = 0x40;
/** NFT_SET_CONCAT (intervals of concatenations): sets that are not read here. */
export const UNREADABLE_SET_FLAGS = 0x80;
/** NFTA_SET_DESC_*: attributes of a set's description. */
export const SET_DESCRIPTION = { size: 1, concatenation: 2 } as const;
/** NFTA_SET_ELEM_LIST_*: attributes of a message with elements. */
export const ELEMENTS = { table: 1, set: 2, list: 3, setId: 4 } as const;
/** NFTA_SET_ELEM_*: attributes of an element. */
export const ELEMENT = {
  key: 1,
  data: 2,
  flags: 3,
  timeout: 4,
  expiration: 5,
  userData: 6,
  expression: 7,
  object: 9,
  expressions: 11,
} as const;
/** NFTA_GEN_*: attributes of the message about a generation. */
export const GENERATION = { id: 1, processId: 2, processName: 3 } as const;

/** enum nft_flowtable_attributes, those within its hook, and of each device. */
export const FLOWTABLE = { table: 1, name: 2, hook: 3, flags: 7 } as const;
/** NFTA_FLOWTABLE_HOOK_*: attributes of a flowtable's hook. */
export const FLOWTABLE_HOOK = { number: 1, priority: 2, devices: 3 } as const;
export const DEVICE_NAME = 1;
/** NF_NETDEV_INGRESS, the only hook that a flowtable can have. */
export const INGRESS = 0;
/** NFT_FLOWTABLE_COUNTER. */
export const FLOWTABLE_COUNTER = 2;

/** NFTA_LIST_ELEM. */
export const LIST_ITEM = 1;
/** NFTA_DATA_VALUE. */
export const DATA_VALUE = 1;
/** NFT_DATA_VERDICT as the type of a map's values. */
export const VERDICT_TYPE = 0xffffff00;
/** NFT_SET_ELEM_INTERVAL_END. */
export const INTERVAL_END = 1;
/** NFT_SET_ELEM_CATCHALL: it stands for every key that has no element of its own. */
export const CATCH_ALL = 2;

/** enum nf_inet_hooks. */
export const HOOK_NUMBERS: Readonly<Record<Hook, number>> = {
  prerouting: 0,
  input: 1,
  forward: 2,
  output: 3,
  postrouting: 4,
};

/** NF_DROP and NF_ACCEPT. */
export const POLICIES = { drop: 0, accept: 1 } as const;

/** NFNL_SUBSYS_NFTABLES, and the messages around a transaction (linux/netfilter/nfnetlink.h). */
export const SUBSYSTEM = 10;
/** NFNL_MSG_BATCH_*: the messages around a transaction. */
export const BATCH = { begin: 0x10, end: 0x11 } as const;

/** Flags of a request (linux/netlink.h). */
export const FLAGS = { request: 0x1, acknowledge: 0x4, dump: 0x300, create: 0x400, append: 0x800 } as const;
