export { asError, attemptAll, errorChainText, errorCode, errorText } from "./errors.ts";
export { Heap } from "./heap.ts";
export { type Address, parseAddress, parseAddressLeniently, type StrictAddress } from "./ip/address.ts";
export { addressBytes, bytesText } from "./ip/bytes.ts";
export { type CIDR, parseCIDR, parseCIDRLeniently, type StrictCIDR } from "./ip/cidr.ts";
export {
  ADDRESS_BITS,
  familyOf,
  IP_FAMILIES,
  type IPFamily,
  ofFamily,
} from "./ip/family.ts";
export { canonicalIPv4Leniently, ipv4Number, ipv4Text } from "./ip/ipv4.ts";
export { type Groups, ipv6Groups, ipv6GroupsLeniently, ipv6Text, ipv6TextOfTools, mappedIPv4 } from "./ip/ipv6.ts";
export { PrefixMap } from "./ip/prefix-map.ts";
export { PrefixRegions } from "./ip/prefix-regions.ts";
export { isPort, type Protocol, protocolOf } from "./ip/protocol.ts";
export {
  type AddressRange,
  addressRange,
  contains,
  containsCIDR,
  inAnyOf,
  inRange,
  isWithin,
  overlap,
  rangesOverlap,
} from "./ip/range.ts";
export { rangeCIDRs } from "./ip/range-cidrs.ts";
export { isLoopback, isUnspecified } from "./ip/special.ts";
export { bracketed, hostCIDR, prefixLengthOf, socketText } from "./ip/text.ts";
export { type AddressWords, addressWords, masked, prefixMask, wordsText } from "./ip/words.ts";
export {
  fieldsOf,
  isAbsent,
  isObject,
  itemsOf,
  numberOf,
  objectAt,
  objectsAt,
  parseJSON,
  type RawObject,
  stringOf,
  textAt,
  valueAt,
} from "./json.ts";
export { isTooDeep } from "./json-depth.ts";
export { SLICES_MANAGER } from "./names.ts";
export { tooOld } from "./node-version.ts";
export { type Clock, systemClock, type Timers } from "./time/clock.ts";
export { Pace } from "./time/pace.ts";
export { sleep } from "./time/sleep.ts";
export { inSlices, nextTurn, type Slicing, slices, toEnd, type Yield } from "./time/turns.ts";
export { type TreeBounds, treeProblem } from "./tree.ts";
